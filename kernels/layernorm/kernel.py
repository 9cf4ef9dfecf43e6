"""Layer norm over the rows of a row-major matrix, with weight and bias; also gives each row's mean and 1/std."""
import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = row * n_cols
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + start + cols, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    away = tl.where(inside, x - mean, 0.0)
    var = tl.sum(away * away, axis=0) / n_cols
    rstd = tl.rsqrt(var + eps)
    weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside).to(tl.float32)
    tl.store(out_ptr + start + cols, away * rstd * weight + bias, mask=inside)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layernorm_wide_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, n_cols, eps, HALF: tl.constexpr):
    """For rows so wide that a multiprocessor holds one program. Both sums are taken at once, of differences from the row's
    first element (so that a large mean cancels nothing), and the row is written in two halves (so that the weights of one
    at a time are in registers)."""
    row = tl.program_id(0)
    start = row * n_cols
    low = tl.arange(0, HALF)
    high = HALF + low
    in_low = low < n_cols
    in_high = high < n_cols
    pivot = tl.load(x_ptr + start).to(tl.float32)
    x0 = tl.load(x_ptr + start + low, mask=in_low, other=0.0).to(tl.float32)
    x1 = tl.load(x_ptr + start + high, mask=in_high, other=0.0).to(tl.float32)
    d0 = tl.where(in_low, x0 - pivot, 0.0)
    d1 = tl.where(in_high, x1 - pivot, 0.0)
    shift = tl.sum(d0 + d1, axis=0) / n_cols
    rstd = tl.rsqrt(tl.sum(d0 * d0 + d1 * d1, axis=0) / n_cols - shift * shift + eps)
    w0 = tl.load(weight_ptr + low, mask=in_low).to(tl.float32)
    b0 = tl.load(bias_ptr + low, mask=in_low).to(tl.float32)
    tl.store(out_ptr + start + low, (d0 - shift) * rstd * w0 + b0, mask=in_low)
    w1 = tl.load(weight_ptr + high, mask=in_high).to(tl.float32)
    b1 = tl.load(bias_ptr + high, mask=in_high).to(tl.float32)
    tl.store(out_ptr + start + high, (d1 - shift) * rstd * w1 + b1, mask=in_high)
    tl.store(mean_ptr + row, pivot + shift)
    tl.store(rstd_ptr + row, rstd)
