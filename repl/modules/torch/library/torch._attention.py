"""scaled_dot_product_attention in one kernel, its gradients in one or two (kernels/attention): the scores are in no
tensor."""
import torch
import triton
from torch import _kiln
from torch._attention_gradient import key_gradients_kernel, prepare_kernel, query_gradient_kernel
from torch._attention_kernel import attention_kernel, masked_attention_kernel

_LOG2_E = 1.4426950408889634
_HALVES = (torch.float16, torch.bfloat16)
_ROWS = 128  # of the largest block
_L2_BYTES = 64 << 20


def fits(query, key, value, scale, mask):
    """Whether the kernel takes them: halves, or float32 where it is faster than the scores, with heads of columns that
    TMA copies, a scale that is positive, and a mask of bool or of floats or none."""
    d = query.shape[-1]
    if mask is not None and (query.ndim > 4 or mask.ndim > query.ndim or not (
            mask.dtype is torch.bool or mask.is_floating_point() and mask.dtype is not torch.float64)):
        return False
    return (query.is_cuda and scale > 0 and 16 <= d <= 256
            and d % 8 == 0 and query.ndim >= 2 and query.numel() > 0 and key.numel() > 0
            and key.shape == value.shape and key.shape[-1] == d
            and list(query.shape[:-3]) == list(key.shape[:-3]) and query.ndim == key.ndim
            and (query.dtype in _HALVES or query.dtype is torch.float32 and mask is None and _fits_floats(query)))


