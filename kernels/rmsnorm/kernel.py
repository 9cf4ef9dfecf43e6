"""Root-mean-square norm over the rows of a row-major matrix, with weight."""
import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(x_ptr, weight_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0) * n_cols
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + start + cols, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
    tl.store(out_ptr + start + cols, x * rstd * weight, mask=inside)


@triton.jit
def rmsnorm_wide_kernel(x_ptr, weight_ptr, out_ptr, n_rows, n_cols, eps, BLOCK: tl.constexpr):
    """For rows so wide that a multiprocessor holds one program: the next row's loads run during this row's arithmetic."""
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    first = tl.program_id(0)
    step = tl.num_programs(0)
    ahead = tl.load(x_ptr + first * n_cols + cols, mask=inside, other=0.0)
    for row in range(first, n_rows, step):
        x = ahead.to(tl.float32)
        after = row + step
        ahead = tl.load(x_ptr + after * n_cols + cols, mask=inside & (after < n_rows), other=0.0)
        rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
        weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, x * rstd * weight, mask=inside)
