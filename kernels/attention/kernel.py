"""Scaled dot-product attention, softmax(q k^T · scale) v, in one pass over the keys.

A program has BLOCK_M rows of q and walks over k and v by blocks of BLOCK_N, with a running maximum and sum of each
row; what earlier blocks have summed shrinks when the maximum grows. Exponents are taken to base 2: `scale` is the usual
scale times log2(e), and positive. Tensors are contiguous: q and out [heads, n, COLUMNS], k and v [heads / group,
keys, COLUMNS], where each head of k and v serves `group` heads of q.
"""
import triton
import triton.language as tl


@triton.jit
def blocks_of(ptr, heads, rows, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr):
    return tl.make_tensor_descriptor(ptr, [heads, rows, COLUMNS], [rows * COLUMNS, COLUMNS, 1], [1, BLOCK, D])


@triton.jit
def results_of(ptr, heads, rows, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr):
    """Wide blocks of results are stored in two pieces: what one of a whole block takes of shared memory, until it is
    stored, has room for a second slot of keys and values (an H200, 256 columns: 1.15 to 1.25 times as fast)."""
    WIDTH: tl.constexpr = D // 2 if D > 128 else D
    return blocks_of(ptr, heads, rows, COLUMNS, BLOCK, WIDTH)


@triton.jit
def store_results(out_blocks, head, first, result, BLOCK: tl.constexpr, D: tl.constexpr):
    if D <= 128:
        out_blocks.store([head, first, 0], result.reshape(1, BLOCK, D))
    else:
        left, right = tl.split(result.reshape(BLOCK, 2, D // 2).permute(0, 2, 1))
        out_blocks.store([head, first, 0], left.reshape(1, BLOCK, D // 2))
        out_blocks.store([head, first, D // 2], right.reshape(1, BLOCK, D // 2))


@triton.jit
def add_block(acc, total, peak, scores, scale, v):
    """One block of keys: scores [BLOCK_M, BLOCK_N] not yet scaled, v [BLOCK_N, D]; returns the new acc, total and peak.

    Scaling and subtracting the maximum are one multiply-add where the maximum is scaled by itself.
    """
    higher = tl.maximum(peak, tl.max(scores, 1) * scale)
    weights = tl.exp2(scores * scale - higher[:, None])
    shrink = tl.exp2(peak - higher)
    acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
    return acc, total * shrink + tl.sum(weights, 1), higher


@triton.jit
def add_blocks(acc, total, peak, q, k_blocks, v_blocks, head, row, begin, end, keys, scale, CAUSAL: tl.constexpr,
               MASKED: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    """The keys from `begin` to `end`. MASKED: there are only `keys`, and, if CAUSAL, row i sees none behind i."""
    for start in range(begin, end, BLOCK_N):
        scores = tl.dot(q, k_blocks.load([head, start, 0]).reshape(BLOCK_N, D).T, input_precision="ieee")
        if MASKED:
            key = start + tl.arange(0, BLOCK_N)
            seen = key[None, :] < keys
            if CAUSAL:
                seen = seen & (row[:, None] >= key[None, :])
            scores = tl.where(seen, scores, float("-inf"))
        v = v_blocks.load([head, start, 0]).reshape(BLOCK_N, D)
        acc, total, peak = add_block(acc, total, peak, scores, scale, v)
    return acc, total, peak


@triton.jit
def causal_block(at, blocks, heads, group, elements):
    """The longest rows of all heads first: who ends early takes the next ones, and the last ones are short (an H200, 3
    heads of 12000 x 64: 182 us head by head, 131 so). As many heads at once as an L2 has keys and values for, 40 MB of
    `elements` each; then as many others."""
    together = tl.minimum(tl.maximum((10 << 20) // elements, 1) * group, heads)
    together = tl.cdiv(heads, tl.cdiv(heads, together))
    before = at // (together * blocks) * together
    these = tl.minimum(heads - before, together)
    at -= before * blocks
    return before + at % these, blocks - 1 - at // these


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, sums_ptr, scale, heads, group, n, keys, KEEPS: tl.constexpr,
                     CAUSAL: tl.constexpr, COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                     D: tl.constexpr):
    """Of any length, which TMA clips. D is the power of two from COLUMNS on. KEEPS: the binary logarithm of each row's
    sum goes to `sums` [heads, n], for gradients (gradient.py).

    Programs take blocks of rows in turn, as many as there are: with one program for each SM, the next block's loads run
    beside this one's epilogue. Causal blocks differ in work: they go from long to short, and every second turn the
    other way, so that each program gets as much.
    """
    q_blocks = blocks_of(q_ptr, heads, n, COLUMNS, BLOCK_M, D)
    k_blocks = blocks_of(k_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    v_blocks = blocks_of(v_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    out_blocks = results_of(out_ptr, heads, n, COLUMNS, BLOCK_M, D)
    blocks = tl.cdiv(n, BLOCK_M)
    programs = tl.num_programs(0)
    for place in range(tl.program_id(0), blocks * heads, programs):
        at = place
        if CAUSAL and place // programs % 2 == 1:
            turn = place // programs * programs
            at = turn + tl.minimum(turn + programs, blocks * heads) - 1 - place
        if CAUSAL:
            head, block = causal_block(at, blocks, heads, group, keys * COLUMNS)
        else:
            head, block = at // blocks, at % blocks
        first = block * BLOCK_M
        q = q_blocks.load([head, first, 0]).reshape(BLOCK_M, D)
        row = first + tl.arange(0, BLOCK_M)
        peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, D], tl.float32)
        # Only the diagonal's blocks and the last one are masked; those before are seen as a whole.
        end = tl.minimum(first + BLOCK_M, keys) if CAUSAL else keys
        whole = (tl.minimum(first, keys) if CAUSAL else keys) // BLOCK_N * BLOCK_N
        acc, total, peak = add_blocks(acc, total, peak, q, k_blocks, v_blocks, head // group, row, 0, whole, keys,
                                      scale, CAUSAL, False, BLOCK_N, D)
        acc, total, peak = add_blocks(acc, total, peak, q, k_blocks, v_blocks, head // group, row, whole, end, keys,
                                      scale, CAUSAL, True, BLOCK_N, D)
        result = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
        store_results(out_blocks, head, first, result, BLOCK_M, D)
        if KEEPS:
            tl.store(sums_ptr + head.to(tl.int64) * n + row, peak + tl.log2(total), mask=row < n)


@triton.jit
def masked_attention_kernel(q_ptr, k_ptr, v_ptr, mask_ptr, out_ptr, scale, heads, group, n, keys, each, stride_batch,
                            stride_head, stride_row, stride_key, COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr,
                            BLOCK_N: tl.constexpr, D: tl.constexpr):
    """The same with a mask [heads / each, each, n, keys] of any strides: of bool, where a row looks, or of numbers that
    are added to the scaled scores. A row that looks nowhere gives zeros. One block of rows for each program."""
    q_blocks = blocks_of(q_ptr, heads, n, COLUMNS, BLOCK_M, D)
    k_blocks = blocks_of(k_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    v_blocks = blocks_of(v_ptr, heads // group, keys, COLUMNS, BLOCK_N, D)
    out_blocks = results_of(out_ptr, heads, n, COLUMNS, BLOCK_M, D)
    CHOOSES: tl.constexpr = mask_ptr.dtype.element_ty == tl.int1
    blocks = tl.cdiv(n, BLOCK_M)
    head = tl.program_id(0) // blocks
    first = tl.program_id(0) % blocks * BLOCK_M
    row = first + tl.arange(0, BLOCK_M)
    of_rows = mask_ptr + (head // each).to(tl.int64) * stride_batch + (head % each).to(tl.int64) * stride_head + \
        row.to(tl.int64) * stride_row
    q = q_blocks.load([head, first, 0]).reshape(BLOCK_M, D)
    peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    for start in range(0, keys, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        inside = (row < n)[:, None] & (key < keys)[None, :]
        mask = tl.load(of_rows[:, None] + key[None, :] * stride_key, mask=inside, other=0)
        k = k_blocks.load([head // group, start, 0]).reshape(BLOCK_N, D)
        scores = tl.dot(q, k.T, input_precision="ieee") * scale
        if CHOOSES:
            scores = tl.where(mask, scores, float("-inf"))
        else:
            scores = tl.where(inside, scores + mask.to(tl.float32) * 1.4426950408889634, float("-inf"))
        v = v_blocks.load([head // group, start, 0]).reshape(BLOCK_N, D)
        higher = tl.maximum(peak, tl.max(scores, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)  # so far the row has looked nowhere
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(peak - base)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        total = total * shrink + tl.sum(weights, 1)
        peak = higher
    result = (acc / tl.where(total == 0.0, 1.0, total)[:, None]).to(out_ptr.dtype.element_ty)
    store_results(out_blocks, head, first, result, BLOCK_M, D)
