"""Operations that look elements up by their place, or put them there (a comparison with each place, no write)."""
from __future__ import annotations

from typing import Any, Sequence

import torch

from kiln._expr import Expr, _apply, _arange, _cat, _index
from kiln.dynamo._ops import Unsupported, op, slice_


@op("index_select.default")
def index_select(x: Expr, dim: int, index: Expr) -> Expr:
    return x.index_select(dim, index)


@op("gather.default")
def gather(x: Expr, dim: int, index: Expr, *, sparse_grad: bool = False) -> Expr:
    return x.gather(dim, index)


@op("embedding.default")
def embedding(weight: Expr, index: Expr, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Expr:
    return _index(weight, (index, ))


@op("index.Tensor", "_unsafe_index.Tensor")
def index(x: Expr, indices: Sequence[Any]) -> Expr:
    if any(i is not None and i.dtype == "bool" for i in indices): raise Unsupported("an index of bools")
    try:
        return _index(x, tuple(slice(None) if i is None else i for i in indices))
    except IndexError as e:
        raise Unsupported(str(e)) from None


@op("cat.default")
def cat(parts: Sequence[Expr], dim: int = 0) -> Expr:
    most = 16  # each element looks at every part
    parts = [p for p in parts if p.shape != (0, )]
    if not 0 < len(parts) <= most: raise Unsupported(f"cat of more than {most} tensors, or of none with elements")
    dtype = parts[0].dtype
    for p in parts[1:]: dtype = str(torch.promote_types(getattr(torch, dtype), getattr(torch, p.dtype)))[6:]
    return _cat([p.to(dtype) for p in parts], dim)


@op("scatter.value", "scatter.src")
def scatter(x: Expr, dim: int, index: Expr, source: Any) -> Expr:
    """Of one place for each line: a comparison with each instead of a write."""
    if not x.shape or index.shape[dim] != 1 or index.ndim != x.ndim:
        raise Unsupported("writes to several places of a line")
    axis = dim % x.ndim
    others = [d for d in range(x.ndim) if d != axis]
    if any(index.shape[d] != x.shape[d] for d in others): raise Unsupported("writes to a part of the lines")
    if isinstance(source, Expr):
        source = _index(source, tuple(slice(0, n) for n in index.shape)).to(x.dtype)
    return _apply("where", (_arange(x.shape[axis], x.ndim, axis, x) == index, source, x)).to(x.dtype)


@op("flip.default")
def flip(x: Expr, dims: Sequence[int]) -> Expr:
    return x.flip(list(dims))


@op("roll.default")
def roll(x: Expr, shifts: Sequence[int], dims: Sequence[int] = ()) -> Expr:
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    if not dims: return roll(x.reshape(x.numel()), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims):
        axis = dim % x.ndim
        n = x.shape[axis]
        places = (_arange(n, x.ndim, axis, x) + (n - shift) % n) % n
        x = _apply("take", (x, places), axes=[axis], any_outside=True)
    return x


@op("constant_pad_nd.default")
def constant_pad_nd(x: Expr, pad: Sequence[int], value: Any = 0) -> Expr:
    out = x
    for i in range(0, len(pad), 2):
        dim, before, after = x.ndim - 1 - i // 2, pad[i], pad[i + 1]
        if before < 0 or after < 0:
            out = slice_(out, dim, max(0, -before), out.shape[dim] - max(0, -after))
            before, after = max(0, before), max(0, after)
        n = out.shape[dim]
        if not before and not after: continue
        at = _arange(n + before + after, out.ndim, dim, out) - before
        inside = _apply("logical_and", (at >= 0, at < n))
        out = _apply("where", (inside, _apply("take", (out, at), axes=[dim], any_outside=True), value)).to(x.dtype)
    return out


@op("slice_scatter.default")
def slice_scatter(x: Expr, source: Expr, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Expr:
    axis = dim % x.ndim
    first, last, _ = slice(start, end, step).indices(x.shape[axis])
    count = max(0, -(-(last - first) // step))
    if count == 0: return x
    at = _arange(x.shape[axis], x.ndim, axis, x) - first
    inside = _apply("logical_and", (at >= 0, at < count * step))
    if step != 1: inside, at = _apply("logical_and", (inside, at % step == 0)), at // step
    there = _apply("take", (source, at), axes=[axis], any_outside=True)
    return _apply("where", (inside, there.to(x.dtype), x))


@op("select_scatter.default")
def select_scatter(x: Expr, source: Expr, dim: int, index: int) -> Expr:
    axis = dim % x.ndim
    at = _arange(x.shape[axis], x.ndim, axis, x)
    return _apply("where", (at == index % x.shape[axis], source.unsqueeze(axis).to(x.dtype), x))


def _triangle(x: Expr, diagonal: int, keeps_lower: bool) -> Expr:
    row, column = _arange(x.shape[-2], 2, 0, x), _arange(x.shape[-1], 2, 1, x)
    kept = column - row <= diagonal if keeps_lower else column - row >= diagonal
    return _apply("where", (kept, x, False if x.dtype == "bool" else 0))


@op("tril.default")
def tril(x: Expr, diagonal: int = 0) -> Expr:
    return _triangle(x, diagonal, True)


@op("triu.default")
def triu(x: Expr, diagonal: int = 0) -> Expr:
    return _triangle(x, diagonal, False)


def _places_in(edges: Expr, x: Expr, right: bool, out: str) -> Expr:
    """How many of a row of rising edges lie below each element, or with `right` not above it: by halves."""
    n = edges.shape[-1]
    at = (x != x).to("int32") * 0
    for step in (1 << i for i in reversed(range(n.bit_length()))):
        place = _apply("minimum", (at + (step - 1), n - 1))
        edge = _index(edges, (place, )) if edges.ndim == 1 else edges.gather(-1, place)
        # As PyTorch asks, so that NaN comes behind all.
        passed = (edge > x if right else edge >= x).logical_not()
        at = _apply("where", (_apply("logical_and", (passed, at + step <= n)), at + step, at))
    return at.to(out)


@op("bucketize.Tensor")
def bucketize(x: Expr, edges: Expr, *, out_int32: bool = False, right: bool = False) -> Expr:
    return _places_in(edges, x, right, "int32" if out_int32 else "int64")


@op("searchsorted.Tensor")
def searchsorted(edges: Expr, x: Expr, *, out_int32: bool = False, right: bool = False, side: str | None = None,
                 sorter: Any = None) -> Expr:
    if sorter is not None: raise Unsupported("searchsorted with a sorter")
    if edges.ndim > 1 and edges.shape[:-1] != x.shape[:-1]: raise Unsupported("rows of edges for other rows")
    return _places_in(edges, x, right or side == "right", "int32" if out_int32 else "int64")
