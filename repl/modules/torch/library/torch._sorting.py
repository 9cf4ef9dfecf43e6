"""Sorting and what follows from it, putting elements, and functions along dimensions: all are methods too."""
import torch
from torch import _kiln, _tape, _tensor, return_types
from torch._elementwise import lerp
from torch._tensor import _dim, _wide, flip, gather, movedim, narrow, select

lazily = _kiln.lazily


def _looked_up(results, input, dim, pair):
    """`results` of values and places, with the values as elements of `input` where that has a gradient."""
    if not _kiln.records(input):
        return results(pair)
    return results((gather(input, dim, pair[1]), pair[1]))


_FEWEST = 5  # elements along the dimension from which on places take time of their own


def _late(input, dim, k, function, orders=None):
    """function(input, has_values, has_places) when one of them is needed, of what is still there then: sort(x)[0] makes
    no places. Both are as long as `k` along the dimension. None where nothing is gained."""
    if input.ndim == 0 or input.shape[dim] < _FEWEST or input.numel() == 0 or k == 0 or not _kiln.runs_kernels(input):
        return None
    return _kiln.late(function, input, [k if d == dim else n for d, n in enumerate(input.shape)], orders)


def sort(input, dim=-1, descending=False, *, stable=False):
    dim = _dim(dim, input.ndim)
    pair = _late(input, dim, input.shape[dim] if input.ndim else 1,
                 lambda x, has_values, has_places: _kiln.sort(x, dim, descending, has_values, has_places, stable), dim)
    results = return_types.sort
    return results(pair) if pair else _looked_up(results, input, dim, _kiln.sort(input.detach(), dim, descending))


def argsort(input, dim=-1, descending=False, *, stable=False):
    dim = _dim(dim, input.ndim)
    if descending or not _kiln.is_order(input, dim):
        return sort(input, dim, descending)[1]
    # An order sorted is its inverse: where each element went.
    counts = torch.arange(input.shape[dim], device=input.device)
    counts = counts.reshape([-1 if d == dim else 1 for d in range(input.ndim)]).expand(input.shape)
    return torch.empty_like(input).scatter_(dim, input, counts)


def msort(input):
    return sort(input, 0)[0]


def topk(input, k, dim=-1, largest=True, sorted=True):
    dim = _dim(dim, input.ndim)
    n = input.shape[dim] if input.ndim else 1
    if k < 0 or k > n:
        raise RuntimeError(f"topk() of {k} from a dimension of {n}")
    if input.dtype is torch.bool:
        raise NotImplementedError("topk() does not apply to tensors of bool")
    pair = _late(input, dim, k,
                 lambda x, has_values, has_places: _kiln.topk(x, k, dim, largest, has_values, has_places))
    results = return_types.topk
    return results(pair) if pair else _looked_up(results, input, dim, _kiln.topk(input.detach(), k, dim, largest))


def kthvalue(input, k, dim=-1, keepdim=False):
    dim = _dim(dim, input.ndim)
    if input.dtype is torch.bool:
        raise NotImplementedError("kthvalue() does not apply to tensors of bool")
    if k < 1 or k > (input.shape[dim] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): there is no element number {k}")
    found = _ranked(return_types.kthvalue, input, dim, k - 1, False, keepdim)
    if found:
        return found
    return _of_sorted(return_types.kthvalue, input, dim, keepdim, lambda x: k - 1)


def _of_sorted(results, input, dim, keepdim, rank):
    """The elements of a sort at a rank, which follows from the tensor: a number, or one for each row."""

    def picked(x, pair):
        at = rank(x)
        if isinstance(at, int):
            return [None if t is None else narrow(t, dim, at, 1) for t in pair]
        return [None if t is None else gather(t, dim, at) for t in pair]

    def late(x, has_values, has_places):
        return tuple(picked(x, _kiln.sort(x, dim, False, has_values, has_places, False)))

    x = input.reshape(1) if input.ndim == 0 else input
    out = _late(x, dim, 1, late) or picked(x, sort(x, dim))
    if input.ndim == 0:
        return results(t.reshape(()) for t in out)
    return results(out if keepdim else (t.squeeze(dim) for t in out))


