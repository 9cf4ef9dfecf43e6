"""Functions of tensors that are methods too: parts of a tensor that take other elements, other names of functions, and
what is made of an element's bits. What stays one expression is marked `lazily`."""
import torch
from torch import _kiln, _tensor
from torch._tensor import _along, _dim

lazily = _kiln.lazily


# --- parts


@lazily
def select_scatter(input, src, dim, index):
    """The tensor with `src` at one place of a dimension."""
    d = _dim(dim, input.ndim)
    n = input.shape[d]
    if not -n <= index < n:
        raise IndexError(f"select_scatter(): index {index} of dimension {dim} with size {n}")
    if list(src.shape) != [m for e, m in enumerate(input.shape) if e != d]:
        raise RuntimeError(f"select_scatter() of {tuple(src.shape)} into {tuple(input.shape)} along dimension {dim}")
    here = _along(_kiln.iota(n, input) == index % n, d, input.ndim)
    return torch.where(here, src.unsqueeze(d).to(input.dtype), input)


@lazily
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """The tensor with `src` in a slice of a dimension."""
    d = _dim(dim, input.ndim)
    if step <= 0:
        raise RuntimeError("slice_scatter() takes a step above 0")
    n = input.shape[d]
    first, last, _ = slice(start, end).indices(n)
    count = max(0, -(-(last - first) // step))
    if list(src.shape) != [count if e == d else m for e, m in enumerate(input.shape)]:
        raise RuntimeError(f"slice_scatter() of {tuple(src.shape)} into {count} places along dimension {dim} of "
                           f"{tuple(input.shape)}")
    if count == 0:
        return input.clone()
    i = _kiln.iota(n, input) - first
    inside = (i >= 0) & (i < last - first) & (i % step == 0)
    at = torch.where(inside, i // step, 0)
    value = _kiln.take(src.to(input.dtype), [d], [_along(at, d, input.ndim)], True)
    return torch.where(_along(inside, d, input.ndim), value, input)


@lazily
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """The tensor with `src` on a diagonal."""
    a, b = _dim(dim1, input.ndim), _dim(dim2, input.ndim)
    if a == b:
        raise RuntimeError("diagonal_scatter() takes two dimensions")
    x = torch.movedim(input, (a, b), (-2, -1))
    m, n = x.shape[-2:]
    count = max(0, min(m + min(offset, 0), n - max(offset, 0)))
    if list(src.shape) != list(x.shape[:-2]) + [count]:
        raise RuntimeError(f"diagonal_scatter() of {tuple(src.shape)} into a diagonal of "
                           f"{tuple(list(x.shape[:-2]) + [count])}")
    if count == 0:
        return input.clone()
    row, column = _kiln.iota(m, input).unsqueeze(1), _kiln.iota(n, input).unsqueeze(0)
    at = (row if offset >= 0 else column).expand(m, n).clamp(max=count - 1)
    value = _kiln.take(src.to(input.dtype).unsqueeze(-1), [src.ndim - 1], [at], True)
    return torch.movedim(torch.where(column - row == offset, value, x), (-2, -1), (a, b))


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """The tensor with `src` at the places of a view of its memory, in row-major order."""
    if list(src.shape) != list(size):
        raise RuntimeError(f"as_strided_scatter() of {tuple(src.shape)} into {tuple(size)}")
    place = torch.full((), storage_offset or 0, dtype=torch.int64, device=input.device)
    for d, (n, s) in enumerate(zip(size, stride)):
        place = place + _along(torch.arange(n, device=input.device) * s, d, len(size))
    place = place.expand(tuple(size)).reshape(-1)
    return input.reshape(-1).scatter(0, place, src.to(input.dtype).reshape(-1)).reshape(input.shape)


def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if index.ndim > 1 or index.dtype not in (torch.int64, torch.int32):
        raise RuntimeError(f"index_reduce() takes places of one dimension of int64 or int32, got {index.dtype} "
                           f"{tuple(index.shape)}")
    if input.dtype != source.dtype:
        raise RuntimeError("index_reduce(): self and source expected to have the same dtype, but got (self) "
                           f"{input.dtype} and (source) {source.dtype}")
    d = _dim(dim, input.ndim)
    x, s = (input.reshape(1), source.reshape(1)) if input.ndim == 0 else (input, source)
    if list(s.shape) != [index.numel() if e == d else n for e, n in enumerate(x.shape)]:
        raise RuntimeError(f"index_reduce() of {tuple(source.shape)} at {index.numel()} places along dimension {dim} "
                           f"of {tuple(input.shape)}")
    places = _along(index.reshape(-1).long(), d, x.ndim).expand(s.shape)
    return x.scatter_reduce(d, places, s, reduce, include_self=include_self).reshape(input.shape)


def put(input, index, source, accumulate=False):
    return input.clone().put_(index, source, accumulate)


def split_with_sizes(input, split_sizes, dim=0):
    return torch.split(input, list(split_sizes), dim)


def unsafe_split_with_sizes(input, split_sizes, dim=0):
    return torch.split(input, list(split_sizes), dim)


def unsafe_split(tensor, split_size, dim=0):
    return torch.split(tensor, split_size, dim)


def unsafe_chunk(input, chunks, dim=0):
    return torch.chunk(input, chunks, dim)


def narrow_copy(input, dim, start, length):
    return torch.narrow(input, dim, start, length).clone()


def diagflat(input, offset=0):
    return torch.diag(input.reshape(-1), offset)


@lazily
def nonzero_static(input, *, size, fill_value=-1):
    """The places of the first `size` elements that are not 0, and `fill_value` where there are fewer."""
    x = input.reshape(-1) != 0
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if size == 0 or input.numel() == 0:
        return torch.full((size, input.ndim), fill_value, dtype=torch.int64, device=input.device)
    before = x.long().cumsum(0)
    k = _kiln.iota(size, input, torch.int64) + 1
    at = torch.searchsorted(before, k).clamp(max=input.numel() - 1)
    places = [torch.where(k <= before[-1], p, fill_value) for p in torch.unravel_index(at, input.shape)]
    return torch.stack(places, 1) if places else torch.empty((size, 0), dtype=torch.int64, device=input.device)


# --- other names


def arccos(input):
    return input.acos()


def arccosh(input):
    return input.acosh()


def arcsin(input):
    return input.asin()


def arcsinh(input):
    return input.asinh()


def arctan(input):
    return input.atan()


def arctanh(input):
    return input.atanh()


def arctan2(input, other):
    return torch.atan2(input, other)


def hardshrink(input, lambd=0.5):
    return torch.nn.functional.hardshrink(input, lambd)


def prelu(input, weight):
    return torch.nn.functional.prelu(input, weight)


# --- bits


@lazily
def frexp(input):
    """(mantissa from 0.5 to below 1, exponent) of each element; of 0, infinities and NaN itself and 0."""
    if not input.is_floating_point():
        raise RuntimeError(f"torch.frexp() only supports floating-point dtypes, got {input.dtype}")
    x = input.double()
    plain = torch.isfinite(x) & (x != 0)
    a = torch.where(plain, x.abs(), 1.0)
    e = a.log2().floor() + 1
    # The logarithm may be rounded over a power of two; of a small number 2**-e is two factors.
    half = (e * 0.5).floor()
    m = a * (-half).exp2() * (half - e).exp2()
    e = torch.where(m >= 1, e + 1, torch.where(m < 0.5, e - 1, e))
    m = torch.where(m >= 1, m * 0.5, torch.where(m < 0.5, m * 2, m))
    mantissa = torch.where(plain, torch.where(x < 0, -m, m), x)
    return torch.return_types.frexp((mantissa.to(input.dtype), torch.where(plain, e, 0.0).to(torch.int32)))


_BITS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.float16: torch.int16,
         torch.bfloat16: torch.int16}


def nextafter(input, other):
    """The next number of the dtype on the way to another."""
    dtype = torch.result_type(input, other)
    if dtype not in _BITS:
        raise NotImplementedError(f"nextafter() does not apply to tensors of {dtype}")
    x, y = torch.broadcast_tensors(input.to(dtype), other.to(dtype))
    bits = x.contiguous().view(_BITS[dtype])
    up = torch.where((y > x) == (x > 0), bits + 1, bits - 1)
    least = torch.where(y > 0, 1, torch.iinfo(_BITS[dtype]).min + 1).to(_BITS[dtype])
    found = torch.where(x == 0, least, up).to(_BITS[dtype]).contiguous().view(dtype)
    return torch.where(x == y, y, torch.where(x.isnan() | y.isnan(), float("nan"), found)).to(dtype)


# --- counts


@lazily
def histogram(input, bins, *, range=None, weight=None, density=False):
    """(how many elements are in each bin, or the sums of their weights; the edges). The last bin has its upper edge."""
    x = input.reshape(-1)
    if not input.is_floating_point():
        raise NotImplementedError(f"histogram() does not apply to tensors of {input.dtype}")
    if weight is not None and (weight.shape != input.shape or weight.dtype != input.dtype):
        raise RuntimeError("torch.histogram: if weight tensor is provided it should have the same shape and dtype as "
                           "input")
    if isinstance(bins, torch.Tensor):
        if bins.ndim != 1 or bins.dtype != input.dtype:
            raise RuntimeError("torch.histogram: bins is a vector of edges of the input's dtype")
        edges, n = bins, bins.numel() - 1
    else:
        n = bins
        if n <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n}")
        if range is not None:
            low, high = [torch.full((), float(v), dtype=x.dtype, device=x.device) for v in range]
            if range[0] > range[1]:
                raise RuntimeError("torch.histogram: max must be larger than min")
        elif x.numel() == 0:
            low, high = torch.zeros_like(x.sum()), torch.ones_like(x.sum())
        else:
            low, high = x.min(), x.max()
        alone = low == high
        low, high = torch.where(alone, low - 0.5, low), torch.where(alone, high + 0.5, high)
        i = _kiln.iota(n + 1, x).to(x.dtype)
        edges = torch.where(i == n, high, low + i * ((high - low) / n))
    at = torch.searchsorted(edges, x.contiguous(), right=True) - 1
    at = torch.where(x == edges[-1], n - 1, at)
    inside = (at >= 0) & (at < n)
    w = torch.ones_like(x) if weight is None else weight.reshape(-1)
    counts = torch.zeros(n, dtype=x.dtype, device=x.device)
    counts = counts.scatter_add(0, torch.where(inside, at, 0), torch.where(inside, w, 0).to(x.dtype))
    if density:
        counts = counts / (counts.sum() * (edges[1:] - edges[:-1]))
    return torch.return_types.histogram((counts, edges))
