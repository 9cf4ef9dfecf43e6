"""Pools of torch.nn.functional: windows over the last dimensions, each made one element."""
import torch
from torch import _kiln, _tensor

lazily = _kiln.lazily
_wide, _along = _tensor._wide, _tensor._along

_FEW = 16  # elements of a window that are taken one by one; of more, the planner would have to look at each


def _each(v, n):
    v = tuple(v) if isinstance(v, (tuple, list)) else (v,)
    return v * n if len(v) == 1 else v


def _product(numbers):
    n = 1
    for each in numbers:
        n *= each
    return n


class _Windows:
    """Where the windows of each of the last dimensions are."""

    def __init__(self, x, rank, kernel, stride, padding, dilation, ceil_mode, what):
        if x.ndim not in (rank + 1, rank + 2) or 0 in x.shape[-rank - 1:]:
            raise RuntimeError(f"{what} takes {rank + 1} or {rank + 2} dimensions with elements, got {tuple(x.shape)}")
        self.rank, self.sizes, self.kernel = rank, x.shape[-rank:], _each(kernel, rank)
        self.stride = self.kernel if stride is None or stride in ((), []) else _each(stride, rank)
        self.padding, self.dilation = _each(padding, rank), _each(dilation, rank)
        if min(self.kernel) <= 0 or min(self.stride) <= 0 or min(self.dilation) <= 0:
            raise RuntimeError(f"{what} takes windows, strides and dilations of 1 or more")
        self.counts = []
        for n, k, s, p, d in zip(self.sizes, self.kernel, self.stride, self.padding, self.dilation):
            reach = d * (k - 1) + 1
            if p < 0 or 2 * p > reach:
                raise RuntimeError("the padding of a pool is at most half of its window")
            count = (n + 2 * p - reach + (s - 1 if ceil_mode else 0)) // s + 1
            if ceil_mode and (count - 1) * s >= n + p:  # it would begin behind the tensor
                count -= 1
            if count <= 0:
                raise RuntimeError(f"a window of {self.kernel} does not fit into {tuple(self.sizes)}")
            self.counts.append(count)

    def padded(self, x, outside):
        """With `outside` around, so that each window has all its elements."""
        around = []
        for n, k, s, p, d, count in reversed(list(zip(self.sizes, self.kernel, self.stride, self.padding,
                                                      self.dilation, self.counts))):
            around += [p, max((count - 1) * s + d * (k - 1) + 1 - n - p, 0)]
        return torch.nn.functional.pad(x, around, value=outside) if any(around) else x

    def elements(self, x):
        """For each place in a window, that element of all windows."""
        places = [()]
        for k in self.kernel:
            places = [p + (i,) for p in places for i in range(k)]
        for p in places:
            yield x[(...,) + tuple(slice(i * d, i * d + (count - 1) * s + 1, s)
                                   for i, d, count, s in zip(p, self.dilation, self.counts, self.stride))]

    def reduced(self, x, pair, along):
        """Each window's elements by `pair` of two or `along` dimensions, whatever takes fewer operations."""
        if _product(self.kernel) <= _FEW:
            out = None
            for part in self.elements(x):
                out = part if out is None else pair(out, part)
            return out.clone() if _product(self.kernel) == 1 else out  # one element is a view
        # Windows side by side are a reshape. Others are looked up, one dimension after the other.
        beside = [d == 1 and (s == k or count == 1)
                  for d, s, k, count in zip(self.dilation, self.stride, self.kernel, self.counts)]
        first = x.ndim - self.rank
        for i in reversed(range(self.rank)):
            if not beside[i]:
                place = _kiln.iota(self.counts[i], x).unsqueeze(1) * self.stride[i]
                x = along(_windowed(x, first + i, place + _kiln.iota(self.kernel[i], x) * self.dilation[i]),
                          first + i + 1)
        return _tiled(x, [(c, k) if b else (n, 1) for b, c, k, n in zip(beside, self.counts, self.kernel, self.counts)],
                      along)

    def looked_up(self, x, outside):
        """[…, windows, elements], with the place in the tensor of each element."""
        first = x.ndim - self.rank
        flat, valid = None, None
        for i, (n, k, s, p, d, count) in enumerate(zip(self.sizes, self.kernel, self.stride, self.padding,
                                                       self.dilation, self.counts)):
            place = _along(_kiln.iota(count, x, torch.int64) * s - p, i, 2 * self.rank)
            place = place + _along(_kiln.iota(k, x, torch.int64) * d, self.rank + i, 2 * self.rank)
            inside = (place >= 0) & (place < n)
            valid = inside if valid is None else valid & inside
            flat = place if flat is None else flat * n + place
        shape = [_product(self.counts), _product(self.kernel)]
        flat, valid = flat.reshape(shape), valid.reshape(shape)
        x = x.reshape(list(x.shape[:first]) + [-1, 1])
        return torch.where(valid, _kiln.take(x, [first], [flat], True), outside), flat


