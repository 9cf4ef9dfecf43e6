"""Windows along dimensions, and pooling: reductions over the places in a window."""
from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import torch

from kiln._expr import Expr, _apply, _arange, _index
from kiln.dynamo._ops import Unsupported, _is_float, _wide, is_gpu, op, view
from kiln.dynamo._places import constant_pad_nd


def _windows(x: Expr, dim: int, size: int, step: int) -> Expr:
    """[…, n, …] → […, windows, size, …]: the windows along a dimension, which may overlap."""
    axis = dim % x.ndim
    count = (x.shape[axis] - size) // step + 1
    places = _arange(count, 2, 0, x) * step + _arange(size, 2, 1, x)
    return _index(x, (slice(None), ) * axis + (places, ))


@view("unfold.default")
def unfold(x: Expr, dim: int, size: int, step: int) -> Expr:
    if not x.shape: return x.expand([size])
    axis = dim % x.ndim
    order = [d for d in range(x.ndim + 1) if d != axis + 1] + [axis + 1]
    return _windows(x, dim, size, step).permute(order)


def _pooled(x: Expr, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], outside: Any) -> Expr:
    """[…, d1, d2…] → […, n1, n2…, k1, k2…]: the windows of the last dimensions, with `outside` around."""
    rank = len(kernel)
    if any(padding): x = constant_pad_nd(x, [p for p in reversed(padding) for _ in (0, 1)], outside)
    lead = x.ndim - rank
    for i in range(rank): x = _windows(x, lead + 2 * i, kernel[i], stride[i])
    return x.permute([*range(lead), *(lead + 2 * i for i in range(rank)), *(lead + 2 * i + 1 for i in range(rank))])


def _each(sizes: Any, rank: int) -> list[int]:
    sizes = [sizes] if isinstance(sizes, int) else list(sizes)
    return sizes * rank if len(sizes) == 1 else sizes


# Each window reads all of its elements: larger ones are PyTorch's.
_MOST_OF_WINDOW = 256


def _pool_sizes(rank: int, kernel: Any, stride: Any, padding: Any, ceil_mode: bool) -> tuple[list[int], ...]:
    if ceil_mode: raise Unsupported("pooling with ceil_mode")
    kernel = _each(kernel, rank)
    if math.prod(kernel) > _MOST_OF_WINDOW: raise Unsupported(f"windows of more than {_MOST_OF_WINDOW} elements")
    return kernel, _each(stride, rank) if stride else kernel, _each(padding, rank)


def _average(rank: int) -> Callable:

    def average(x: Expr, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
                count_include_pad: bool = True, divisor_override: int | None = None) -> Expr:
        kernel, stride, padding = _pool_sizes(rank, kernel, stride, padding, ceil_mode)
        dims, wide = list(range(-rank, 0)), _wide(x)
        total = _pooled(wide, kernel, stride, padding, 0).sum(dims)
        if divisor_override: return total / divisor_override
        if count_include_pad or not any(padding): return total / math.prod(kernel)
        ones = (_arange(x.shape[-1], x.ndim, x.ndim - 1, x) * 0 + 1).to(wide.dtype)
        ones = ones.expand([1] * (x.ndim - rank) + list(x.shape[-rank:]))
        return total / _pooled(ones, kernel, stride, padding, 0).sum(dims)

    return average


for _rank, _name in ((1, "avg_pool1d"), (2, "avg_pool2d"), (3, "avg_pool3d")): op(f"{_name}.default")(_average(_rank))


