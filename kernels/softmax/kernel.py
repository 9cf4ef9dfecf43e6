"""Softmax over the rows of a row-major matrix: a program holds a whole row in registers."""
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    start = tl.program_id(0) * n_cols
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + start + cols, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    scale = 1.0 / tl.sum(e, axis=0)
    tl.store(out_ptr + start + cols, e * scale, mask=inside)


@triton.jit
def softmax_wide_kernel(x_ptr, out_ptr, N_COLS: tl.constexpr, BLOCK: tl.constexpr):
    """For rows with 64 elements per thread. Kiln keeps such a row in shared memory and computes its exponentials twice, so
    that three rows fit a multiprocessor; with N_COLS known there are no masks where it is a power of two."""
    start = tl.program_id(0) * N_COLS
    cols = tl.arange(0, BLOCK)
    inside = cols < N_COLS
    x = tl.load(x_ptr + start + cols, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    scale = 1.0 / tl.sum(e, axis=0)
    tl.store(out_ptr + start + cols, e * scale, mask=inside)
