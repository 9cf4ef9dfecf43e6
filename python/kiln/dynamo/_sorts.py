"""Sorts and selections of short rows on a GPU, for which PyTorch's own are made for long ones: a kernel in the Triton
language, a few rows to each program.

A number is turned into an integer of the same order, with its place below it, so that equal ones stay in order.
"""
from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule

import kiln
import kiln.language as tl
from kiln.dynamo._build import hint, name_of

LONGEST_ROW = 2048
_ELEMENTS = 2048  # of a program
_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int16, torch.int8, torch.uint8)


@kiln.jit
def _sort_kernel(x, values, places, rows, n, k, N: tl.constexpr, ROWS: tl.constexpr, DESCENDING: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < rows) & (column < n)
    v = tl.load(x + row * n + column, mask=inside, other=0)
    if v.dtype.is_floating():
        wide = v.to(tl.float32)
        bits = tl.where(wide == 0, 0.0, wide).to(tl.int32, bitcast=True)  # -0 and 0 are equal
        order = tl.where(wide == wide, bits ^ ((bits >> 31) & 0x7fffffff), 0x7fffffff)  # NaN is the largest
    else:
        order = v.to(tl.int32)
    if DESCENDING:
        order = ~order
    key = tl.where(inside, (order.to(tl.int64) << 32) | column, 0x7fffffffffffffff)
    place = tl.sort(key, 1) & 0xffffffff
    kept = (row < rows) & (column < k)
    tl.store(places + row * k + column, place, mask=kept)
    tl.store(values + row * k + column, tl.load(x + row * n + place, mask=kept, other=0), mask=kept)


def _sorted(x: torch.Tensor, k: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The first k of each row in order, and where they were."""
    n = x.shape[-1]
    rows = x.numel() // n
    wide = 1 << (n - 1).bit_length()
    together = min(_ELEMENTS // wide, 1 << (rows - 1).bit_length())
    values = torch.empty((*x.shape[:-1], k), dtype=x.dtype, device=x.device)
    places = torch.empty(values.shape, dtype=torch.int64, device=x.device)
    _sort_kernel[(-(-rows // together), )](x, values, places, rows, n, k, N=wide, ROWS=together, DESCENDING=descending,
                                           num_warps=max(1, min(8, together * wide // 256)))
    return values, places


def sort(x: torch.Tensor, *, stable: bool | None = None, dim: int = -1,
         descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """aten.sort.stable of short rows."""
    return _sorted(x, x.shape[-1], descending)


def sort_default(x: torch.Tensor, dim: int = -1, descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _sorted(x, x.shape[-1], descending)


def topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True,
         sorted: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    return _sorted(x, k, largest)


_OWN = {"aten.sort.default": sort_default, "aten.sort.stable": sort, "aten.topk.default": topk}
OPERATIONS = tuple(_OWN.values())


def replace(gm: GraphModule) -> None:
    """Gives the operations that the kernel serves to it: of rows that are short and lie one behind the other."""
    for node in gm.graph.nodes:
        own = _OWN.get(name_of(node)) if node.op == "call_function" else None
        if own is None or not _serves(node.args[0].meta.get("val"), node): continue
        node.target = own


def _serves(x: Any, node: torch.fx.Node) -> bool:
    if not isinstance(x, torch.Tensor) or x.device.type != "cuda" or x.dtype not in _DTYPES or not x.shape: return False
    if not x.is_contiguous() or any(not isinstance(n, int) for n in x.shape) or hint(x.numel()) == 0: return False
    at = {"aten.sort.default": 1, "aten.topk.default": 2}.get(name_of(node))  # of the others a keyword alone
    dim = node.kwargs.get("dim", -1) if at is None or len(node.args) <= at else node.args[at]
    if not isinstance(dim, int) or dim % x.ndim != x.ndim - 1: return False
    if name_of(node) == "aten.topk.default" and not isinstance(node.args[1], int): return False
    return x.shape[-1] <= LONGEST_ROW
