"""Layers of torch.nn.functional beside torch._functional's: convolutions, sampling at places, bags of embeddings."""
import math
import torch
import triton
import triton.language as tl
from torch import _kiln, _tape, _tensor
from torch._activations import _placed
from torch._functional import _check_steps, _cubic, _dropped, _pair, _renorm_rows, _unslid, embedding, pad
from torch._pools import _product as _count, avg_pool2d
from torch._products import _product

lazily = _kiln.lazily
_wide, _along = _tensor._wide, _tensor._along


# --- attention with projections


class _Projections:
    """What torch.nn.MultiheadAttention asks of itself, of tensors that are given to a function."""


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k,
                                 bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True,
                                 key_padding_mask=None, need_weights=True, attn_mask=None,
                                 use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,
                                 v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True,
                                 is_causal=False):
    from torch._nn_recurrent import MultiheadAttention
    if static_k is not None or static_v is not None:
        raise NotImplementedError("multi_head_attention_forward() takes no static_k and static_v")
    if query.shape[-1] != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {query.shape[-1]}")
    m = _Projections()
    m.embed_dim, m.num_heads, m.head_dim = embed_dim_to_check, num_heads, embed_dim_to_check // num_heads
    m.kdim, m.vdim, m.batch_first, m.training = key.shape[-1], value.shape[-1], False, training
    m.in_proj_weight = None if use_separate_proj_weight else in_proj_weight
    m.q_proj_weight, m.k_proj_weight, m.v_proj_weight = q_proj_weight, k_proj_weight, v_proj_weight
    m.in_proj_bias, m.bias_k, m.bias_v, m.add_zero_attn = in_proj_bias, bias_k, bias_v, add_zero_attn
    m.dropout, m.out_proj = dropout_p, lambda x: torch.nn.functional.linear(x, out_proj_weight, out_proj_bias)
    return MultiheadAttention.forward(m, query, key, value, key_padding_mask, need_weights, attn_mask,
                                      average_attn_weights, is_causal)


# --- convolutions


