"""Products whose operands come to the tensor cores by different roads: one kernel for each (docs/tensor-cores.md)."""
import triton
import triton.language as tl


@triton.jit
def blocks(a, b, out, M, N, K):
    """Both operands as blocks of tensor descriptors."""
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [128, 64])
    b_desc = tl.make_tensor_descriptor(b, [N, K], [K, 1], [128, 64])
    row, column = tl.program_id(0) * 128, tl.program_id(1) * 128
    acc = tl.zeros((128, 128), tl.float32)
    for k in range(0, K, 64):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([column, k]).T, acc)
    out_desc = tl.make_tensor_descriptor(out, [M, N], [N, 1], [128, 128])
    out_desc.store([row, column], acc.to(tl.bfloat16))


@triton.jit
def pointers(a, b, out, M, N, K):
    """Both through pointers, with masks."""
    rows, columns = tl.program_id(0) * 128 + tl.arange(0, 128), tl.program_id(1) * 128 + tl.arange(0, 128)
    depth = tl.arange(0, 64)
    acc = tl.zeros((128, 128), tl.float32)
    for k in range(0, K, 64):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :], mask=(rows < M)[:, None], other=0.0)
        y = tl.load(b + columns[None, :] * K + (k + depth)[:, None], mask=(columns < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc.to(tl.bfloat16),
             mask=(rows < M)[:, None] & (columns < N)[None, :])


@triton.jit
def gathered(a, b, out, places, M, N, K):
    """Rows of A are looked up."""
    rows, columns = tl.program_id(0) * 128 + tl.arange(0, 128), tl.program_id(1) * 128 + tl.arange(0, 128)
    depth = tl.arange(0, 64)
    of = tl.load(places + rows, mask=rows < M, other=0)
    acc = tl.zeros((128, 128), tl.float32)
    for k in range(0, K, 64):
        x = tl.load(a + of[:, None] * K + (k + depth)[None, :], mask=(rows < M)[:, None], other=0.0)
        y = tl.load(b + columns[None, :] * K + (k + depth)[:, None])
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc.to(tl.bfloat16), mask=(rows < M)[:, None])


@triton.jit
def dequantised(a, b, out, scales, M, N, K):
    """A is converted from bytes and scaled on its way: it multiplies from registers."""
    rows, columns = tl.program_id(0) * 128 + tl.arange(0, 128), tl.program_id(1) * 128 + tl.arange(0, 128)
    depth = tl.arange(0, 64)
    scale = tl.load(scales + rows)
    acc = tl.zeros((128, 128), tl.float32)
    for k in range(0, K, 64):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :]).to(tl.float32) * scale[:, None]
        y = tl.load(b + columns[None, :] * K + (k + depth)[:, None])
        acc = tl.dot(x.to(tl.bfloat16), y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc.to(tl.bfloat16))


@triton.jit
def chained(a, b, out, M, N, K):
    """The result of one product is an operand of the next, as in attention."""
    rows, columns, depth = tl.program_id(0) * 128 + tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 64)
    q = tl.load(a + rows[:, None] * 64 + depth[None, :])
    acc = tl.zeros((128, 64), tl.float32)
    for k in range(0, N, 64):
        keys = tl.load(b + (k + columns)[:, None] * 64 + depth[None, :])
        p = tl.exp2(tl.dot(q, tl.trans(keys)))
        acc = tl.dot(p.to(tl.bfloat16), keys, acc)
    tl.store(out + rows[:, None] * 64 + depth[None, :], acc.to(tl.bfloat16))


@triton.jit
def two_sums(a, b, out, M, N, K):
    """192 columns as two sums over one block of A."""
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [128, 64])
    b_desc = tl.make_tensor_descriptor(b, [N, K], [K, 1], [128, 64])
    tail_desc = tl.make_tensor_descriptor(b, [N, K], [K, 1], [64, 64])
    row, column = tl.program_id(0) * 128, tl.program_id(1) * 192
    acc, tail = tl.zeros((128, 128), tl.float32), tl.zeros((128, 64), tl.float32)
    for k in range(0, K, 64):
        x = a_desc.load([row, k])
        acc = tl.dot(x, b_desc.load([column, k]).T, acc)
        tail = tl.dot(x, tail_desc.load([column + 128, k]).T, tail)
    tl.make_tensor_descriptor(out, [M, N], [N, 1], [128, 128]).store([row, column], acc.to(tl.bfloat16))
    tl.make_tensor_descriptor(out, [M, N], [N, 1], [128, 64]).store([row, column + 128], tail.to(tl.bfloat16))


@triton.jit
def few_rows(a, b, out, M, N, K):
    """16 rows: fewer than wgmma takes."""
    rows, columns, depth = tl.arange(0, 16), tl.program_id(0) * 64 + tl.arange(0, 64), tl.arange(0, 64)
    acc = tl.zeros((16, 64), tl.float32)
    for k in range(0, K, 64):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        y = tl.load(b + columns[None, :] * K + (k + depth)[:, None])
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc.to(tl.bfloat16))
