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
    weight = tl.load(weight_ptr + cols, mask=inside, eviction_policy="evict_last").to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside, eviction_policy="evict_last").to(tl.float32)
    tl.store(out_ptr + start + cols, away * rstd * weight + bias, mask=inside)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layernorm_wide_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, eps, BLOCK: tl.constexpr, N_COLS: tl.constexpr
):
    """For rows that registers or shared memory would hold too few of beside the weights: the row is read from memory once
    and then twice more from the caches, BLOCK elements at a time, which leaves room for two programs on a
    multiprocessor. Caches keep the row until its last reading, and what all rows share. With N_COLS known, the loops are
    unrolled and need few registers."""
    EVEN: tl.constexpr = N_COLS % BLOCK == 0
    row = tl.program_id(0)
    start = row * N_COLS
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, N_COLS, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + cols, mask=(cols < N_COLS) | EVEN, other=0.0, eviction_policy="evict_last")
        sums += x.to(tl.float32)
    mean = tl.sum(sums, axis=0) / N_COLS
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, N_COLS, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        inside = (cols < N_COLS) | EVEN
        x = tl.load(x_ptr + start + cols, mask=inside, other=0.0, eviction_policy="evict_last")
        away = tl.where(inside, x.to(tl.float32) - mean, 0.0)
        squares += away * away
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N_COLS + eps)
    for first in range(0, N_COLS, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        inside = (cols < N_COLS) | EVEN
        x = tl.load(x_ptr + start + cols, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=inside, eviction_policy="evict_last").to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=inside, eviction_policy="evict_last").to(tl.float32)
        y = (x - mean) * rstd * weight + bias
        tl.store(out_ptr + start + cols, y, mask=inside, eviction_policy="evict_first")
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
