"""One operation per kernel: what a program without fusion launches. Arithmetic is in f32; each result goes to memory."""
import triton
import triton.language as tl


@triton.jit
def add_op(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    y = tl.load(y_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, x + y, mask=i < n)


@triton.jit
def sub_op(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    y = tl.load(y_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, x - y, mask=i < n)


@triton.jit
def mul_op(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    y = tl.load(y_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, x * y, mask=i < n)


@triton.jit
def scale_op(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, x * factor, mask=i < n)


@triton.jit
def gelu_op(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=i < n)


@triton.jit
def sigmoid_op(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, tl.sigmoid(x), mask=i < n)


@triton.jit
def exp_op(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, tl.exp(x), mask=i < n)


@triton.jit
def square_op(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, x * x, mask=i < n)


@triton.jit
def rsqrt_op(x_ptr, out_ptr, eps, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0).to(tl.float32)
    tl.store(out_ptr + i, tl.rsqrt(x + eps), mask=i < n)


@triton.jit
def uniform_op(out_ptr, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.rand(seed, i), mask=i < n)


@triton.jit
def keep_op(r_ptr, out_ptr, p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = tl.load(r_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, tl.where(r > p, 1.0 / (1.0 - p), 0.0), mask=i < n)


@triton.jit
def row_max_op(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    tl.store(out_ptr + row, tl.max(x, axis=0))


@triton.jit
def row_sum_op(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


@triton.jit
def row_mean_op(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / n_cols)


@triton.jit
def row_sub_op(x_ptr, row_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x - tl.load(row_ptr + row).to(tl.float32), mask=cols < n_cols)


@triton.jit
def row_mul_op(x_ptr, row_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x * tl.load(row_ptr + row).to(tl.float32), mask=cols < n_cols)


@triton.jit
def row_div_op(x_ptr, row_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x / tl.load(row_ptr + row).to(tl.float32), mask=cols < n_cols)


@triton.jit
def column_mul_op(x_ptr, column_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols).to(tl.float32)
    w = tl.load(column_ptr + cols, mask=cols < n_cols).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x * w, mask=cols < n_cols)


@triton.jit
def column_add_op(x_ptr, column_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols).to(tl.float32)
    b = tl.load(column_ptr + cols, mask=cols < n_cols).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x + b, mask=cols < n_cols)
