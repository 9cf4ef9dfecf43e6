"""Gradients of scaled dot-product attention (kernel.py): all in one pass over the keys, or those of q in a second one
over its rows.

With weights P = softmax(S · scale) of scores S = q k^T, and o = P v (Dao et al., FlashAttention, appendix B.2):
dv = P^T do, dS = P ∘ (do v^T - delta), dk = dS^T q · scale, dq = dS k · scale, where delta is the sum over each row of
do ∘ o. P is computed again of the scores and of `totals`, the binary logarithm of each row's sum of 2^(S · scale_log2).
Tensors are contiguous: q, o, do, dq [heads, n, COLUMNS], k, v, dk, dv [heads / group, keys, COLUMNS], totals and less,
which is -delta, [heads, stride] of float32. The stride is n rounded up to whole blocks, for which rows from n on have
totals of infinity, so that their weights are 0.

In one pass a block of keys adds its part of dq, transposed, to `parts` [heads, COLUMNS, stride] of float32, which
begins as zeros: five products where two passes take seven, and the order of the additions differs from run to run.
"""
import triton
import triton.language as tl


@triton.jit
def prepare_kernel(do_ptr, o_ptr, sums_ptr, totals_ptr, less_ptr, parts_ptr, n, stride, ADDS_PARTS: tl.constexpr,
                   COLUMNS: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr):
    """totals, of sums [heads, n], and less of a block of rows, and zeros for the parts of their gradients."""
    blocks = stride // BLOCK
    head = (tl.program_id(0) // blocks).to(tl.int64)
    row = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, D)
    inside = (row[:, None] < n) & (column[None, :] < COLUMNS)
    at = (head * n + row[:, None]) * COLUMNS + column[None, :]
    do = tl.load(do_ptr + at, mask=inside, other=0.0).to(tl.float32)
    o = tl.load(o_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(less_ptr + head * stride + row, -tl.sum(do * o, 1))
    total = tl.load(sums_ptr + head * n + row, mask=row < n, other=float("inf"))
    tl.store(totals_ptr + head * stride + row, total)
    if ADDS_PARTS:
        place = (head * COLUMNS + column[:, None]) * stride + row[None, :]
        tl.store(parts_ptr + place, tl.zeros([D, BLOCK], tl.float32), mask=column[:, None] < COLUMNS)


@triton.jit
def blocks_of(ptr, heads, rows, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr):
    return tl.make_tensor_descriptor(ptr, [heads, rows, COLUMNS], [rows * COLUMNS, COLUMNS, 1], [1, BLOCK, D])


@triton.jit
def rows_of(ptr, heads, stride, BLOCK: tl.constexpr):
    return tl.make_tensor_descriptor(ptr, [heads * stride], [1], [BLOCK])


@triton.jit
def add_rows(dk, dv, k, v, q_blocks, do_blocks, parts, totals, less, head, key, begin, end, stride, scale_log2,
             MASKED: tl.constexpr, ADDS_PARTS: tl.constexpr, BLOCK_M: tl.constexpr, D: tl.constexpr):
    """The rows from `begin` to `end` of one head of q. MASKED: row i sees no key behind i."""
    for start in range(begin, end, BLOCK_M):
        q = q_blocks.load([head, start, 0]).reshape(BLOCK_M, D)
        scores = tl.dot(k, q.T)
        do = do_blocks.load([head, start, 0]).reshape(BLOCK_M, D)
        slopes = tl.dot(v, do.T)
        total = totals.load([head * stride + start])
        weights = tl.exp2(scores * scale_log2 - total[None, :])
        if MASKED:
            # Constants against one vector: the rows would take a register for each column.
            weights = tl.where(tl.arange(0, BLOCK_M)[None, :] >= (key - start)[:, None], weights, 0.0)
        # Rounded here, so that the products that read both run one behind the other.
        halves = weights.to(do.dtype)
        slopes = (weights * (slopes + less.load([head * stride + start])[None, :])).to(q.dtype)
        dv = tl.dot(halves, do, dv)
        if ADDS_PARTS:
            part = tl.dot(k.T, slopes)
            dk = tl.dot(slopes, q, dk)
            parts.atomic_add([head, 0, start], part.reshape(1, D, BLOCK_M))
        else:
            dk = tl.dot(slopes, q, dk)
    return dk, dv


@triton.jit
def key_gradients_kernel(q_ptr, k_ptr, v_ptr, do_ptr, totals_ptr, less_ptr, dk_ptr, dv_ptr, parts_ptr, stride, scale,
                         scale_log2, heads, group, each, together, n, keys, ADDS_PARTS: tl.constexpr,
                         CAUSAL: tl.constexpr, COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                         D: tl.constexpr):
    """dk and dv of a block of keys: over the rows of `each` of the heads of q that it serves; with ADDS_PARTS what it
    adds to dq as well. Where that is not all of a group, dk and dv [heads / each, keys, COLUMNS] are to be added.
    Programs take the first blocks of `together` times `each` heads, then their second ones. D is the power of two from
    COLUMNS on."""
    q_blocks = blocks_of(q_ptr, heads, n, COLUMNS, BLOCK_M, D)
    do_blocks = blocks_of(do_ptr, heads, n, COLUMNS, BLOCK_M, D)
    k_blocks = blocks_of(k_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    v_blocks = blocks_of(v_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    dk_blocks = blocks_of(dk_ptr, heads // each, keys, COLUMNS, BLOCK_N, D)
    dv_blocks = blocks_of(dv_ptr, heads // each, keys, COLUMNS, BLOCK_N, D)
    totals = rows_of(totals_ptr, heads, stride, BLOCK_M)
    less = rows_of(less_ptr, heads, stride, BLOCK_M)
    parts = tl.make_tensor_descriptor(parts_ptr, [heads, COLUMNS, stride], [COLUMNS * stride, stride, 1],
                                      [1, D, BLOCK_M])
    blocks = tl.cdiv(keys, BLOCK_N)
    begun = tl.program_id(0) // (blocks * together) * together
    side_by_side = tl.minimum(together, heads // each - begun)
    of_turn = tl.program_id(0) - begun * blocks
    served = (begun + of_turn % side_by_side) * each
    of_keys = served // group
    first = of_turn // side_by_side * BLOCK_N
    key = first + tl.arange(0, BLOCK_N)
    k = k_blocks.load([of_keys, first, 0]).reshape(BLOCK_N, D)
    v = v_blocks.load([of_keys, first, 0]).reshape(BLOCK_N, D)
    dk = tl.zeros([BLOCK_N, D], tl.float32)
    dv = tl.zeros([BLOCK_N, D], tl.float32)
    # Rows ahead of the block do not see it; all behind its last key see it as a whole.
    begin = first // BLOCK_M * BLOCK_M if CAUSAL else 0
    whole = tl.minimum(tl.cdiv(first + BLOCK_N, BLOCK_M), tl.cdiv(n, BLOCK_M)) * BLOCK_M if CAUSAL else 0
    for head in range(served, served + each):
        if CAUSAL:
            dk, dv = add_rows(dk, dv, k, v, q_blocks, do_blocks, parts, totals, less, head, key, begin, whole, stride,
                              scale_log2, True, ADDS_PARTS, BLOCK_M, D)
        dk, dv = add_rows(dk, dv, k, v, q_blocks, do_blocks, parts, totals, less, head, key, whole, n, stride, scale_log2,
                          False, ADDS_PARTS, BLOCK_M, D)
    dv = dv.to(dv_ptr.dtype.element_ty).reshape(1, BLOCK_N, D)
    dk = (dk * scale).to(dk_ptr.dtype.element_ty).reshape(1, BLOCK_N, D)
    dv_blocks.store([served // each, first, 0], dv)
    dk_blocks.store([served // each, first, 0], dk)


@triton.jit
def add_keys(dq, q, do, total, less, k_blocks, v_blocks, head, row, begin, end, keys, scale_log2,
             CAUSAL: tl.constexpr, MASKED: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    """The keys from `begin` to `end`. MASKED: there are only `keys`, and, if CAUSAL, row i sees none behind i."""
    for start in range(begin, end, BLOCK_N):
        k = k_blocks.load([head, start, 0]).reshape(BLOCK_N, D)
        weights = tl.exp2(tl.dot(q, k.T) * scale_log2 - total[:, None])
        if MASKED:
            key = start + tl.arange(0, BLOCK_N)
            seen = key[None, :] < keys
            if CAUSAL:
                seen = seen & (row[:, None] >= key[None, :])
            weights = tl.where(seen, weights, 0.0)
        v = v_blocks.load([head, start, 0]).reshape(BLOCK_N, D)
        slopes = weights * (tl.dot(do, v.T) + less[:, None])
        dq = tl.dot(slopes.to(k.dtype), k, dq)
    return dq


@triton.jit
def query_gradient_kernel(q_ptr, k_ptr, v_ptr, do_ptr, totals_ptr, less_ptr, dq_ptr, stride, scale, scale_log2, heads,
                          group, n, keys, CAUSAL: tl.constexpr, COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr,
                          BLOCK_N: tl.constexpr, D: tl.constexpr):
    """dq of a block of rows: over the keys that they see."""
    q_blocks = blocks_of(q_ptr, heads, n, COLUMNS, BLOCK_M, D)
    do_blocks = blocks_of(do_ptr, heads, n, COLUMNS, BLOCK_M, D)
    dq_blocks = blocks_of(dq_ptr, heads, n, COLUMNS, BLOCK_M, D)
    k_blocks = blocks_of(k_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    v_blocks = blocks_of(v_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    blocks = tl.cdiv(n, BLOCK_M)
    head = tl.program_id(0) // blocks
    first = tl.program_id(0) % blocks * BLOCK_M
    if CAUSAL:  # the longest rows first, so that the last programs are short
        first = (blocks - 1) * BLOCK_M - first
    row = first + tl.arange(0, BLOCK_M)
    total = tl.load(totals_ptr + head.to(tl.int64) * stride + row, mask=row < n, other=float("inf"))
    less = tl.load(less_ptr + head.to(tl.int64) * stride + row, mask=row < n, other=0.0)
    q = q_blocks.load([head, first, 0]).reshape(BLOCK_M, D)
    do = do_blocks.load([head, first, 0]).reshape(BLOCK_M, D)
    dq = tl.zeros([BLOCK_M, D], tl.float32)
    end = tl.minimum(first + BLOCK_M, keys) if CAUSAL else keys
    whole = (tl.minimum(first, keys) if CAUSAL else keys) // BLOCK_N * BLOCK_N
    dq = add_keys(dq, q, do, total, less, k_blocks, v_blocks, head // group, row, 0, whole, keys, scale_log2, CAUSAL,
                  False, BLOCK_N, D)
    dq = add_keys(dq, q, do, total, less, k_blocks, v_blocks, head // group, row, whole, end, keys, scale_log2, CAUSAL,
                  True, BLOCK_N, D)
    dq_blocks.store([head, first, 0], (dq * scale).to(dq_ptr.dtype.element_ty).reshape(1, BLOCK_M, D))
