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
def softmax_wide_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    """For rows so wide that a multiprocessor holds one program: the next row's loads run during this row's arithmetic."""
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    first = tl.program_id(0)
    step = tl.num_programs(0)
    ahead = tl.load(x_ptr + first * n_cols + cols, mask=inside, other=-float("inf"))
    for row in range(first, n_rows, step):
        x = ahead.to(tl.float32)
        after = row + step
        ahead = tl.load(x_ptr + after * n_cols + cols, mask=inside & (after < n_rows), other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        scale = 1.0 / tl.sum(e, axis=0)
        tl.store(out_ptr + row * n_cols + cols, e * scale, mask=inside)
