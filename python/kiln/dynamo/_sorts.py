"""Sorts, selections and elements of a rank on a GPU, by the kernels of scripts' torch (_library)."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from kiln.dynamo import _library, _ops
from kiln.dynamo._build import is_getitem, name_of

_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
           torch.int8, torch.uint8)


def sort(x: torch.Tensor, *, stable: bool | None = None, dim: int = -1,
         descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """aten.sort.stable. NaN is the largest, -0 and 0 are equal, and equal ones keep their order."""
    return _library.load("_sort").sort(x, dim % x.ndim, descending)


def sort_default(x: torch.Tensor, dim: int = -1, descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return sort(x, dim=dim, descending=descending)


def sorted_values(x: torch.Tensor, dim: int = -1) -> tuple[torch.Tensor, None]:
    """Of a sort whose places nobody reads."""
    values = _library.load("_sort").sorted_values(x, dim % x.ndim)
    return values if values is not None else sort(x, dim=dim)[0], None


def topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True,
         sorted: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    return _library.load("_select").topk(x, k, dim % x.ndim, largest)


def _ranked(x: torch.Tensor, dim: int, rank: int, keepdim: bool, nan_first: bool) -> tuple | None:
    found = _library.load("_sort").ranked(x, dim % x.ndim, rank, nan_first)
    return tuple(t.unsqueeze(dim) for t in found) if found and keepdim else found


def median(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _ranked(x, dim, (x.shape[dim] - 1) // 2, keepdim, True) or torch.median(x, dim, keepdim)


def kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _ranked(x, dim, k - 1, keepdim, False) or torch.kthvalue(x, k, dim, keepdim)


_OWN = {"aten.sort.default": sort_default, "aten.sort.stable": sort, "aten.topk.default": topk,
        "aten.median.dim": median, "aten.kthvalue.default": kthvalue}
OPERATIONS = (*_OWN.values(), sorted_values)


def replace(gm: GraphModule) -> None:
    """Gives the operations that the kernels serve to them."""
    for node in gm.graph.nodes:
        own = _OWN.get(name_of(node)) if node.op == "call_function" else None
        if own is None or not _serves(node): continue
        node.target = own
        if own not in (sort, sort_default): continue
        given = dict(zip(("dim", "descending"), node.args[1:]), **node.kwargs)
        if all(is_getitem(u) and u.args[1] == 0 for u in node.users) and not given.get("descending", False):
            node.target, node.args, node.kwargs = sorted_values, (node.args[0], given.get("dim", -1)), {}


def _serves(node: Node) -> bool:
    x: Any = node.args[0].meta.get("val")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES or not x.shape: return False
    if not _ops.is_gpu(x.device) or x.device.type not in ("cpu", "cuda"): return False
    # Sizes that may change stay with PyTorch, as what results has other strides than rows of it.
    if any(not isinstance(n, int) or n == 0 for n in x.shape) or x.layout != torch.strided or x.is_neg(): return False
    if not all(t.is_contiguous() and t.numel() > 0 for t in node.meta["val"]): return False
    return all(not isinstance(a, Node) for a in (*node.args[1:], *node.kwargs.values()))
