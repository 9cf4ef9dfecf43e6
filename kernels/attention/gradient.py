"""Gradients of scaled dot-product attention (kernel.py), in one pass over the rows and one over the keys.

With weights P = softmax(S · scale) of scores S = q k^T, and o = P v (Dao et al., FlashAttention, appendix B.2):
dv = P^T do, dS = P ∘ (do v^T - delta), dk = dS^T q · scale, dq = dS k · scale, where delta is the sum over each row of
do ∘ o. P is computed again of the scores and of `sums`, the binary logarithm of each row's sum of 2^(S · scale_log2).
Tensors are contiguous: q, do, dq [heads, n, COLUMNS], k, v, dk, dv [heads / group, keys, COLUMNS], sums and deltas
[heads, n] of float32.
"""
import triton
import triton.language as tl


@triton.jit
def blocks_of(ptr, heads, rows, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr):
    return tl.make_tensor_descriptor(ptr, [heads, rows, COLUMNS], [rows * COLUMNS, COLUMNS, 1], [1, BLOCK, D])


@triton.jit
def add_rows(dk, dv, k, v, q_blocks, do_blocks, sums, deltas, head, key, begin, end, n, scale_log2,
             MASKED: tl.constexpr, BLOCK_M: tl.constexpr, D: tl.constexpr):
    """The rows from `begin` to `end` of one head of q. MASKED: row i sees no key behind i. Rows from n on have weights
    of 0."""
    for start in range(begin, end, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        total = tl.load(sums + row, mask=row < n, other=float("inf"))
        delta = tl.load(deltas + row, mask=row < n, other=0.0)
        q = q_blocks.load([head, start, 0]).reshape(BLOCK_M, D)
        scores = tl.dot(k, q.T)
        weights = tl.exp2(scores * scale_log2 - total[None, :])
        if MASKED:
            weights = tl.where(row[None, :] >= key[:, None], weights, 0.0)
        do = do_blocks.load([head, start, 0]).reshape(BLOCK_M, D)
        dv = tl.dot(weights.to(do.dtype), do, dv)
        slopes = weights * (tl.dot(v, do.T) - delta[None, :])
        dk = tl.dot(slopes.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def key_gradients_kernel(q_ptr, k_ptr, v_ptr, do_ptr, sums_ptr, deltas_ptr, dk_ptr, dv_ptr, scale, scale_log2, heads,
                         group, n, keys, CAUSAL: tl.constexpr, COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr,
                         BLOCK_N: tl.constexpr, D: tl.constexpr):
    """dk and dv of a block of keys: over the rows of all heads of q that it serves. D is the power of two from COLUMNS
    on."""
    q_blocks = blocks_of(q_ptr, heads, n, COLUMNS, BLOCK_M, D)
    do_blocks = blocks_of(do_ptr, heads, n, COLUMNS, BLOCK_M, D)
    k_blocks = blocks_of(k_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    v_blocks = blocks_of(v_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    dk_blocks = blocks_of(dk_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    dv_blocks = blocks_of(dv_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    blocks = tl.cdiv(keys, BLOCK_N)
    of_keys = tl.program_id(0) // blocks
    first = tl.program_id(0) % blocks * BLOCK_N
    key = first + tl.arange(0, BLOCK_N)
    k = k_blocks.load([of_keys, first, 0]).reshape(BLOCK_N, D)
    v = v_blocks.load([of_keys, first, 0]).reshape(BLOCK_N, D)
    dk = tl.zeros([BLOCK_N, D], tl.float32)
    dv = tl.zeros([BLOCK_N, D], tl.float32)
    # Rows ahead of the block do not see it; all behind its last key see it as a whole.
    begin = first // BLOCK_M * BLOCK_M if CAUSAL else 0
    whole = tl.minimum(tl.cdiv(first + BLOCK_N, BLOCK_M) * BLOCK_M, n) if CAUSAL else 0
    for head in range(of_keys * group, of_keys * group + group):
        sums = sums_ptr + head.to(tl.int64) * n
        deltas = deltas_ptr + head.to(tl.int64) * n
        if CAUSAL:
            dk, dv = add_rows(dk, dv, k, v, q_blocks, do_blocks, sums, deltas, head, key, begin, whole, n, scale_log2,
                              True, BLOCK_M, D)
        dk, dv = add_rows(dk, dv, k, v, q_blocks, do_blocks, sums, deltas, head, key, whole, n, n, scale_log2, False,
                          BLOCK_M, D)
    dv_blocks.store([of_keys, first, 0], dv.to(dv_ptr.dtype.element_ty).reshape(1, BLOCK_N, D))
    dk_blocks.store([of_keys, first, 0], (dk * scale).to(dk_ptr.dtype.element_ty).reshape(1, BLOCK_N, D))


@triton.jit
def add_keys(dq, q, do, total, delta, k_blocks, v_blocks, head, row, begin, end, keys, scale_log2,
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
        slopes = weights * (tl.dot(do, v.T) - delta[:, None])
        dq = tl.dot(slopes.to(k.dtype), k, dq)
    return dq


@triton.jit
def query_gradient_kernel(q_ptr, k_ptr, v_ptr, do_ptr, sums_ptr, deltas_ptr, dq_ptr, scale, scale_log2, heads, group, n,
                          keys, CAUSAL: tl.constexpr, COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr,
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
    total = tl.load(sums_ptr + head.to(tl.int64) * n + row, mask=row < n, other=float("inf"))
    delta = tl.load(deltas_ptr + head.to(tl.int64) * n + row, mask=row < n, other=0.0)
    q = q_blocks.load([head, first, 0]).reshape(BLOCK_M, D)
    do = do_blocks.load([head, first, 0]).reshape(BLOCK_M, D)
    dq = tl.zeros([BLOCK_M, D], tl.float32)
    end = tl.minimum(first + BLOCK_M, keys) if CAUSAL else keys
    whole = (tl.minimum(first, keys) if CAUSAL else keys) // BLOCK_N * BLOCK_N
    dq = add_keys(dq, q, do, total, delta, k_blocks, v_blocks, head // group, row, 0, whole, keys, scale_log2, CAUSAL,
                  False, BLOCK_N, D)
    dq = add_keys(dq, q, do, total, delta, k_blocks, v_blocks, head // group, row, whole, end, keys, scale_log2, CAUSAL,
                  True, BLOCK_N, D)
    dq_blocks.store([head, first, 0], (dq * scale).to(dq_ptr.dtype.element_ty).reshape(1, BLOCK_M, D))
