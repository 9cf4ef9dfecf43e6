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
    weight = tl.load(weight_ptr + cols, mask=inside, eviction_policy="evict_last").to(tl.float32)
    tl.store(out_ptr + start + cols, x * rstd * weight, mask=inside)


@triton.jit
def rmsnorm_wide_kernel(x_ptr, weight_ptr, out_ptr, eps, BLOCK: tl.constexpr, N_COLS: tl.constexpr):
    """For rows that would fill the registers: the row is read from memory once and a second time from the caches, BLOCK
    elements at a time, so that more rows fit a multiprocessor. Caches keep the row until then, and the weights. With
    N_COLS known, the loops are unrolled and need few registers."""
    EVEN: tl.constexpr = N_COLS % BLOCK == 0
    start = tl.program_id(0) * N_COLS
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, N_COLS, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        inside = (cols < N_COLS) | EVEN
        x = tl.load(x_ptr + start + cols, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N_COLS + eps)
    for first in range(0, N_COLS, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        inside = (cols < N_COLS) | EVEN
        x = tl.load(x_ptr + start + cols, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=inside, eviction_policy="evict_last").to(tl.float32)
        tl.store(out_ptr + start + cols, x * rstd * weight, mask=inside, eviction_policy="evict_first")
