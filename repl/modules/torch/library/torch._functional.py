"""torch.nn.functional, made of torch's operations: each stays one expression."""
import math
import torch
from torch import _attention, _kiln, _tensor
from torch._activations import _placed, logsigmoid
from torch._products import _product

lazily = _kiln.lazily
_wide, _along, _dim = _tensor._wide, _tensor._along, _tensor._dim


# --- layers


@lazily
def linear(input, weight, bias=None):
    input, weight, bias = _kiln.narrowed(input, weight, bias)
    if input.ndim == 0 or weight.ndim not in (1, 2) or input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(f"linear() of {tuple(input.shape)} with a weight of {tuple(weight.shape)}")
    if bias is not None and bias.dtype != input.dtype:
        raise RuntimeError(f"linear() takes tensors of one dtype, got {input.dtype} and a bias of {bias.dtype}")
    if bias is None:
        return input @ weight.t()
    # The bias is added before the sum is rounded to a half.
    return (_product(input, weight.t()) + bias).to(input.dtype)


def bilinear(input1, input2, weight, bias=None):
    # One contraction, so that the product of the inputs is never stored.
    out = torch.einsum("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else out + bias


@lazily
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if input.dtype not in (torch.int64, torch.int32):
        raise RuntimeError(f"embedding() takes places of int64 or int32, got {input.dtype}")
    if weight.ndim != 2:
        raise RuntimeError("embedding() takes a matrix of weights")
    if max_norm is not None:
        _renorm_rows(weight, input, max_norm, norm_type)
    if scale_grad_by_freq:
        raise NotImplementedError("embedding(scale_grad_by_freq=True) is not supported")
    if padding_idx is not None:
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise AssertionError("Padding_idx must be within num_embeddings")
    _kiln.check_places(input, weight.shape[0], 0, False)
    if input.ndim == 0:
        # A place alone gives one row; take() wants a dimension for the places.
        out = _kiln.take(weight, [0], [input.reshape(1, 1)]).reshape(-1)
    else:
        # The dimensions of one element let rows and places broadcast against each other.
        rows = weight.reshape([weight.shape[0]] + [1] * (input.ndim - 1) + [weight.shape[1]])
        out = _kiln.take(rows, [0], [input.unsqueeze(-1)])
    if padding_idx is not None and _kiln.records(weight):
        # That row is read like the others; only gradients pass it by.
        out = torch.where((input != padding_idx % weight.shape[0]).unsqueeze(-1), out, out.detach())
    return out


def _renorm_rows(weight, places, max_norm, norm_type):
    """Rows that are read and longer than max_norm have that length from now on."""
    with torch.no_grad():
        places = places.reshape(-1).long().unique()
        rows = weight.index_select(0, places)
        lengths = rows.norm(norm_type, -1, True)
        weight.index_copy_(0, places, torch.where(lengths > max_norm, rows * (max_norm / (lengths + 1e-7)), rows))


def one_hot(tensor, num_classes=-1):
    if tensor.dtype is not torch.int64:
        raise RuntimeError(f"one_hot() takes places of int64, got {tensor.dtype}")
    if tensor.numel() == 0 and num_classes <= 0:
        raise RuntimeError("one_hot() of no places needs num_classes")
    if num_classes == -1:
        # Reads the largest place back, which a GPU's caller can avoid by num_classes.
        num_classes = int(tensor.max()) + 1
    # On a GPU the look would wait for it; a place outside gives a row of zeros there.
    if tensor.numel() > 0 and not tensor.is_cuda and (int(tensor.min()) < 0 or int(tensor.max()) >= num_classes):
        raise RuntimeError(f"one_hot(): places are from 0 to {num_classes - 1}")
    return _hot(tensor, num_classes)


@lazily
def _hot(tensor, num_classes):
    return (tensor.unsqueeze(-1) == _kiln.iota(num_classes, tensor)).long()


def _dropped(input, p, training, shape, what):
    """One number for each element of a shape that broadcasts to the input's decides."""
    if p < 0 or p > 1:
        raise ValueError(f"{what}(p={p}): it is from 0 to 1")
    if not training or p == 0:
        return input
    if p == 1:
        # As torch, which gives NaN for what is NaN or infinite.
        return input * 0
    if not input.is_floating_point():
        raise RuntimeError(f"{what}() does not apply to tensors of {input.dtype}")
    keep = _kiln.uniform(shape, input) >= p
    # What is kept is scaled up, so that the mean stays and nothing has to change after training.
    return torch.where(keep, _wide(input) * (1 / (1 - p)), 0.0).to(input.dtype)


@lazily
def dropout(input, p=0.5, training=True, inplace=False):
    return _placed(input, _dropped(input, p, training, input.shape, "dropout"), inplace)


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    query, key, value = _kiln.narrowed(query, key, value)
    if is_causal and attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention() takes attn_mask or is_causal")
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise RuntimeError("scaled_dot_product_attention() takes tensors of one dtype")
    if not query.is_floating_point():
        raise RuntimeError(f"scaled_dot_product_attention() does not apply to tensors of {query.dtype}")
    # One over the root of the head's size, by which a sum of products of unit variance grows.
    by = query.shape[-1] ** -0.5 if scale is None else scale
    grouped = enable_gqa and query.shape[-3] != key.shape[-3]
    if dropout_p == 0 and _attention.fits(query, key, value, by, attn_mask):
        heads, of_keys = [x.shape[-3] if x.ndim > 2 else 1 for x in (query, key)]
        fits = heads == of_keys or grouped and heads % of_keys == 0
        mask_records = attn_mask is not None and _kiln.records(attn_mask)
        if fits and not mask_records and not _kiln.records(query, key, value):
            return _attention.attention(query, key, value, by, is_causal, attn_mask)
        if fits and not mask_records and not _kiln.expects_gradients():
            return _attention.attention_that_records(
                query, key, value, by, is_causal, attn_mask,
                lambda *x: _grouped_by_scores(*x, grouped, attn_mask, 0.0, is_causal, by))
        # The kernels have the gradient of fewer shapes.
        if fits and attn_mask is None and _attention.fits_gradient(query, key, value):
            return _attention.attention_with_gradient(
                query, key, value, by, is_causal, lambda *x: _grouped_by_scores(*x, grouped, None, 0.0, is_causal, by))
    return _grouped_by_scores(query, key, value, grouped, attn_mask, dropout_p, is_causal, by)


def _grouped_by_scores(query, key, value, grouped, attn_mask, dropout_p, is_causal, by):
    if grouped:
        n = query.shape[-3] // key.shape[-3]
        # Each head of keys serves several of queries, and stands so often.
        key, value = key.repeat_interleave(n, -3), value.repeat_interleave(n, -3)
    return _attention_by_scores(query, key, value, attn_mask, dropout_p, is_causal, by)


@lazily
def _attention_by_scores(query, key, value, attn_mask, dropout_p, is_causal, by):
    scores = _product(query, key.mT) * by
    keep = None
    if is_causal:
        rows = _kiln.iota(scores.shape[-2], scores).unsqueeze(1)
        # Aligned at the top left, as torch counts when there are fewer queries than keys.
        keep = _kiln.iota(scores.shape[-1], scores) <= rows
    elif attn_mask is not None and attn_mask.dtype is torch.bool:
        keep = attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask
        # Minus infinity in an additive mask means the same as False in one of bool.
        keep = scores != float("-inf")
    if keep is not None:
        scores = torch.where(keep, scores, float("-inf"))
    p = torch.softmax(scores, -1)
    if keep is not None:  # a row that may look nowhere gives zeros
        p = torch.where(keep, p, 0.0)
    if dropout_p > 0:
        p = dropout(p, dropout_p)
    return p.to(value.dtype) @ value


# --- padding and windows


def pad(input, pad, mode="constant", value=None):
    pad = list(pad)
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise RuntimeError(f"pad() by {pad} of a tensor of {input.ndim} dimensions")
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"pad(mode={mode!r}): it is 'constant', 'reflect', 'replicate' or 'circular'")
    if mode != "constant" and (len(pad) not in (2, 4, 6) or input.ndim - len(pad) // 2 not in (1, 2)):
        raise NotImplementedError(f"pad(mode={mode!r}) takes 1 to 3 dimensions to pad after one or two others")
    # An empty batch may be padded; a dimension that is repeated may not be empty.
    if mode in ("reflect", "replicate") and 0 in input.shape[int(input.ndim - len(pad) // 2 == 2):]:
        raise RuntimeError(f"pad(mode={mode!r}) takes elements to repeat, got {tuple(input.shape)}")
    if mode in ("reflect", "replicate") and input.dtype is torch.bool:
        raise NotImplementedError(f"pad(mode={mode!r}) does not apply to tensors of bool")
    # torch counts from the last dimension backwards.
    by = {input.ndim - 1 - i: (pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)}
    for d, (left, right) in by.items():
        n = input.shape[d]
        if n + left + right < (1 if mode in ("reflect", "replicate") else 0):
            raise RuntimeError(f"pad() of dimension {d} of {n} by {left} and {right}")
        # A reflection does not repeat the edge, so it must be longer than what is added; a circle may be used whole.
        circle = n + min(left, 0) + min(right, 0)  # what is cut off is no part of it
        if mode == "reflect" and (left >= n or right >= n) or mode == "circular" and max(left, right) > circle:
            raise RuntimeError(f"pad() of dimension {d} of {n} by {left} and {right} is too much for '{mode}'")
    if mode != "constant" and value not in (None, 0):
        raise RuntimeError(f"pad(mode={mode!r}) takes no value")
    # What gets nothing needs no places.
    by = {d: lr for d, lr in by.items() if lr != (0, 0)}
    if not by:
        return input.clone()
    return _padded(input, by, mode, 0 if value is None else value)


@lazily
def _padded(x, by, mode, value):
    shape = [n + by[d][0] + by[d][1] if d in by else n for d, n in enumerate(x.shape)]
    if x.numel() == 0 or 0 in shape:
        return torch.full(shape, value, dtype=x.dtype, device=x.device)
    places, inside = [], None
    for d, (left, right) in by.items():
        n = x.shape[d]
        place = _kiln.iota(shape[d], x) - left
        if mode == "replicate":
            place = place.clamp(0, n - 1)
        elif mode == "circular":
            if min(left, right) < 0:  # what is cut off is no part of the circle
                first, n = max(-left, 0), n - max(-left, 0) - max(-right, 0)
                place = (place - first) % n + first
            else:
                place = place % n
        elif mode == "reflect":
            # A zigzag: the distance from the last place, of the distance from the first.
            place = (n - 1) - ((n - 1) - place.abs()).abs()
        place = _along(place, d, x.ndim)
        if mode == "constant":
            here = None
            if left > 0:
                # Only the sides that grow are compared: a negative number crops, and what is left lies inside.
                here = place >= 0
            if right > 0:
                here = place < n if here is None else here & (place < n)
            if here is not None:
                inside = here if inside is None else inside & here
        places.append(place)
    out = _kiln.take(x, list(by), places, True)
    if inside is None:
        return out
    return torch.where(inside, out, _tensor._fits(value, x.dtype, "pad()")).to(x.dtype)


def _pair(v, n=2):
    return tuple(v) if isinstance(v, (tuple, list)) else (v,) * n


@lazily
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Windows as columns: [n, c * kh * kw, windows]."""
    out = _windows(input, _pair(kernel_size), _pair(stride), _pair(padding), _pair(dilation))
    n, c, kh, kw, h, w = out.shape
    return out.reshape(n, c * kh * kw, h * w)


def _windows(x, kernel, stride, padding, dilation):
    """[n, c, h, w] as [n, c, kh, kw, rows, columns], zeros outside."""
    n, c, h, w = x.shape
    places, inside, shape = [], None, []
    for d, size in ((0, h), (1, w)):
        # The usual count of windows: the last one must fit whole with its dilation.
        count = (size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1
        if count <= 0:
            raise RuntimeError(f"a window of {kernel} does not fit into {h} x {w}")
        place = (_kiln.iota(count, x) * stride[d] - padding[d]) + (_kiln.iota(kernel[d], x) * dilation[d]).unsqueeze(1)
        place = place.reshape(kernel[0], 1, count, 1) if d == 0 else place.reshape(1, kernel[1], 1, count)
        places.append(place)
        # Without padding every place is inside, and the comparison is left out.
        if padding[d]:
            here = (place >= 0) & (place < size)
            inside = here if inside is None else inside & here
    out = _kiln.take(x.reshape(n, c, h, w, 1, 1), [2, 3], places, True)
    return out if inside is None else torch.where(inside, out, _tensor._zero(x))


_MOST_TAPS = 256  # of a window of one channel, whose products are added up one by one
_MOST_FILTERS = 128  # of a product that makes its windows where it reads them (join_operand in compiler/fusion)
_STEP_BYTES = 128  # of a row of its operands in one step along k


def _check_steps(input, bias, stride, dilation, what):
    if bias is not None and bias.dtype != input.dtype:
        raise RuntimeError(f"{what} of {input.dtype} with a bias of {bias.dtype}: the dtypes differ")
    if any(s <= 0 for s in list(stride) + list(dilation)):
        raise RuntimeError(f"{what}: stride and dilation are positive, got {tuple(stride)} and {tuple(dilation)}")


@lazily
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """As a product of matrices: weights times windows. Of channels that stay apart, as sums over each window."""
    input, weight, bias = _kiln.narrowed(input, weight, bias)
    if input.ndim not in (3, 4) or weight.ndim != 4 or input.dtype != weight.dtype:
        raise RuntimeError("conv2d() takes [n, c, h, w] and weights [o, c, kh, kw] of one dtype")
    x = input if input.ndim == 4 else input.unsqueeze(0)
    o, c, kh, kw = weight.shape
    if x.shape[1] != c * groups or o % groups:
        raise RuntimeError(f"conv2d() of {x.shape[1]} channels with weights for {c * groups}")
    stride, dilation = _pair(stride), _pair(dilation)
    _check_steps(input, bias, stride, dilation, "conv2d()")
    if padding == "same":
        # An odd rest goes behind, as in torch.
        both = [d * (k - 1) for d, k in zip(dilation, (kh, kw))]
        x, padding = pad(x, [both[1] // 2, both[1] - both[1] // 2, both[0] // 2, both[0] - both[0] // 2]), 0
    padding = _pair(0 if padding == "valid" else padding)
    cols = _windows(x, (kh, kw), stride, padding, dilation)
    n, h, w = x.shape[0], cols.shape[4], cols.shape[5]
    if o == groups and c == 1 and kh * kw <= _MOST_TAPS:  # a product of one row leaves a tile empty
        out = (_wide(cols) * _wide(weight).reshape(o, kh, kw, 1, 1)).sum([2, 3])
    else:
        cols, weights = cols.reshape(n, groups, c, kh, kw, h * w), weight.reshape(groups, o // groups, c, kh, kw)
        # Where a step along k has channels of one tap, where it looks follows from the step and the window alone.
        if kh * kw > 1 and x.is_cuda and o // groups <= _MOST_FILTERS and c * x.element_size() % _STEP_BYTES == 0:
            cols, weights = cols.permute(0, 1, 3, 4, 2, 5), weights.permute(0, 1, 3, 4, 2)
        cols = cols.reshape(n, groups, c * kh * kw, h * w)
        weights = weights.reshape(groups, o // groups, c * kh * kw).unsqueeze(0)
        # torch's default lets convolutions use TF32, unlike products of matrices.
        if input.dtype is torch.float32 and torch.backends.cudnn.allow_tf32:
            out = weights.matmul(cols, tf32=True)
        else:
            out = _product(weights, cols)
        out = out.reshape(n, o, h, w)
    if bias is not None:
        out = out + bias.reshape(-1, 1, 1)
    out = out.to(input.dtype)
    return out if input.ndim == 4 else out[0]


@lazily
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if input.ndim not in (2, 3) or weight.ndim != 3:
        raise RuntimeError("conv1d() takes [n, c, l] and weights [o, c, k]")
    # The dimension that is added has a window of 1, a stride of 1 and no padding.
    side = padding if isinstance(padding, str) else (0, _pair(padding, 1)[0])
    out = conv2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, (1, _pair(stride, 1)[0]), side,
                 (1, _pair(dilation, 1)[0]), groups)
    return out.squeeze(-2)


def pixel_shuffle(input, upscale_factor):
    r = upscale_factor
    *lead, c, h, w = input.shape
    x = input.reshape(lead + [c // (r * r), r, r, h, w])
    n = len(lead)
    # Each channel of a group becomes one of the r * r neighbours.
    order = list(range(n)) + [n, n + 3, n + 1, n + 4, n + 2]
    x = x.permute(order).reshape(lead + [c // (r * r), h * r, w * r])
    return x.clone() if r == 1 or h == w == 1 else x  # nothing has moved: it is a view


def pixel_unshuffle(input, downscale_factor):
    r = downscale_factor
    *lead, c, h, w = input.shape
    if r <= 0 or h % r or w % r:
        raise RuntimeError(f"pixel_unshuffle() by {r} of {h} x {w}")
    n = len(lead)
    x = input.reshape(lead + [c, h // r, r, w // r, r])
    x = x.permute(list(range(n)) + [n, n + 2, n + 4, n + 1, n + 3]).reshape(lead + [c * r * r, h // r, w // r])
    return x.clone() if r == 1 or h == w == r else x  # nothing has moved: it is a view


@lazily
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sum of the windows where they were: [n, c * kh * kw, windows] as [n, c, h, w]."""
    size, kernel, step = _pair(output_size), _pair(kernel_size), _pair(stride)
    dilation, padding = _pair(dilation), _pair(padding)
    x = input if input.ndim == 3 else input.unsqueeze(0)
    counts = [(size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // step[d] + 1 for d in (0, 1)]
    if x.ndim != 3 or x.shape[1] % (kernel[0] * kernel[1]) or x.shape[2] != counts[0] * counts[1] or min(counts) <= 0:
        raise RuntimeError(f"fold() of {tuple(input.shape)} into {tuple(size)} by windows of {tuple(kernel)}")
    c = x.shape[1] // (kernel[0] * kernel[1])
    x = _wide(x).reshape(x.shape[0], c, kernel[0], kernel[1], counts[0], counts[1])
    x = _unslid(x, 2, 4, size[0], step[0], padding[0], dilation[0])
    x = _unslid(x, 2, 4, size[1], step[1], padding[1], dilation[1]).to(input.dtype)
    return x if input.ndim == 3 else x[0]


def _unslid(x, of_window, of_windows, n, stride, padding, dilation):
    """The elements of a window added up where they come from, along one dimension of n."""
    out, count = None, x.shape[of_windows]
    for k in range(x.shape[of_window]):
        # The other way round: of each element the window that it came from, so that no two threads add to one place.
        at = _kiln.iota(n, x) + (padding - k * dilation)
        place = at // stride
        on = (at % stride == 0) & (place >= 0) & (place < count)
        part = x.select(of_window, k)
        part = _kiln.take(part, [of_windows - 1], [_along(place, of_windows - 1, part.ndim)], True)
        part = torch.where(_along(on, of_windows - 1, part.ndim), part, 0.0)
        out = part if out is None else out + part
    return out


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):
    rank = input.ndim - 2
    whole = ("nearest", "nearest-exact", "area")
    between = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
    if mode not in between and mode not in whole:
        raise NotImplementedError(f"interpolate(mode={mode!r}): the modes are {', '.join(whole + tuple(between))}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate(antialias=True) takes the modes 'bilinear' and 'bicubic', not {mode!r}")
    if rank not in (1, 2, 3) or between.get(mode, rank) != rank:
        raise NotImplementedError(f"interpolate(mode={mode!r}) of {input.ndim} dimensions")
    if mode in whole and align_corners is not None:
        raise ValueError(f"interpolate(mode={mode!r}) takes no align_corners")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate() takes size or scale_factor")
    if not input.is_floating_point() and (not mode.startswith("nearest") or input.dtype is not torch.uint8):
        raise NotImplementedError(f"interpolate(mode={mode!r}) does not apply to tensors of {input.dtype}")
    given = size if scale_factor is None else scale_factor
    if isinstance(given, (tuple, list)) and len(given) != rank:
        raise ValueError(f"interpolate() takes {rank} numbers for {input.ndim} dimensions")
    given = _pair(given, rank)
    old = input.shape[2:]
    # Rounded down, as torch sizes the result.
    new = given if scale_factor is None else [math.floor(n * s) for n, s in zip(old, given)]
    if 0 in input.shape[1:] or min(new) <= 0:
        raise RuntimeError(f"interpolate() from {tuple(old)} to {tuple(new)}")
    # torch steps by the given factor, which the rounded size need not have.
    exact = scale_factor is not None and not recompute_scale_factor
    steps = [1 / s if exact else n / m for n, m, s in zip(old, new, given)]
    if mode == "area":
        pool = getattr(torch.nn.functional, f"adaptive_avg_pool{rank}d")
        return pool(input, list(new))
    if antialias:
        return _smoothed(input, new, steps, mode, align_corners)
    return _resized(input, new, steps, mode, align_corners)


@lazily
def _smoothed(input, new, steps, mode, align_corners):
    """Resized with a filter as wide as the step between results, where that is more than an element: a product with a
    matrix of weights for each dimension."""
    x = _wide(input)
    for d, (m, step) in enumerate(zip(new, steps), 2):
        n = x.shape[d]
        if align_corners:
            step = (n - 1) / (m - 1) if m > 1 else 0.0
        wide = max(step, 1.0)
        reach = wide * (2 if mode == "bicubic" else 1)
        centres = (_kiln.iota(m, x).to(x.dtype) + 0.5) * step
        low, high = [(centres + end + 0.5).trunc().unsqueeze(1) for end in (-reach, reach)]
        at = _kiln.iota(n, x).to(x.dtype)
        t = ((at - centres.unsqueeze(1) + 0.5) / wide).abs()
        if mode == "bicubic":  # Keys' with a = -0.5
            weights = torch.where(t < 1, (1.5 * t - 2.5) * t * t + 1,
                                  torch.where(t < 2, ((-0.5 * t + 2.5) * t - 4) * t + 2, 0.0))
        else:
            weights = (1 - t).clamp(min=0)
        weights = torch.where((at >= low) & (at < high), weights, 0.0)
        weights = weights / weights.sum(1, True)
        x = weights @ x if d == 2 else x @ weights.T
    return x.to(input.dtype)


def _cubic(t):
    """The weights of the elements at -1, 0, 1 and 2 of a place t behind 0: Keys' cubic convolution with a = -0.75."""
    far = [((-0.75 * u + 3.75) * u - 6) * u + 3 for u in (t + 1, 2 - t)]
    near = [(1.25 * u - 2.25) * u * u + 1 for u in (t, 1 - t)]
    return far[0], near[0], near[1], far[1]


@lazily
def _resized(input, new, steps, mode, align_corners):
    linear = not mode.startswith("nearest")
    x = _wide(input) if linear else input
    for d, (m, step) in enumerate(zip(new, steps), 2):
        n = x.shape[d]
        repeats = max(1, m // n)
        if not linear and step == 1 / repeats and m == n * repeats and repeats & (repeats - 1) == 0:
            # Powers of two are exact: each element stands so often in a row.
            at = _kiln.iota(m, x, torch.int32) >> (repeats.bit_length() - 1)
            x = _kiln.take(x, [d], [_along(at, d, x.ndim)])
            continue
        at = _kiln.iota(m, x).to(torch.float64 if x.dtype is torch.float64 else torch.float32)
        if not linear:
            at = at + 0.5 if mode == "nearest-exact" else at
            x = _kiln.take(x, [d], [_along((at * step).floor().int().clamp(max=n - 1), d, x.ndim)])
            continue
        if align_corners:
            # Both corners keep their places; of one element the first is taken.
            at = at * ((n - 1) / (m - 1) if m > 1 else 0.0)
        else:
            # The centres of the elements are aligned; what lies before the first counts as it.
            at = (at + 0.5) * step - 0.5
            at = at if mode == "bicubic" else at.clamp(min=0)
        if mode == "bicubic":
            low = at.floor()
            weights = _cubic(_along(at - low, d, x.ndim))
            taps = [_kiln.take(x, [d], [_along((low.int() + k).clamp(0, n - 1), d, x.ndim)]) for k in (-1, 0, 1, 2)]
            x = taps[0] * weights[0] + taps[1] * weights[1] + taps[2] * weights[2] + taps[3] * weights[3]
            continue
        low = at.int().clamp(max=n - 1)
        part = _along(at - low, d, x.ndim)
        a, b = [_kiln.take(x, [d], [_along(i, d, x.ndim)]) for i in (low, (low + 1).clamp(max=n - 1))]
        x = a * (1 - part) + b * part
    return x.to(input.dtype)


# --- norms


@lazily
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    if input.ndim < 2 or input.shape[1] % num_groups:
        raise RuntimeError(f"group_norm() of {tuple(input.shape)} in {num_groups} groups")
    each = input.shape[1] // num_groups
    x = _wide(input).reshape([input.shape[0], num_groups, each] + list(input.shape[2:]))
    dims = list(range(2, x.ndim))
    # By the differences, in two passes: the mean of squares less the square of the mean loses digits.
    away = x - x.mean(dims, True)
    y = away * ((away * away).mean(dims, True) + eps).rsqrt()
    shape = [num_groups, each] + [1] * (input.ndim - 2)
    if weight is not None:
        y = y * weight.reshape(shape)
    if bias is not None:
        y = y + bias.reshape(shape)
    return y.to(input.dtype).reshape(input.shape)


def _scaled(y, weight, bias):
    """Per channel."""
    shape = [-1] + [1] * (y.ndim - 2)
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


@lazily
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1,
                  eps=1e-5):
    if input.ndim < 2:
        raise RuntimeError("instance_norm() takes two dimensions or more")
    if (running_mean is None) != (running_var is None):
        raise ValueError("instance_norm() takes both running statistics or none of them")
    if not use_input_stats:
        if running_mean is None:
            raise RuntimeError("instance_norm(use_input_stats=False) takes running statistics")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    n = math.prod(input.shape[2:])
    # One value has no variance.
    if n == 1:
        raise ValueError("instance_norm() takes more than one value per channel")
    if running_mean is not None:
        x, dims = _wide(input).detach(), list(range(2, input.ndim))
        # The means over the batch, of the variance over n - 1 as in batch_norm().
        mean, var = x.mean(dims).mean(0), x.var(dims, correction=1).mean(0)
        running_mean.copy_(running_mean * (1 - momentum) + mean * momentum)
        running_var.copy_(running_var * (1 - momentum) + var * momentum)
    return group_norm(input, input.shape[1], weight, bias, eps)


@lazily
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if input.ndim < 2:
        raise RuntimeError("batch_norm() takes two dimensions or more")
    _tensor._of_floats(input, "batch_norm")
    x, shape = _wide(input), [1, -1] + [1] * (input.ndim - 2)
    if training:
        dims = [0] + list(range(2, input.ndim))
        # One value has no variance.
        if input.numel() == input.shape[1]:
            raise ValueError("batch_norm() in training takes more than one value per channel")
        mean, var = x.mean(dims), x.var(dims, correction=0)
        if running_mean is not None:
            n = input.numel() // input.shape[1]
            # Detached: the statistics must not hold the expression of every batch so far.
            running_mean.copy_(running_mean * (1 - momentum) + mean.detach() * momentum)
            # torch stores the variance over n - 1 and norms by the one over n.
            running_var.copy_(running_var * (1 - momentum) + var.detach() * (momentum * n / (n - 1)))
    else:
        mean, var = _wide(running_mean), _wide(running_var)
    y = (x - mean.reshape(shape)) * (1 / (var + eps).sqrt()).reshape(shape)
    return _scaled(y, weight, bias).to(input.dtype)


@lazily
def normalize(input, p=2.0, dim=1, eps=1e-12):
    # The smallest divisor keeps a row of zeros at zero.
    return input / input.norm(p, dim, True).clamp(min=eps)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    return torch.cosine_similarity(x1, x2, dim, eps)


@lazily
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    # As torch, eps is added to the difference and not to the norm.
    return (x1 - x2 + eps).norm(p, -1, keepdim)


# --- losses


def _reduced(loss, reduction, dtype=None):
    if reduction == "none":
        out = loss
    elif reduction == "mean":
        out = loss.mean()
    elif reduction == "sum":
        out = loss.sum()
    else:
        raise ValueError(f"there is no reduction {reduction!r}: it is 'none', 'mean' or 'sum'")
    return out if dtype is None else out.to(dtype)


def _common(input, target, what):
    """The dtype of a loss, and how far the two are apart, rounded to that as torch's kernels do."""
    dtype = torch.promote_types(input.dtype, target.dtype)
    if not dtype.is_floating_point:
        raise NotImplementedError(f"{what} does not apply to tensors of {dtype}")
    return dtype, _wide(input.to(dtype) - target.to(dtype))


@lazily
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    input, target = _kiln.widened(input, target)
    dtype, d = _common(input, target, "mse_loss()")
    return _reduced(d * d, reduction, dtype)


@lazily
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    input, target = _kiln.widened(input, target)
    dtype = torch.promote_types(input.dtype, target.dtype)
    if torch.bool in (input.dtype, target.dtype):
        raise NotImplementedError("l1_loss() does not apply to tensors of bool")
    d = (_wide(input.to(dtype)) - _wide(target.to(dtype))).abs()
    return _reduced(d, reduction, dtype if dtype.is_floating_point else None)


@lazily
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    input, target = _kiln.widened(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss() takes a beta of 0 or more")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    dtype, d = _common(input, target, "smooth_l1_loss()")
    d = d.abs()
    # The quadratic part ends at beta with the slope of the linear one.
    return _reduced(torch.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), reduction, dtype)


@lazily
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    input, target = _kiln.widened(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss() takes a delta above 0")
    _tensor._of_floats(input, "huber_loss")
    d = _common(input, target, "huber_loss()")[1].abs()
    loss = torch.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))
    return _reduced(loss if weight is None else loss * weight, reduction, input.dtype)


def _bounded_log(x):
    """As torch, a logarithm that stops at -100, as log(0) * 0 would be NaN, and a slope that stops at 1e12."""
    none = x == 0
    return torch.where(none, x * 1e12 - 100, torch.where(none, 1, x).log().clamp(min=-100))


@lazily
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    input, target = _kiln.widened(input, target)
    if input.shape != target.shape:
        raise ValueError("binary_cross_entropy() takes tensors of one shape")
    _tensor._of_floats(input, "binary_cross_entropy")
    if input.dtype != target.dtype:
        raise RuntimeError(f"binary_cross_entropy() takes floats of one dtype, got {input.dtype} and {target.dtype}")
    x, y = _wide(input), _wide(target)
    loss = -(y * _bounded_log(x) + (1 - y) * _bounded_log(1 - x))
    return _reduced(loss if weight is None else loss * weight, reduction, input.dtype)


@lazily
def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None):
    input, target = _kiln.widened(input, target)
    if input.shape != target.shape:
        raise ValueError("binary_cross_entropy_with_logits() takes tensors of one shape")
    if not input.is_floating_point() or not target.is_floating_point():
        raise NotImplementedError(f"binary_cross_entropy_with_logits() takes floats, got {input.dtype} and {target.dtype}")
    x, y = _wide(input), _wide(target)
    less = logsigmoid(x)
    # By logits: (1 - y) x - log(sigmoid(x)) has no difference of large numbers.
    loss = (1 - y) * x - less if pos_weight is None else (1 - y) * x - (1 + (pos_weight - 1) * y) * less
    return _reduced(loss if weight is None else loss * weight, reduction, target.dtype)


@lazily
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    input, target = _kiln.widened(input, target)
    if not input.is_floating_point() or not target.is_floating_point():
        raise RuntimeError(f"kl_div() takes floats, got {input.dtype} and {target.dtype}")
    dtype = torch.promote_types(input.dtype, target.dtype)
    x, y = _wide(input), _wide(target)
    # xlogy() is 0 at y = 0, where y * log(y) would be NaN.
    loss = y.exp() * (y - x) if log_target else torch.xlogy(y, y) - y * x
    if reduction == "batchmean":
        return (loss.sum() / input.shape[0] if input.ndim else loss).to(dtype)
    return _reduced(loss, reduction, dtype)


@lazily
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    input, target = _kiln.widened(input, target)
    _tensor._of_floats(input, "nll_loss")
    return _nll(input, target, weight, ignore_index, reduction, None)


def _nll(logs, target, weight, ignore_index, reduction, smooth, dtype=None):
    """`smooth`: its part, and the mean of the logarithms weighted."""
    if reduction not in ("none", "mean", "sum"):
        # Classes stand in the second dimension, or the only one.
        raise ValueError(f"there is no reduction {reduction!r}: it is 'none', 'mean' or 'sum'")
    dim = 0 if logs.ndim == 1 else 1
    rest = list(logs.shape[:dim]) + list(logs.shape[dim + 1:])
    if list(target.shape) != rest:
        raise ValueError(f"targets of {tuple(target.shape)} for {tuple(logs.shape)}")
    if target.dtype not in (torch.int64, torch.uint8):
        raise RuntimeError(f"targets are of int64, not {target.dtype}")
    target = target.long()
    n = logs.shape[dim]
    keep = target != ignore_index
    # Any valid place does: what is left out becomes 0 below.
    place = torch.where(keep, target, 0)
    _kiln.check_places(place, n, dim, False)
    dtype = dtype or logs.dtype
    logs = _wide(logs)
    loss = -_kiln.take(logs, [dim], [place.unsqueeze(dim)]).squeeze(dim)
    w = None
    if weight is not None:
        w = _kiln.take(_wide(weight), [0], [place.reshape(-1)]).reshape(place.shape)
        loss = loss * w
    if smooth is not None:
        part, means = smooth
        loss = loss * (1 - part) + means * part
    loss = torch.where(keep, loss, 0.0)
    if reduction == "none":
        return loss.to(dtype)
    if reduction == "sum":
        return loss.sum().to(dtype)
    # The mean is over the weights of what counts, as torch's.
    count = keep.to(loss.dtype) if w is None else torch.where(keep, w, 0.0)
    return (loss.sum() / count.sum()).to(dtype)


@lazily
def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    input, target = _kiln.widened(input, target)
    dim = 0 if input.ndim == 1 else 1
    _tensor._of_floats(input, "cross_entropy")
    # One pass with the largest element taken out, so that exp() does not overflow.
    logs = torch.log_softmax(_wide(input), dim)
    shaped = None
    if weight is not None:
        shaped = _along(_wide(weight), dim, input.ndim)
    if target.is_floating_point():  # probabilities
        if target.shape != input.shape:
            raise RuntimeError(f"probabilities of {tuple(target.shape)} for {tuple(input.shape)}")
        p = _wide(target)
        if label_smoothing:
            p = p * (1 - label_smoothing) + label_smoothing / input.shape[dim]
        loss = -(logs * p if shaped is None else logs * p * shaped).sum(dim)
        if reduction == "mean":
            # Per row and not per element, and not by the weights: torch's rule for probabilities.
            return (loss.sum() / (input.numel() // input.shape[dim])).to(input.dtype)
        return _reduced(loss, reduction, input.dtype)
    smooth = None
    if label_smoothing:
        # The smoothed part is the mean over all classes, each by its weight.
        smooth = label_smoothing, -(logs if shaped is None else logs * shaped).sum(dim) / input.shape[dim]
    return _nll(logs, target, weight, ignore_index, reduction, smooth, input.dtype)
