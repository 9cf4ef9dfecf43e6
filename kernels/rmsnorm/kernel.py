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
def rmsnorm_wide_kernel(x_ptr, weight_ptr, out_ptr, eps, N_COLS: tl.constexpr, BLOCK: tl.constexpr):
    """For rows with 64 elements per thread. Kiln keeps such a row in shared memory, so that three rows fit a
    multiprocessor; with N_COLS known there are no masks where it is a power of two."""
    start = tl.program_id(0) * N_COLS
    cols = tl.arange(0, BLOCK)
    inside = cols < N_COLS
    x = tl.load(x_ptr + start + cols, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / N_COLS + eps)
    weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
    tl.store(out_ptr + start + cols, x * rstd * weight, mask=inside)