def _fits_floats(query):
    """Sums in registers have room for narrow heads, and two blocks of rows for each SM hide each other's waits. By the
    scores, by the kernel and by PyTorch on an H200, us: 16 heads of 2048 x 64 causal 596, 444 and 424, full 583, 507 and
    574; 8 of 500 x 64 causal 30, 61 and 62; 16 of 1024 x 128 causal 263, 301 and 177."""
    n, d = query.shape[-2:]
    blocks = triton.cdiv(n, 64) * (query.numel() // (n * d))
    sms = _kiln.processors(query)
    return d <= 64 and blocks >= 2 * sms and not torch.backends.cuda.matmul.allow_tf32


def _flat(*tensors):
    return [x.reshape(-1, *x.shape[-2:]).contiguous() for x in tensors]


def attention(query, key, value, scale, causal, mask=None, sums=None):
    """Of tensors that fit; as many heads of query as of key, or a multiple: groups of them share one. `sums` gets the
    binary logarithm of each row's sum, if it is given; then there is no mask."""
    n, d = query.shape[-2:]
    q, k, v = _flat(query, key, value)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    heads, keys, columns = q.shape[0], k.shape[1], triton.next_power_of_2(d)
    sms = _kiln.processors(q)
    # Few blocks go to one warp group each, so that all SMs have work; so do those with a mask beside wide sums.
    small = triton.cdiv(n, 128) * heads < sms or columns > 128 and mask is not None
    rows, block, warps, stages = (64, 64, 4, 3) if small else (128, 128 if columns <= 128 else 64, 8, 2)
    if q.dtype is torch.float32:  # summed in registers, which hold less
        small = True
        rows, block, warps, stages = 64, 64 if columns == 64 and not causal else 32, 4 if columns <= 64 else 8, 2
    if mask is not None:
        if not small and mask.dtype is torch.float32:  # its elements take the registers of half a block
            block, stages = 64, 3
        strides, each = _strides_of(mask, query, keys)
        masked_attention_kernel[(triton.cdiv(n, rows) * heads,)](
            q, k, v, mask, out, scale * _LOG2_E, heads, heads // k.shape[0], n, keys, each, *strides, COLUMNS=d,
            BLOCK_M=rows, BLOCK_N=block, D=columns, num_warps=warps, num_stages=stages)
        return out.reshape(query.shape)
    if not small and causal and n <= 1024:  # less of the diagonal is computed in vain
        block, stages = 64, 3
    blocks = triton.cdiv(n, rows) * heads
    # Programs take equal blocks in turns; those under a diagonal where there are many short and narrow ones, which then
    # even out. The GPU gives out the others one by one.
    programs = sms * (8 // warps)
    in_turns = not causal or n <= 4096 and columns <= 128 and blocks >= 4 * programs
    programs = min(blocks, programs) if in_turns else blocks
    attention_kernel[(programs,)](q, k, v, out, out if sums is None else sums, scale * _LOG2_E, heads,
                                  heads // k.shape[0], n, keys, KEEPS=sums is not None, CAUSAL=causal, COLUMNS=d,
                                  BLOCK_M=rows, BLOCK_N=block, D=columns, num_warps=warps, num_stages=stages)
    return out.reshape(query.shape)


def fits_gradient(query, key, value):
    """Whether gradients are by kernels, too: of halves, two sums of blocks as wide as a head fit the registers, and
    nobody asks for the gradient of a gradient, which the kernels do not have."""
    return query.dtype in _HALVES and query.shape[-1] <= 128 and _kiln.count_scopes(query, key, value) == 1


def attention_with_gradient(query, key, value, scale, causal, by_scores):
    """Of tensors that fit. `by_scores` computes the same as an expression, for gradients of gradients."""
    made = _flat(query, key, value)
    _kiln.compute(*made)
    q, k, v = [x.detach() for x in made]
    sums = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    out = attention(q, k, v, scale, causal, None, sums)

    def rule(gradient, *operands):
        if _kiln.count_scopes(gradient, *operands) == 1:
            found = gradients(q, k, v, out, gradient.detach(), sums, scale, causal)
            return [x.reshape(operand.shape) for x, operand in zip(found, operands)]
        return _gradients_by_scores(by_scores, gradient, operands)

    return _kiln.with_gradient(out.reshape(query.shape), (query, key, value), rule)


def attention_that_records(query, key, value, scale, causal, mask, by_scores):
    """The same in a session that expects no gradients: nothing is kept for them, and should one be asked for all the
    same, it is that of the scores."""
    made = _flat(query, key, value)
    _kiln.compute(*made)
    q, k, v = [x.detach().reshape(of.shape) for x, of in zip(made, (query, key, value))]
    return _kiln.with_gradient(attention(q, k, v, scale, causal, mask), (query, key, value),
                               lambda gradient, *operands: _gradients_by_scores(by_scores, gradient, operands))


def _gradients_by_scores(by_scores, gradient, operands):
    # backward() records nothing of its own unless it makes a graph; what the scores are made of has to be known here.
    is_paused = not torch.is_grad_enabled()
    if is_paused:
        gradient, operands = gradient.detach(), [x.detach() for x in operands]
    with torch.enable_grad():
        scope = _kiln.GradScope()
        inputs = [scope.variable(x) for x in operands]
        found = scope.gradients((by_scores(*inputs),), (gradient,), inputs)
        scope.end()
    return [x.detach() for x in found] if is_paused else found


def gradients(query, key, value, out, gradient, sums, scale, causal):
    """Of attention() by the gradient of its result, to query, key and value. In one pass, whose parts of the gradient
    to query are added in any order, unless torch.use_deterministic_algorithms() asks for one order, or heads are
    narrower than the product of a warp group."""
    n, d = query.shape[-2:]
    q, k, v, do = _flat(query, key, value, gradient)
    heads, keys, columns = q.shape[0], k.shape[1], triton.next_power_of_2(d)
    group, sms = heads // k.shape[0], _kiln.processors(q)
    adds = columns >= 64 and not torch.are_deterministic_algorithms_enabled()
    stride = triton.cdiv(n, _ROWS) * _ROWS
    totals, less = [torch.empty((heads, stride), device=q.device) for _ in range(2)]
    parts = torch.empty((heads, d, stride), device=q.device) if adds else totals
    shape = dict(COLUMNS=d, D=columns)
    prepare_kernel[(heads * (stride // 64),)](do, out.reshape(do.shape), sums, totals, less, parts, n, stride,
                                              ADDS_PARTS=adds, BLOCK=64, **shape)

    def blocks_by(programs):
        return (64, 4) if programs(128) < sms else (128, 8)

    def key_programs(block, each):
        return triton.cdiv(keys, block) * (heads // each)

    # Few blocks of keys leave SMs idle in their last round: each head of a group is then a program of its own.
    whole = key_programs(128, group)
    apart = adds and group > 1 and triton.cdiv(whole, sms) * sms > 1.25 * whole
    each = 1 if apart else group
    block, warps = blocks_by(lambda block: key_programs(block, each))
    dk, dv = [torch.empty((heads // each, keys, d), dtype=torch.float32 if apart else x.dtype, device=x.device)
              for x in (k, v)]
    # Under a diagonal the first blocks of keys see most rows: programs take those of all heads first, so that the last
    # ones are short (16 heads of keys for 128 of 2048 x 128 on an H200: 1.0 ms, and 1.3 head by head). Of more heads
    # than leave what they read and add in the L2 they take some after the others, in equal turns.
    turns = triton.cdiv(heads // each, max(1, _L2_BYTES // (8 * n * d)))
    together = triton.cdiv(heads // each, turns) if causal else 1
    # Sums of 128 columns leave registers for 64 rows, and as many rows as keys take fewer barriers.
    rows = block if columns == 64 else 64
    key_gradients_kernel[(key_programs(block, each),)](
        q, k, v, do, totals, less, dk, dv, parts, stride, scale, scale * _LOG2_E, heads, group, each, together, n, keys,
        ADDS_PARTS=adds, CAUSAL=causal, BLOCK_M=rows, BLOCK_N=block, num_warps=warps, num_stages=2, **shape)
    if apart:
        dk, dv = [x.view(-1, group, keys, d).sum(1).to(k.dtype) for x in (dk, dv)]
    if adds:
        dq = (parts[:, :, :n].transpose(1, 2) * scale).to(q.dtype)
    else:
        dq = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        block, warps = blocks_by(lambda block: triton.cdiv(n, block) * heads)
        query_gradient_kernel[(triton.cdiv(n, block) * heads,)](
            q, k, v, do, totals, less, dq, stride, scale, scale * _LOG2_E, heads, group, n, keys, CAUSAL=causal,
            BLOCK_M=block, BLOCK_N=64, num_warps=warps, num_stages=2, **shape)
    return dq.reshape(query.shape), dk.reshape(key.shape), dv.reshape(value.shape)


def _strides_of(mask, query, keys):
    """Of a mask over batch, head, row and key, 0 where it repeats, and how many heads each batch has."""
    lead = [1] * (4 - query.ndim) + list(query.shape[:-2])
    return mask.expand(lead + [query.shape[-2], keys]).stride(), lead[1]