def _windowed(x, dim, places):
    """A dimension as two: windows, and the elements of each."""
    x = x.unsqueeze(dim + 1)
    return _kiln.take(x, [dim], [places.reshape(list(places.shape) + [1] * (x.ndim - dim - 2))], True)


def _tiled(x, parts, along):
    """The last dimensions as so many windows side by side of so many elements; those behind the last are left out."""
    first = x.ndim - len(parts)
    if all(k == 1 for _, k in parts):
        return x
    x = x[(...,) + tuple(slice(0, count * k) for count, k in parts)]
    shape, dims = list(x.shape[:first]), []
    for count, k in parts:
        if k == 1:
            shape.append(count)
        elif count == 1:  # a dimension less to loop over
            dims.append(len(shape))
            shape.append(k)
        else:
            dims.append(len(shape) + 1)
            shape += [count, k]
    return along(x.reshape(shape), dims).reshape(list(x.shape[:first]) + [count for count, _ in parts])


def _least(dtype):
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _largest(x, dims):
    return x.amax(dims)


def _summed(x, dims):
    return x.sum(dims)


# --- of one size


def _max_pool(x, rank, kernel, stride, padding, dilation, ceil_mode, return_indices):
    what = f"max_pool{rank}d()"
    if x.dtype is torch.bool or rank == 1 and not x.is_floating_point():
        raise NotImplementedError(f"{what} does not apply to tensors of {x.dtype}")
    w = _Windows(x, rank, kernel, stride, padding, dilation, ceil_mode, what)
    shape = list(x.shape[:-rank]) + w.counts
    if not return_indices:
        return w.reduced(w.padded(x, _least(x.dtype)), torch.maximum, _largest)
    return _with_places(x, rank, *w.looked_up(x, _least(x.dtype)), shape)


def _with_places(x, rank, windows, flat, shape):
    """The largest of each window, and where it is: a row-major position of the last dimensions."""
    at = windows.argmax(-1, True)
    values = _kiln.take(windows, [windows.ndim - 1], [at])
    places = _kiln.take(flat.expand(windows.shape), [windows.ndim - 1], [at])
    return values.reshape(shape), places.reshape(shape)


