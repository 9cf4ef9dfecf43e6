"""Scaled dot-product attention, softmax(q k^T · scale) v, in one pass over the keys.

A program has BLOCK_M rows of q and walks over k and v by blocks of BLOCK_N, with a running maximum and sum of each
row; what earlier blocks have summed shrinks when the maximum grows. Exponents are taken to base 2: `scale` is the usual
scale times log2(e), and positive. Tensors are contiguous, [heads, n, D] with D a power of two.
"""
import triton
import triton.language as tl


@triton.jit
def add_block(acc, total, peak, scores, scale, v):
    """One block of keys: scores [BLOCK_M, BLOCK_N] not yet scaled, v [BLOCK_N, D]; returns the new acc, total and peak.

    Scaling and subtracting the maximum are one multiply-add where the maximum is scaled by itself.
    """
    higher = tl.maximum(peak, tl.max(scores, 1) * scale)
    weights = tl.exp2(scores * scale - higher[:, None])
    shrink = tl.exp2(peak - higher)
    acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
    return acc, total * shrink + tl.sum(weights, 1), higher


@triton.jit
def add_blocks(acc, total, peak, q, k_blocks, v_blocks, head, row, begin, end, scale, MASKED: tl.constexpr,
               BLOCK_N: tl.constexpr):
    """The keys from `begin` to `end`; MASKED: row i sees no key behind i."""
    for start in range(begin, end, BLOCK_N):
        scores = tl.dot(q, k_blocks.load([head + start, 0]).T)
        if MASKED:
            scores = tl.where(row[:, None] >= (start + tl.arange(0, BLOCK_N))[None, :], scores, float("-inf"))
        v = v_blocks.load([head + start, 0])
        acc, total, peak = add_block(acc, total, peak, scores, scale, v)
    return acc, total, peak


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, scale, heads, n, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr,
                     BLOCK_N: tl.constexpr, D: tl.constexpr):
    """By blocks: BLOCK_M and BLOCK_N must divide n.

    Programs take blocks of rows in turn, as many as there are: with one program for each SM, the next block's loads run
    beside this one's epilogue. Causal blocks differ in work; with a program for each block the GPU balances them.
    """
    q_blocks = tl.make_tensor_descriptor(q_ptr, [heads * n, D], [D, 1], [BLOCK_M, D])
    k_blocks = tl.make_tensor_descriptor(k_ptr, [heads * n, D], [D, 1], [BLOCK_N, D])
    v_blocks = tl.make_tensor_descriptor(v_ptr, [heads * n, D], [D, 1], [BLOCK_N, D])
    out_blocks = tl.make_tensor_descriptor(out_ptr, [heads * n, D], [D, 1], [BLOCK_M, D])
    blocks = n // BLOCK_M
    for at in range(tl.program_id(0), blocks * heads, tl.num_programs(0)):
        head = at // blocks * n
        first = at % blocks * BLOCK_M
        if CAUSAL:  # the longest rows first, so that the last programs are short
            first = n - BLOCK_M - first
        q = q_blocks.load([head + first, 0])
        row = first + tl.arange(0, BLOCK_M)
        peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, D], tl.float32)
        end = n
        if CAUSAL:  # blocks on the diagonal are masked, those before it are seen as a whole
            end = first // BLOCK_N * BLOCK_N
        acc, total, peak = add_blocks(acc, total, peak, q, k_blocks, v_blocks, head, row, 0, end, scale, False, BLOCK_N)
        if CAUSAL:
            acc, total, peak = add_blocks(acc, total, peak, q, k_blocks, v_blocks, head, row, end, first + BLOCK_M,
                                          scale, True, BLOCK_N)
        out_blocks.store([head + first, 0], (acc / total[:, None]).to(out_ptr.dtype.element_ty))


@triton.jit
def attention_any_length_kernel(q_ptr, k_ptr, v_ptr, out_ptr, scale, n, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr,
                                BLOCK_N: tl.constexpr, D: tl.constexpr):
    """By pointers, for every n."""
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * n * D
    row = first + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    inside = row[:, None] < n
    q = tl.load(q_ptr + head + row[:, None] * D + d[None, :], mask=inside, other=0.0)
    peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    end = n
    if CAUSAL:
        end = tl.minimum(first + BLOCK_M, n)
    for start in range(0, end, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        at = head + key[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=key[:, None] < n, other=0.0)
        v = tl.load(v_ptr + at, mask=key[:, None] < n, other=0.0)
        seen = key[None, :] < n
        if CAUSAL:
            seen = seen & (row[:, None] >= key[None, :])
        scores = tl.where(seen, tl.dot(q, k.T), float("-inf"))
        acc, total, peak = add_block(acc, total, peak, scores, scale, v)
    result = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + head + row[:, None] * D + d[None, :], result, mask=inside)