@op("max_pool2d_with_indices.default")
def max_pool(x: Expr, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False) -> tuple[Expr, Expr]:
    kernel, stride, padding = _pool_sizes(2, kernel, stride, padding, ceil_mode)
    if _each(dilation, 2) != [1, 1]: raise Unsupported("pooling of elements that are apart")
    least = -math.inf if _is_float(x) else torch.iinfo(getattr(torch, x.dtype)).min
    windows = _pooled(x, kernel, stride, padding, least)
    rows, columns = windows.shape[-4:-2]
    flat = windows.reshape([*windows.shape[:-2], kernel[0] * kernel[1]])
    at = flat.argmax(-1)
    row = _arange(rows, at.ndim, at.ndim - 2, x).to("int64") * stride[0] - padding[0] + at // kernel[1]
    column = _arange(columns, at.ndim, at.ndim - 1, x).to("int64") * stride[1] - padding[1] + at % kernel[1]
    return flat.max(-1), row * x.shape[-1] + column


@op("_adaptive_avg_pool2d.default")
def adaptive_average(x: Expr, sizes: Sequence[int]) -> Expr:
    rows, columns = x.shape[-2:]
    if rows % sizes[0] or columns % sizes[1]: raise Unsupported("windows of several sizes")
    apart = x.reshape([*x.shape[:-2], sizes[0], rows // sizes[0], sizes[1], columns // sizes[1]])
    return apart.mean([-3, -1])


@op("adaptive_max_pool2d.default")
def adaptive_max_pool(x: Expr, sizes: Sequence[int]) -> tuple[Expr, Expr]:
    if any(n % m for n, m in zip(x.shape[-2:], sizes)): raise Unsupported("windows of several sizes")
    kernel = [n // m for n, m in zip(x.shape[-2:], sizes)]
    if list(sizes) != [1, 1]: return max_pool(x, kernel, kernel)
    flat = x.reshape([*x.shape[:-2], math.prod(kernel)])
    return tuple(v.reshape([*x.shape[:-2], 1, 1]) for v in (flat.max(-1), flat.argmax(-1)))


_MOST_TAPS = 256  # of a window, whose products are added up one by one


@op("convolution.default")
def convolution(x: Expr, weight: Expr, bias: Expr | None, stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int) -> Expr:
    """Of channels that stay apart: sums over windows. The others are products, for which PyTorch has a library."""
    rank = x.ndim - 2
    size = list(weight.shape[2:])
    if transposed or not 1 <= rank <= 3 or groups == 1 or weight.shape[:2] != (groups, 1) or x.shape[1] != groups:
        raise Unsupported("a convolution between channels")
    if not is_gpu(x.device): raise Unsupported("a convolution on the CPU")
    if math.prod(size) > _MOST_TAPS: raise Unsupported(f"windows of more than {_MOST_TAPS} elements")
    if any(p < 0 for p in _each(padding, rank)): raise Unsupported("a convolution of a part")
    cols = _apart(x, size, _each(stride, rank), _each(padding, rank), _each(dilation, rank))
    out = (_wide(cols) * _wide(weight).reshape([groups, *size, *[1] * rank])).sum(list(range(2, 2 + rank)))
    if bias is not None: out = out + bias.reshape([groups, *[1] * rank])
    return out


def _apart(x: Expr, size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
           dilation: Sequence[int]) -> Expr:
    """[n, c, d1, d2…] → [n, c, k1, k2…, n1, n2…]: the windows of the last dimensions, with 0 around."""
    rank = len(size)
    places, inside = [], None
    for d, n in enumerate(x.shape[2:]):
        count = (n + 2 * padding[d] - dilation[d] * (size[d] - 1) - 1) // stride[d] + 1
        at = _arange(count, 2 * rank, rank + d, x) * stride[d] - padding[d] + _arange(size[d], 2 * rank, d,
                                                                                      x) * dilation[d]
        places.append(at)
        if not padding[d]: continue
        here = _apply("logical_and", (at >= 0, at < n))
        inside = here if inside is None else _apply("logical_and", (inside, here))
    spread = x.reshape([*x.shape, *[1] * rank])
    out = _apply("take", (spread, *places), axes=list(range(2, 2 + rank)), any_outside=True)
    return out if inside is None else _apply("where", (inside, out, 0)).to(x.dtype)