def _avg_pool(x, rank, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    what = f"avg_pool{rank}d()"
    if not x.is_floating_point() and x.dtype is not torch.int64:
        raise NotImplementedError(f"{what} does not apply to tensors of {x.dtype}")
    if divisor == 0:
        raise RuntimeError(f"{what}: the divisor is 0")
    w = _Windows(x, rank, kernel, stride, padding, 1, ceil_mode, what)
    total = w.reduced(w.padded(_wide(x), 0), torch.add, _summed)
    n = divisor or _product(w.kernel)
    if divisor is None:
        for i, (size, k, s, p, count) in enumerate(zip(w.sizes, w.kernel, w.stride, w.padding, w.counts)):
            # A window may have less than k elements: those that count end with the padding, or with the tensor.
            if count_include_pad and (count - 1) * s + k <= size + 2 * p or p == 0 and (count - 1) * s + k <= size:
                continue
            begin = _kiln.iota(count, x) * s - p
            elements = (begin + k).clamp(max=size + (p if count_include_pad else 0))
            elements = elements - (begin if count_include_pad else begin.clamp(min=0))
            n = n // k * _along(elements, i, rank) if isinstance(n, int) else n * _along(elements, i, rank) // k
    if x.dtype is torch.int64:
        return torch.div(total, n, rounding_mode="trunc")
    if isinstance(n, int) and n > 0 and n & (n - 1) == 0:  # the same number, without a division
        return (total * (1.0 / n)).to(x.dtype)
    return (total / n).to(x.dtype)


@lazily
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return _max_pool(input, 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@lazily
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return _max_pool(input, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@lazily
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return _max_pool(input, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@lazily
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    return _avg_pool(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@lazily
def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    return _avg_pool(input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@lazily
def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    return _avg_pool(input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(x, rank, p, kernel, stride, ceil_mode):
    kernel = _each(kernel, rank)
    if p == float("inf"):
        return _max_pool(x.abs(), rank, kernel, stride, 0, 1, ceil_mode, False)
    out = _avg_pool(x ** p, rank, kernel, stride, 0, ceil_mode, True, None)
    return (out.sign() * out.abs().relu() * _product(kernel)) ** (1.0 / p)


@lazily
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _lp_pool(input, 1, norm_type, kernel_size, stride, ceil_mode)


@lazily
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _lp_pool(input, 2, norm_type, kernel_size, stride, ceil_mode)


# --- of as many windows as are wanted


def _wanted(x, output_size, rank, what):
    if not x.is_floating_point():
        raise NotImplementedError(f"{what} does not apply to tensors of {x.dtype}")
    if x.ndim not in (rank + 1, rank + 2) or 0 in x.shape[-rank - 1:]:
        raise RuntimeError(f"{what} takes {rank + 1} or {rank + 2} dimensions with elements, got {tuple(x.shape)}")
    wanted = _each(output_size, rank)
    if len(wanted) != rank:
        raise RuntimeError(f"{what} takes {rank} sizes, got {len(wanted)}")
    wanted = [n if m is None else m for m, n in zip(wanted, x.shape[-rank:])]
    if min(wanted) < 0:
        raise RuntimeError(f"{what} takes sizes of 0 or more")
    return wanted


def _span(n, m, x):
    """Where window i of m begins in a dimension of n, and how many elements it has; the most there are."""
    i = _kiln.iota(m, x, torch.int64)
    begin = i * n // m
    most = max(-(-(j + 1) * n // m) - j * n // m for j in range(min(m, n)))
    return begin, ((i + 1) * n + (m - 1)) // m - begin, most


def _adaptive(x, wanted, rank, mean):
    """Dimensions whose windows are of one size by a reshape, the others by looking up, one after the other."""
    first = x.ndim - rank
    along = _summed if mean else _largest
    count, parts = 1, []
    for i in reversed(range(rank)):
        n, m = x.shape[first + i], wanted[i]
        parts.insert(0, (m, n // m) if n % m == 0 else (m, 1))
        if n % m == 0:
            count = count * (n // m)
            continue
        begin, length, most = _span(n, m, x)
        j = _kiln.iota(most, x, torch.int64)
        # The last element again does not change the largest.
        place = begin.unsqueeze(1) + torch.minimum(j, length.unsqueeze(1) - 1)
        part = _windowed(x, first + i, place)
        if mean:
            inside = j < length.unsqueeze(1)
            part = torch.where(inside.reshape([m, most] + [1] * (rank - i - 1)), part, 0)
            count = count * _along(length, i, rank)
        x = along(part, first + i + 1)
    x = _tiled(x, parts, along)
    return x / count if mean else x


def _adaptive_avg_pool(x, output_size, rank):
    wanted = _wanted(x, output_size, rank, f"adaptive_avg_pool{rank}d()")
    if 0 in wanted or x.numel() == 0:
        return x.new_empty(list(x.shape[:-rank]) + wanted)
    return _adaptive(_wide(x), wanted, rank, True).to(x.dtype)


def _adaptive_max_pool(x, output_size, rank, return_indices):
    wanted = _wanted(x, output_size, rank, f"adaptive_max_pool{rank}d()")
    shape = list(x.shape[:-rank]) + wanted
    if 0 in wanted or x.numel() == 0:
        out = x.new_empty(shape)
        return (out, out.long()) if return_indices else out
    if not return_indices:
        same = list(x.shape[-rank:]) == list(wanted)
        return x.clone() if same else _adaptive(x, wanted, rank, False)
    first, flat, many = x.ndim - rank, None, 1
    for i in range(rank):
        n = x.shape[first + i]
        begin, length, most = _span(n, wanted[i], x)
        j = _along(_kiln.iota(most, x, torch.int64), rank + i, 2 * rank)
        place = _along(begin, i, 2 * rank) + torch.minimum(j, _along(length, i, 2 * rank) - 1)
        flat, many = place if flat is None else flat * n + place, many * most
    flat = flat.reshape(_product(wanted), many)
    windows = _kiln.take(x.reshape(list(x.shape[:first]) + [-1, 1]), [first], [flat])
    return _with_places(x, rank, windows, flat, shape)


@lazily
def adaptive_avg_pool1d(input, output_size):
    return _adaptive_avg_pool(input, output_size, 1)


@lazily
def adaptive_avg_pool2d(input, output_size):
    return _adaptive_avg_pool(input, output_size, 2)


@lazily
def adaptive_avg_pool3d(input, output_size):
    return _adaptive_avg_pool(input, output_size, 3)


@lazily
def adaptive_max_pool1d(input, output_size, return_indices=False):
    return _adaptive_max_pool(input, output_size, 1, return_indices)


@lazily
def adaptive_max_pool2d(input, output_size, return_indices=False):
    return _adaptive_max_pool(input, output_size, 2, return_indices)


@lazily
def adaptive_max_pool3d(input, output_size, return_indices=False):
    return _adaptive_max_pool(input, output_size, 3, return_indices)
