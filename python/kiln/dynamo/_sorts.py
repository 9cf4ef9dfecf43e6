"""Sorts, selections, elements of a rank, histograms and running logarithms of sums on a GPU, by the kernels of scripts'
torch (_library)."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from kiln.dynamo import _library, _ops
from kiln.dynamo._build import is_getitem, name_of, tensors_of

_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
           torch.int8, torch.uint8)


def sort(x: torch.Tensor, *, stable: bool | None = None, dim: int = -1,
         descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """aten.sort.stable. NaN is the largest, -0 and 0 are equal, and equal ones keep their order."""
    return _library.load("_sort").sort(x, dim % x.ndim, descending)


def sort_default(x: torch.Tensor, dim: int = -1, descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return sort(x, dim=dim, descending=descending)


def half_of_sort(x: torch.Tensor, dim: int, descending: bool, stable: bool,
                 half: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Of a sort of which nobody reads the places, or the values: half 0 or 1 of it."""
    return _library.load("_sort").sort(x, dim % x.ndim, descending, half == 0, half == 1, stable)


def topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True,
         sorted: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    return _library.load("_select").topk(x, k, dim % x.ndim, largest)


def half_of_topk(x: torch.Tensor, k: int, dim: int, largest: bool,
                 half: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    return _library.load("_select").topk(x, k, dim % x.ndim, largest, half == 0, half == 1)


def _ranked(x: torch.Tensor, dim: int, rank: int, keepdim: bool, nan_first: bool) -> tuple | None:
    found = _library.load("_sort").ranked(x, dim % x.ndim, rank, nan_first)
    return tuple(t.unsqueeze(dim) for t in found) if found and keepdim else found


def median(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _ranked(x, dim, (x.shape[dim] - 1) // 2, keepdim, True) or torch.median(x, dim, keepdim)


def kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _ranked(x, dim, k - 1, keepdim, False) or torch.kthvalue(x, k, dim, keepdim)


def logcumsumexp(x: torch.Tensor, dim: int) -> torch.Tensor:
    return _library.load("_scan").logcumsumexp(x, dim % x.ndim)


def histc(x: torch.Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> torch.Tensor:
    return _library.load("_device").even_counts(x, bins, min, max).to(x.dtype)


_OWN = {"aten.sort.default": sort_default, "aten.sort.stable": sort, "aten.topk.default": topk,
        "aten.median.dim": median, "aten.kthvalue.default": kthvalue, "aten.logcumsumexp.default": logcumsumexp,
        "aten.histc.default": histc}
OPERATIONS = (*_OWN.values(), half_of_sort, half_of_topk)


def replace(gm: GraphModule) -> None:
    """Gives the operations that the kernels serve to them."""
    for node in gm.graph.nodes:
        own = _OWN.get(name_of(node)) if node.op == "call_function" else None
        if own is None or not _serves(node): continue
        if own is histc and not _ops.counts_in_kernel(node.args[0].meta["val"], *node.args[1:], **node.kwargs): continue
        node.target = own
        read = {u.args[1] if is_getitem(u) else None for u in node.users}
        if len(read) != 1 or None in read or own not in (sort, sort_default, topk): continue
        # All that follows is by position: sort.stable has its arguments by name alone.
        names = ("k", "dim", "largest") if own is topk else ("dim", "descending")
        given = dict(zip(names, node.args[1:]), **node.kwargs)
        if own is topk:
            args = (given["k"], given.get("dim", -1), given.get("largest", True))
        else:
            args = (given.get("dim", -1), given.get("descending", False), bool(given.get("stable", False)))
        node.target, node.kwargs = half_of_topk if own is topk else half_of_sort, {}
        node.args = (node.args[0], *args, *read)


def _serves(node: Node) -> bool:
    x: Any = node.args[0].meta.get("val")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES or not x.shape: return False
    if not _ops.is_gpu(x.device) or x.device.type not in ("cpu", "cuda"): return False
    # Sizes that may change stay with PyTorch, as what results has other strides than rows of it.
    if any(not isinstance(n, int) or n == 0 for n in x.shape) or x.layout != torch.strided or x.is_neg(): return False
    if not all(t.is_contiguous() and t.numel() > 0 for t in tensors_of(node.meta["val"])): return False
    return all(not isinstance(a, Node) for a in (*node.args[1:], *node.kwargs.values()))