def _ranked(results, input, dim, rank, nan_first, keepdim):
    """What a stable sort puts at this place along the dimension, and where it was; None where a sort takes less time."""
    found = None if input.ndim == 0 else _kiln.ranked(input.detach(), dim, rank, nan_first)
    if found is None:
        return None
    pair = _looked_up(results, input, dim, [t.unsqueeze(dim) for t in found])
    return pair if keepdim else results(t.squeeze(dim) for t in pair)


def _elements_along(input, dim, function):
    """The dimension from 0, the tensor with at least one, and how many elements there are along it."""
    dim = _dim(dim, input.ndim)
    x = input.reshape(1) if input.ndim == 0 else input
    n = x.shape[dim]
    if n == 0:
        raise IndexError(f"{function}() along a dimension without elements")
    return dim, x, n


def median(input, dim=None, keepdim=False):
    if input.dtype is torch.bool:
        raise NotImplementedError("median() does not apply to tensors of bool")
    if dim is None:
        if input.numel() == 0:
            return input.new_full((), float("nan"))
        return median(input.reshape(-1), 0)[0]
    dim, x, n = _elements_along(input, dim, "median")
    found = _ranked(return_types.median, input, dim, (n - 1) // 2, True, keepdim)
    if found:
        return found

    def middle(x):
        if not x.is_floating_point():
            return (n - 1) // 2
        valid = (~x.isnan()).sum(dim, True)
        return torch.where(valid < n, valid, (n - 1) // 2)

    return _of_sorted(return_types.median, input, dim, keepdim, middle)


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    return _quantile(input, q, dim, keepdim, interpolation, False)


def _quantile(input, q, dim, keepdim, interpolation, skip_nan):
    if input.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"quantile() takes floats of 32 or 64 bits, got {input.dtype}")
    if input.numel() == 0:
        raise RuntimeError("quantile() of no elements")
    number = not isinstance(q, torch.Tensor)
    qs = torch.tensor(q, dtype=input.dtype, device=input.device) if number else q
    if qs.ndim > 1 or qs.dtype != input.dtype:
        raise RuntimeError("quantile() takes a number or a vector of the tensor's dtype")
    # What a GPU holds is not looked at.
    if number and not 0 <= q <= 1 or not qs.is_cuda and any(not 0 <= v <= 1 for v in qs.reshape(-1).tolist()):
        raise RuntimeError("quantile() takes numbers from 0 to 1")
    if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise RuntimeError(f"quantile(interpolation={interpolation!r})")
    x, d = (input.reshape(-1), 0) if dim is None else (input, _dim(dim, input.ndim))
    x = x.reshape(1) if x.ndim == 0 else x
    line = movedim(sort(x, d)[0], d, -1)
    out = movedim(_between(line, qs.reshape(-1), interpolation, skip_nan), -1, 0)
    if keepdim:
        out = out.reshape([out.shape[0]] + [1] * input.ndim) if dim is None else out.unsqueeze(d + 1)
    if input.ndim == 0:
        out = out.reshape(-1)
    return out[0] if qs.ndim == 0 else out


@lazily
def _between(line, qs, interpolation, skip_nan):
    """Of sorted lines, NaN at their ends, the elements at a part of their length."""
    n = line.shape[-1]
    last = ((~line.isnan()).sum(-1, True) - 1).clamp(min=0).to(qs.dtype) if skip_nan else n - 1
    rank = qs * last
    if interpolation == "lower":
        rank = rank.floor()
    elif interpolation == "higher":
        rank = rank.ceil()
    elif interpolation == "nearest":
        rank = rank.round()
    low = rank.floor()
    weight = rank - low if interpolation != "midpoint" else torch.where(rank > low, 0.5, 0.0 * rank)
    shape = list(line.shape[:-1]) + [qs.numel()]
    a, b = [gather(line, -1, r.long().expand(shape)) for r in (low, rank.ceil())]
    out = lerp(a, b, weight.expand(shape))
    if skip_nan:
        return out
    return torch.where(line[..., -1:].isnan(), float("nan"), out)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    _tensor._needs_tensor(input, "unique")
    if dim is not None:
        rows, order = input.movedim(dim, 0), None
        flat = rows.reshape(rows.shape[0], -1)
        # By all columns, the first one last: a stable sort keeps what the others have found.
        for i in range(flat.shape[1] - 1, -1, -1):
            column = flat[:, i] if order is None else flat[order, i]
            found = argsort(column, stable=True)
            order = found if order is None else order[found]
        return _distinct_rows(rows, flat, order, dim, return_inverse, return_counts)
    if return_inverse:
        flat, order = sort(input.reshape(-1))
    else:
        flat, order = sort(input.reshape(-1))[0], None
    return _distinct(flat, input.shape, order, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    if dim is not None:
        rows = input.movedim(dim, 0)
        return _distinct_rows(rows, rows.reshape(rows.shape[0], -1), None, dim, return_inverse, return_counts)
    return _distinct(input.reshape(-1), input.shape, None, return_inverse, return_counts)


def _distinct_rows(rows, flat, order, dim, return_inverse, return_counts):
    """The first of each run of equal slices, which are the rows of `flat`, in an order of them."""
    n = rows.shape[0]
    order = torch.arange(n, device=rows.device) if order is None else order
    flat = flat[order]
    first = torch.ones((n,), dtype=torch.bool, device=rows.device)
    if n > 1:
        first[1:] = (flat[1:] != flat[:-1]).any(1)
    begin = torch.nonzero(first).reshape(-1)
    found = [rows[order[begin]].movedim(0, dim)]
    if return_inverse:
        found.append(torch.empty_like(order).scatter_(0, order, first.long().cumsum(0) - 1))
    if return_counts:
        found.append(torch.diff(torch.cat([begin, torch.full((1,), n, device=rows.device)])))
    return found[0] if len(found) == 1 else tuple(found)


def _distinct(flat, shape, order, return_inverse, return_counts):
    n = flat.numel()
    has_kernel = n > 0 and (flat.element_size() > 1 or not flat.is_floating_point())
    if has_kernel and _kiln.runs_kernels(flat):
        from torch import _device
        is_bool = flat.dtype is torch.bool
        values, inverse, counts = _device.distinct(flat.view(torch.uint8) if is_bool else flat, order, return_inverse,
                                                   return_counts)
        values = values.view(torch.bool) if is_bool else values
        inverse = inverse.reshape(shape) if return_inverse else None
    elif n == 0:
        values, inverse, counts = flat, torch.empty(shape, dtype=torch.int64), torch.empty((0,), dtype=torch.int64)
    else:
        first = torch.cat([torch.ones((1,), dtype=torch.bool, device=flat.device), flat[1:] != flat[:-1]])
        begin = torch.nonzero(first).reshape(-1)
        values = flat[begin]
        if return_counts:
            counts = torch.cat([begin[1:], torch.full((1,), n, device=flat.device)]) - begin
        if return_inverse:
            inverse = first.long().cumsum(0) - 1
            if order is not None:
                number, inverse = inverse, torch.empty_like(inverse)
                inverse[order] = number
            inverse = inverse.reshape(shape)
    out = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return out[0] if len(out) == 1 else out


def bincount(input, weights=None, minlength=0):
    if input.ndim != 1 or input.is_floating_point() or input.dtype is torch.bool:
        raise RuntimeError("bincount() takes a vector of integers")
    if minlength < 0:
        raise RuntimeError("bincount(): minlength is negative")
    n, negative = 0, False
    if input.numel() > 0 and _kiln.runs_kernels(input):
        from torch import _device
        n, negative = _device.bounds(input)
        n += 1
    elif input.numel() > 0:
        n, negative = int(input.max()) + 1, int(input.min()) < 0
    if negative:
        raise RuntimeError("bincount() takes integers from 0 on")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("bincount() takes as many weights as integers")
    return _kiln.counts(input, weights, max(n, minlength))


def histc(input, bins=100, min=0, max=0):
    _tensor._of_floats(input, "histc")
    if bins <= 0:
        raise RuntimeError("histc() takes one bin or more")
    x = input.detach().reshape(-1)
    if min == max and x.numel() > 0:
        min, max = torch.stack([x.min(), x.max()]).tolist()  # at once: it waits for a GPU
    if min == max:
        min, max = min - 1, max + 1
    if not min < max or min == float("-inf") or max == float("inf"):
        raise RuntimeError(f"histc() from {min} to {max}")
    even = _kiln.even_counts(x, bins, min, max)
    if even is not None:
        return even.to(input.dtype)
    w = _wide(x)
    # In as few bytes as say all places: they are written once and read once.
    integer = torch.int16 if bins < 2**15 else torch.int32 if bins < 2**31 else torch.int64
    place = ((w - min) * bins / (max - min)).to(integer).clamp(max=bins - 1)
    place = torch.where((w >= min) & (w <= max), place, -1)
    return _kiln.counts(place, None, bins).to(input.dtype)


# --- putting elements


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    return input.clone().scatter_(dim, index, src, value=value, reduce=reduce)


def scatter_add(input, dim, index, src):
    return input.clone().scatter_add_(dim, index, src)


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    return input.clone().scatter_reduce_(dim, index, src, reduce, include_self=include_self)


def index_add(input, dim, index, source, *, alpha=1):
    return input.clone().index_add_(dim, index, source, alpha=alpha)


def index_copy(input, dim, index, source):
    return input.clone().index_copy_(dim, index, source)


def index_fill(input, dim, index, value):
    return input.clone().index_fill_(dim, index, value)


def index_put(input, indices, values, accumulate=False):
    return input.clone().index_put_(indices, values, accumulate)


def masked_scatter(input, mask, source):
    if mask.dtype is not torch.bool or source.dtype != input.dtype:
        raise RuntimeError(f"masked_scatter() of {input.dtype} with a mask of {mask.dtype} and elements of "
                           f"{source.dtype}")
    input, mask = torch.broadcast_tensors(input, mask)
    # What a GPU holds is not looked at.
    if not mask.is_cuda and int(mask.sum()) > source.numel():
        raise RuntimeError(f"masked_scatter() takes as many elements as the mask has, got {source.numel()}")
    return input.clone() if source.numel() == 0 else _masked(input, mask, source)


@lazily
def _masked(input, mask, source):
    """Each masked element takes the next of the source."""
    place = (mask.reshape(-1).long().cumsum(0) - 1).clamp(0, source.numel() - 1)
    values = _kiln.take(source.reshape(-1), [0], [place]).reshape(mask.shape)
    return torch.where(mask, values, input)


# --- along dimensions


@lazily
def var_mean(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    if isinstance(dim, bool):  # in its place, of all elements
        dim, unbiased = None, dim
    by = (1 if unbiased else 0) if correction is None else correction
    return input.var(dim, keepdim=keepdim, correction=by), input.mean(dim, keepdim)


@lazily
def std_mean(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    if isinstance(dim, bool):  # in its place, of all elements
        dim, unbiased = None, dim
    by = (1 if unbiased else 0) if correction is None else correction
    return input.std(dim, keepdim=keepdim, correction=by), input.mean(dim, keepdim)


@lazily
def norm(input, p="fro", dim=None, keepdim=False, *, dtype=None):
    if not input.is_floating_point():
        raise NotImplementedError(f"the norm of {input.dtype} has no dtype to be in")
    x = input if dtype is None else input.to(dtype)
    if p == "nuc":
        return torch.linalg.matrix_norm(x, "nuc", (-2, -1) if dim is None else dim, keepdim)
    out, x = x.dtype, _wide(x)
    p = 2.0 if p is None or p == "fro" else p
    if not isinstance(p, (int, float)):
        raise RuntimeError(f"norm(p={p!r}) is not supported: it is a number, 'fro' or 'nuc'")
    if p == 2:
        r = _root((x * x).sum(dim, keepdim), 0.5)
    elif p == float("inf"):
        r = x.abs().amax(dim, keepdim)
    elif p == float("-inf"):
        r = x.abs().amin(dim, keepdim)
    elif p == 0:
        r = (x != 0).to(x.dtype).sum(dim, keepdim)
    elif p == 1:
        r = x.abs().sum(dim, keepdim)
    else:
        r = _root((x.abs() ** p).sum(dim, keepdim), 1.0 / p)
    return r.to(out)


def _root(x, power):
    """x ** power, as torch without a gradient where it is 0."""
    if _kiln.records(x):
        none = x == 0
        return torch.where(none, 0.0, _power(torch.where(none, 1.0, x), power))
    return _power(x, power)


def _power(x, power):
    return x.sqrt() if power == 0.5 else x ** power


@lazily
def dist(input, other, p=2):
    return (input - other).norm(p)


@lazily
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    x = torch.where(input.isnan(), 0.0, input) if input.is_floating_point() else input
    if dtype is not None and not dtype.is_floating_point:  # each element loses its fraction
        x = x.to(dtype)
    return x.sum(dim, keepdim, dtype=dtype)


@lazily
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    _tensor._of_floats(input, "nanmean")
    x = _wide(input if dtype is None else input.to(dtype))
    count = (~input.isnan()).sum(dim, keepdim)
    return (torch.where(x.isnan(), 0.0, x).sum(dim, keepdim) / count).to(dtype or input.dtype)


def aminmax(input, *, dim=None, keepdim=False):
    return return_types.aminmax((input.amin(dim, keepdim), input.amax(dim, keepdim)))


def mode(input, dim=-1, keepdim=False):
    """The least of the values that come most often, and the last place of it. Each NaN is a value of its own."""
    dim, x, n = _elements_along(input, dim, "mode")
    values, places = sort(x, dim)
    at = _tensor._along(_kiln.iota(n, x, torch.int64), dim, x.ndim)
    starts = narrow(values, dim, 1, n - 1) != narrow(values, dim, 0, n - 1)
    starts = torch.cat([torch.zeros_like(narrow(values, dim, 0, 1), dtype=torch.int64),
                        torch.where(starts, narrow(at, dim, 1, n - 1), 0)], dim)
    run = at - cummax(starts, dim)[0]
    # Of the longest runs the first, and there the last element.
    end = torch.where(run == run.amax(dim, True), at, n).amin(dim, True)
    out = [gather(t, dim, end) for t in (values, places)]
    if input.ndim == 0:
        return return_types.mode(t.reshape(()) for t in out)
    return return_types.mode(t if keepdim else t.squeeze(dim) for t in out)


def rot90(input, k=1, dims=(0, 1)):
    if len(dims) != 2:
        raise RuntimeError(f"rot90() takes two dimensions, got {list(dims)}")
    a, b = [_dim(d, input.ndim) for d in dims]
    if a == b or input.ndim < 2:
        raise RuntimeError("rot90() takes two different dimensions")
    if k % 4 == 0:
        return input.clone()
    if k % 4 == 2:
        return flip(input, a, b)
    return flip(input, b if k % 4 == 1 else a).transpose(a, b)


def bernoulli(input, p=None, *, generator=None):
    if p is None and not input.is_floating_point():
        raise NotImplementedError(f"bernoulli() takes probabilities as floats, got {input.dtype}")
    p = _tensor._probability(input if p is None else p)
    return _drawn(input, p, generator)


@lazily
def _drawn(input, p, generator):
    return (_kiln.uniform(input.shape, input, generator) < p).to(input.dtype)


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """By the greatest of exponential races; with replacement by where a uniform number falls in the running sums."""
    if not input.is_floating_point():
        raise RuntimeError(f"multinomial() takes weights as floats, got {input.dtype}")
    x = input.float()
    if x.ndim not in (1, 2) or num_samples <= 0:
        raise RuntimeError("multinomial() takes one or two dimensions, and draws one or more")
    if not replacement and num_samples > x.shape[-1]:
        raise RuntimeError(f"multinomial() without replacement cannot draw {num_samples} of {x.shape[-1]}")
    if x.numel() == 0 and x.shape[-1] > 0:
        return torch.empty((0, num_samples), dtype=torch.int64, device=x.device)
    # What a GPU holds is not looked at.
    if not x.is_cuda and not bool(((x >= 0) & torch.isfinite(x)).all()):
        raise RuntimeError("multinomial() takes weights that are finite and not negative")
    if not x.is_cuda and bool((x.sum(-1) == 0).any()):
        raise RuntimeError("multinomial() takes weights of which one is above 0")
    # Of few weights on a GPU: by kernels, as what is made of them is; none is copied to the host.
    return (_drawn_lazily if x.is_cuda else _drawn_places)(x, num_samples, replacement, generator)


def _drawn_places(x, num_samples, replacement, generator):
    if not replacement:
        race = x / -torch.log(1 - _kiln.uniform(x.shape, x, generator))
        return race.topk(num_samples, -1)[1]
    sums = x.cumsum(-1)
    r = torch.rand(list(x.shape[:-1]) + [num_samples], device=x.device, generator=generator) * sums[..., -1:]
    return torch.searchsorted(sums, r, right=True).clamp(max=x.shape[-1] - 1)


_drawn_lazily = lazily(_drawn_places)


@lazily
def diff(input, n=1, dim=-1, prepend=None, append=None):
    if input.ndim == 0:
        raise RuntimeError("diff() takes a tensor of one dimension or more")
    if n < 0:
        raise RuntimeError(f"diff(n={n}): it is 0 or more")
    if n == 0:
        return input.clone()
    dim = _dim(dim, input.ndim)
    parts = [t for t in (prepend, input, append) if t is not None]
    x = torch.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        m = x.shape[dim]
        if m == 0:
            return x
        a, b = narrow(x, dim, 1, m - 1), narrow(x, dim, 0, m - 1)
        x = a != b if x.dtype is torch.bool else a - b
    return x


def cummax(input, dim):
    dim = _dim(dim, input.ndim)
    return _looked_up(return_types.cummax, input, dim, _kiln.running_extreme(input.detach(), dim, True))


def cummin(input, dim):
    dim = _dim(dim, input.ndim)
    return _looked_up(return_types.cummin, input, dim, _kiln.running_extreme(input.detach(), dim, False))


def logcumsumexp(input, dim):
    _tensor._of_floats(input, "logcumsumexp")
    dim = _dim(dim, input.ndim)

    def rule(gradient, x):
        # Each element is part of all sums from its own on. Apart by sign, so that sums of exponentials have logarithms.
        whole = logcumsumexp(x, dim)

        def part(g):
            logs = torch.where(g > 0, g, 1).log().masked_fill(g <= 0, float("-inf"))
            return (flip(logcumsumexp(flip(logs - whole, [dim]), dim), [dim]) + x).exp()

        return (part(gradient) - part(-gradient),)

    return _tape.with_rule(lambda x: _kiln.logcumsumexp(x, dim), (input,), rule)