def _convolved(input, weight, bias, stride, padding, dilation, groups, rank, what):
    """As a product of matrices: weights times windows, which are looked up."""
    input, weight, bias = _kiln.narrowed(input, weight, bias)
    if input.ndim not in (rank + 1, rank + 2) or weight.ndim != rank + 2 or input.dtype != weight.dtype:
        raise RuntimeError(f"{what} takes [n, c, …] with {rank} dimensions of space and weights [o, c, …] of one dtype")
    x = input if input.ndim == rank + 2 else input.unsqueeze(0)
    o, c, kernel = weight.shape[0], weight.shape[1], weight.shape[2:]
    if x.shape[1] != c * groups or o % groups:
        raise RuntimeError(f"{what} of {x.shape[1]} channels with weights for {c * groups}")
    stride, dilation = _pair(stride, rank), _pair(dilation, rank)
    _check_steps(input, bias, stride, dilation, what)
    if padding == "same":
        both = [d * (k - 1) for d, k in zip(dilation, kernel)]
        x, padding = pad(x, [p for b in reversed(both) for p in (b // 2, b - b // 2)]), 0
    padding = _pair(0 if padding == "valid" else padding, rank)
    places, counts, inside = [], [], None
    for i, (n, k) in enumerate(zip(x.shape[2:], kernel)):
        count = (n + 2 * padding[i] - dilation[i] * (k - 1) - 1) // stride[i] + 1
        if count <= 0:
            raise RuntimeError(f"a window of {tuple(kernel)} does not fit into {tuple(x.shape[2:])}")
        place = _along(_kiln.iota(k, x) * dilation[i] - padding[i], i, 2 * rank)
        place = place + _along(_kiln.iota(count, x) * stride[i], rank + i, 2 * rank)
        if padding[i]:
            here = (place >= 0) & (place < n)
            inside = here if inside is None else inside & here
        places.append(place)
        counts.append(count)
    cols = _kiln.take(x.reshape(list(x.shape) + [1] * rank), list(range(2, 2 + rank)), places, True)
    if inside is not None:
        cols = torch.where(inside, cols, _tensor._zero(x))
    cols = cols.reshape(x.shape[0], groups, c * _count(kernel), _count(counts))
    out = _product(weight.reshape(groups, o // groups, c * _count(kernel)).unsqueeze(0), cols)
    return _biased(out.reshape([x.shape[0], o] + counts), bias, input, rank)


def _biased(out, bias, input, rank):
    if bias is not None:
        out = out + bias.reshape([-1] + [1] * rank)
    out = out.to(input.dtype)
    return out if input.ndim == rank + 2 else out[0]


@lazily
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _convolved(input, weight, bias, stride, padding, dilation, groups, 3, "conv3d()")


def _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, rank):
    """As a product of matrices: each element's window, added up where the windows meet."""
    input, weight, bias = _kiln.narrowed(input, weight, bias)
    what = f"conv_transpose{rank}d()"
    if input.ndim not in (rank + 1, rank + 2) or weight.ndim != rank + 2 or input.dtype != weight.dtype:
        raise RuntimeError(f"{what} takes [n, c, …] with {rank} dimensions of space and weights [c, o, …] of one dtype")
    x = input if input.ndim == rank + 2 else input.unsqueeze(0)
    c, o, kernel, sizes = weight.shape[0], weight.shape[1], list(weight.shape[2:]), list(x.shape[2:])
    if x.shape[1] != c or c % groups:
        raise RuntimeError(f"{what} of {x.shape[1]} channels with weights for {c}")
    stride, padding, more, dilation = [_pair(v, rank) for v in (stride, padding, output_padding, dilation)]
    _check_steps(input, bias, stride, dilation, what)
    out_sizes = []
    for i in range(rank):
        if more[i] >= stride[i] and more[i] >= dilation[i] or more[i] < 0:
            raise RuntimeError(f"{what}: output_padding is smaller than the stride or the dilation")
        out_sizes.append((sizes[i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + more[i] + 1)
    if min(out_sizes) <= 0:
        raise RuntimeError(f"{what} of {tuple(sizes)} would be of {tuple(out_sizes)}")
    w = weight.reshape(groups, c // groups, o * _count(kernel)).mT
    y = _product(w.unsqueeze(0), x.reshape(x.shape[0], groups, c // groups, _count(sizes)))
    y = _wide(y).reshape([x.shape[0], groups * o] + kernel + sizes)
    for i in range(rank):
        y = _unslid(y, 2, 2 + rank, out_sizes[i], stride[i], padding[i], dilation[i])
    return _biased(y, bias, input, rank)


@lazily
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 1)


@lazily
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


@lazily
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


# --- sampling


def _from_minus_1(n, like, align_corners):
    """n places from -1 to 1: of the first and last element's centres, or of all elements' centres."""
    i = _kiln.iota(n, like).to(like.dtype)
    if n == 1:
        return i
    return i * (2 / (n - 1)) - 1 if align_corners else (i * 2 - (n - 1)) / n


@lazily
def affine_grid(theta, size, align_corners=None):
    sizes = list(size)[2:]
    rank = len(sizes)
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid() takes matrices of floats, got {theta.dtype}")
    if rank not in (2, 3) or list(theta.shape) != [size[0], rank, rank + 1] or min(size) <= 0:
        raise (NotImplementedError if rank not in (1, 2, 3) else ValueError)(
            f"affine_grid() of {tuple(theta.shape)} for {tuple(size)}")
    theta = theta.reshape([size[0]] + [1] * rank + [rank, rank + 1])
    grid = theta[..., rank]
    for i in range(rank):  # x, the last dimension of the grid, comes first
        along = _from_minus_1(sizes[rank - 1 - i], theta, align_corners)
        grid = grid + _along(along, rank - i, rank + 2) * theta[..., i]
    return grid


def _at_pixels(g, n, align_corners, padding_mode):
    """A coordinate from -1 to 1 as a place in a dimension of n."""
    x = (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2
    return _moved_inside(x, n, align_corners, padding_mode)


def _moved_inside(x, n, align_corners, padding_mode):
    """Places outside of a dimension of n as places inside, but for zeros."""
    if padding_mode == "reflection":
        low, twice = (0.0, 2 * (n - 1)) if align_corners else (-0.5, 2 * n)
        span = twice / 2
        if span == 0:
            x = x * 0
        else:
            x = (x - low).abs()
            past, turns = torch.fmod(x, span), (x / span).floor()
            x = torch.where(turns % 2 == 0, past + low, span - past + low)
    return x.clamp(0, n - 1) if padding_mode != "zeros" else x


@lazily
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    rank = input.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample(mode={mode!r}, padding_mode={padding_mode!r})")
    if mode == "bicubic" and rank != 2:
        raise RuntimeError("grid_sample(mode='bicubic') takes input of 4 dimensions")
    if rank not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != rank or grid.shape[0] != input.shape[0] or (
            input.dtype != grid.dtype) or not input.is_floating_point() or 0 in input.shape[2:]:
        raise RuntimeError(f"grid_sample() of {tuple(input.shape)} at {tuple(grid.shape)}")
    x, shape = _wide(input), [grid.shape[0], 1] + list(grid.shape[1:-1])
    # Of bicubic sampling each of the 16 pixels is moved inside by itself.
    moves = "zeros" if mode == "bicubic" else padding_mode
    at = [_at_pixels(_wide(grid[..., rank - 1 - i]).reshape(shape), input.shape[2 + i], align_corners, moves)
          for i in range(rank)]

    def element(places):
        """Of all channels; 0 outside."""
        inside = None
        for p, n in zip(places, input.shape[2:]):
            here = (p >= 0) & (p <= n - 1)
            inside = here if inside is None else inside & here
        narrow = max(input.shape[2:]) < 2**31
        places = [p.to(torch.int32 if narrow else torch.int64) for p in places]
        return torch.where(inside, _kiln.take(x, list(range(2, 2 + rank)), places, True), 0)

    if mode == "bicubic":
        lows = [p.floor() for p in at]
        weights = [_cubic(p - low) for p, low in zip(at, lows)]
        out = None
        for i in range(4):
            for j in range(4):
                places = [_moved_inside(low + (k - 1), n, align_corners, padding_mode)
                          for low, k, n in zip(lows, (i, j), input.shape[2:])]
                part = element(places) * (weights[0][i] * weights[1][j])
                out = part if out is None else out + part
        return out.to(input.dtype)
    if mode == "nearest":
        return element([p.round() for p in at]).to(input.dtype)
    lows, out = [p.floor() for p in at], None
    for corner in range(2 ** rank):
        up = [corner >> i & 1 for i in range(rank)]
        w = None
        for p, low, u in zip(at, lows, up):
            part = p - low if u else low + 1 - p
            w = part if w is None else w * part
        part = element([low + 1 if u else low for low, u in zip(lows, up)]) * w
        out = part if out is None else out + part
    return out.to(input.dtype)


# --- channels


@lazily
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    if input.ndim < 3:
        raise ValueError(f"local_response_norm() takes 3 dimensions or more, got {input.ndim}")
    if input.numel() == 0:
        return input
    squares = (input * input).reshape(input.shape[0], 1, input.shape[1], -1)
    squares = pad(squares, (0, 0, size // 2, (size - 1) // 2))
    mean = avg_pool2d(squares, (size, 1), 1).reshape(input.shape)
    return input / (mean * alpha + k) ** beta


def channel_shuffle(input, groups):
    if input.ndim < 3 or groups <= 0 or input.shape[1] % groups:
        raise RuntimeError(f"channel_shuffle() of {tuple(input.shape)} in {groups} groups")
    n, c = input.shape[:2]
    x = input.reshape([n, groups, c // groups] + list(input.shape[2:]))
    x = x.transpose(1, 2).reshape(input.shape)
    return x.clone() if groups in (1, c) else x  # nothing has moved: it is a view


@lazily
def dropout1d(input, p=0.5, training=True, inplace=False):
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d() takes [n, c, l] or [c, l], got {tuple(input.shape)}")
    return _placed(input, _dropped(input, p, training, list(input.shape[:-1]) + [1], "dropout1d"), inplace)


@lazily
def dropout2d(input, p=0.5, training=True, inplace=False):
    """Of [n, c, …]; three dimensions are those of [n, c, l], as in torch."""
    shape = list(input.shape[:2]) + [1] * (input.ndim - 2)
    return _placed(input, _dropped(input, p, training, shape, "dropout2d"), inplace)


@lazily
def dropout3d(input, p=0.5, training=True, inplace=False):
    lead = 1 if input.ndim == 4 else 2
    shape = list(input.shape[:lead]) + [1] * (input.ndim - lead)
    return _placed(input, _dropped(input, p, training, shape, "dropout3d"), inplace)


@lazily
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    uniform = _kiln.uniform(logits.shape, logits)
    soft = torch.softmax((logits - (-torch.log(1 - uniform)).log().to(logits.dtype)) / tau, dim)
    if not hard:
        return soft
    d = _tensor._dim(dim, logits.ndim)
    one = _along(_kiln.iota(logits.shape[d], logits), d, logits.ndim) == soft.argmax(d, True)
    return one.to(soft.dtype) - soft + soft


# --- distances


@lazily
def pdist(input, p=2.0):
    """Between rows i < j, in the order of the pairs."""
    if input.ndim != 2 or not input.is_floating_point() or p < 0:
        raise RuntimeError(f"pdist(p={p}) of {input.dtype} {tuple(input.shape)}: it takes rows of floats")
    n = input.shape[0]
    if n < 2:
        return input.new_empty((0,))
    k = _kiln.iota(n * (n - 1) // 2, input, torch.int64)
    # Row i has the pairs from i * (2n - i - 1) / 2 on; the root is off by one at most.
    b = 2 * n - 1
    i = ((b - (b * b - 8 * k).double().sqrt()) / 2).floor().long().clamp(0, n - 2)
    i = torch.where(i * (b - i) // 2 > k, i - 1, i)
    i = torch.where((i + 1) * (b - 1 - i) // 2 <= k, i + 1, i)
    j = k - i * (b - i) // 2 + i + 1
    x, y = [_kiln.take(input, [0], [places.reshape(-1, 1)]) for places in (i, j)]
    return (x - y).norm(p, -1)


# --- bags of embeddings


@triton.jit
def _bag_kernel(places, ends, weight, scales, out, bags, columns, rows, skip, MODE: tl.constexpr, SCALED: tl.constexpr,
                BLOCK: tl.constexpr):
    """One bag's rows combined, in their order; a row outside of the weights is NaN."""
    bag = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    begin, end = tl.load(ends + bag), tl.load(ends + bag + 1)
    least = float("-inf") if MODE == "max" else 0.0
    total = tl.full((BLOCK,), least, tl.float64 if out.dtype.element_ty == tl.float64 else tl.float32)
    count = end * 0
    for i in range(begin, end):
        at = tl.load(places + i).to(tl.int64)
        if at != skip:
            found = (at >= 0) & (at < rows)
            row = tl.load(weight + at * columns + column, mask=inside & found, other=float("nan")).to(total.dtype)
            if SCALED:
                row = row * tl.load(scales + i).to(total.dtype)
            if MODE == "max":
                total = tl.maximum(total, row, propagate_nan=tl.PropagateNan.ALL)
            else:
                total += row
            count += 1
    if MODE == "mean":
        total = total / tl.maximum(count, 1).to(total.dtype)
    total = tl.where(count > 0, total, 0.0)
    tl.store(out + bag * columns + column, total.to(out.dtype.element_ty), mask=inside)


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag(mode={mode!r}): it is 'sum', 'mean' or 'max'")
    if max_norm is not None:
        _renorm_rows(weight, input, max_norm, norm_type)
    if weight.ndim != 2 or input.dtype not in (torch.int64, torch.int32) or not weight.is_floating_point():
        raise RuntimeError(f"embedding_bag() of {input.dtype} places in {weight.dtype} {tuple(weight.shape)}")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError("embedding_bag() takes per_sample_weights with mode='sum'")
        if per_sample_weights.shape != input.shape or per_sample_weights.dtype != weight.dtype:
            raise ValueError("embedding_bag() takes per_sample_weights like the input, of the weight's dtype")
    if padding_idx is not None:
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise ValueError(f"embedding_bag(padding_idx={padding_idx}) of {weight.shape[0]} rows")
        padding_idx %= weight.shape[0]
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("embedding_bag() takes no offsets with two dimensions")
        return _bags_of_one_size(input, weight, mode, per_sample_weights, padding_idx)
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ValueError("embedding_bag() takes two dimensions, or one and a vector of offsets")
    _kiln.check_places(input, weight.shape[0], 0, False)
    if not offsets.is_cuda:  # what a GPU holds is not looked at
        given = offsets.tolist()
        if given and (given[0] != 0 or given[-1] > input.numel()):
            raise ValueError(f"embedding_bag(): offsets from 0 to {input.numel()}, got {given[0]} to {given[-1]}")
    ends = offsets.long()
    if not include_last_offset:
        ends = torch.cat([ends, torch.full((1,), input.numel(), dtype=torch.int64, device=ends.device)])
    def rule(gradient, weight, scales=None):
        if mode == "max":
            raise NotImplementedError("embedding_bag(mode='max') has no gradient")
        places = torch.arange(input.numel(), device=input.device)
        bag = torch.searchsorted(ends, places, right=True) - 1
        keep = (bag >= 0) & (bag < ends.numel() - 1)
        if padding_idx is not None:
            keep = keep & (input != padding_idx)
        bag = bag.clamp(0, max(ends.numel() - 2, 0))
        rows = torch.where(keep.unsqueeze(1), gradient[bag], 0)
        if mode == "mean":
            count = torch.zeros(gradient.shape[:1], dtype=gradient.dtype, device=gradient.device)
            count = count.index_add(0, bag, keep.to(gradient.dtype)).clamp(min=1)
            rows = rows / count[bag].unsqueeze(1)
        to_scales = () if scales is None else ((rows * weight[input]).sum(1),)
        rows = rows if scales is None else rows * scales.unsqueeze(1)
        return (torch.zeros_like(weight).index_add(0, input, rows),) + to_scales

    operands = (weight,) if per_sample_weights is None else (weight, per_sample_weights)
    return _tape.with_rule(lambda *of: _bags(input, ends, mode, padding_idx, *of), operands, rule)


def _bags(input, ends, mode, padding_idx, weight, per_sample_weights=None):
    bags, columns = ends.numel() - 1, weight.shape[1]
    out = torch.empty((bags, columns), dtype=weight.dtype, device=weight.device)
    block = min(256, max(16, triton.next_power_of_2(columns)))
    if out.numel() > 0:
        scales = weight if per_sample_weights is None else per_sample_weights.contiguous()
        _bag_kernel[(bags, triton.cdiv(columns, block))](
            input.contiguous(), ends.contiguous(), weight.contiguous(), scales, out, bags, columns, weight.shape[0],
            -2**40 if padding_idx is None else padding_idx, MODE=mode, SCALED=per_sample_weights is not None, BLOCK=block,
            num_warps=4 if block > 64 else 1)
    return out


@lazily
def _bags_of_one_size(input, weight, mode, scales, padding_idx):
    x = _wide(embedding(input, weight))
    if input.numel() == 0:
        return weight.new_zeros((input.shape[0], weight.shape[1]))
    keep = None if padding_idx is None else (input != padding_idx).unsqueeze(-1)
    if scales is not None:
        x = x * _wide(scales).unsqueeze(-1)
    if mode == "max":
        if keep is None:
            return x.amax(1).to(weight.dtype)
        most = torch.where(keep, x, float("-inf")).amax(1)
        return torch.where(keep.any(1), most, 0).to(weight.dtype)
    x = (x if keep is None else torch.where(keep, x, 0)).sum(1)
    if mode == "mean":
        x = x / (input.shape[1] if keep is None else keep.sum(1).clamp(min=1))
    return x.to(weight.dtype)
