"""Windows along dimensions, and pooling: reductions over the places in a window."""
from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import torch

from kiln._expr import Expr, _arange, _index
from kiln.dynamo._ops import Unsupported, _is_float, _wide, op, view
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
