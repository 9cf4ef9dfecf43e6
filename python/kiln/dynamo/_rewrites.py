"""Operations of a GPU that are better written as others.

Bags of embeddings that all have one size are a lookup and a sum, mean or maximum, which share a kernel. The bias of a
convolution, which PyTorch adds by a kernel of its own, shares one with what follows.
"""
from __future__ import annotations

import functools
from typing import Any

import torch
from torch.fx import GraphModule, Node

from kiln.dynamo import _ops
from kiln.dynamo._build import erase_unread, is_getitem, name_of, why_not

_aten = torch.ops.aten
_BAGS = ("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
_ARGUMENTS = ("weight", "indices", "offsets", "scale_grad_by_freq", "mode", "sparse", "per_sample_weights",
              "include_last_offset", "padding_idx")


def rewrite(gm: GraphModule) -> None:
    for node in gm.graph.nodes:
        if node.op != "call_function": continue
        if name_of(node) in _BAGS: _look_up_bags(gm, node)
        if name_of(node) == "aten.convolution.default": _add_bias(gm, node)
    erase_unread(gm)


def _call(gm: GraphModule, before: Node, op: Any, *args: Any) -> Node:
    with gm.graph.inserting_before(before): made = gm.graph.call_function(op, args)
    made.meta["val"] = op(*torch.fx.map_arg(args, lambda n: n.meta["val"]))
    return made


def _add_bias(gm: GraphModule, node: Node) -> None:
    x, weight, bias, *rest = node.args
    if bias is None or not _ops.is_gpu(x.meta["val"].device): return
    if not any(name_of(u) in _ops.POINTWISE for u in node.users) or why_not(node) is None: return
    bare = _call(gm, node, _aten.convolution.default, x, weight, None, *rest)
    shape = [1, node.meta["val"].shape[1], *[1] * (node.meta["val"].ndim - 2)]
    if not isinstance(shape[1], int): return
    out = _call(gm, node, _aten.add.Tensor, bare, _call(gm, node, _aten.view.default, bias, shape))
    if out.meta["val"].stride() == node.meta["val"].stride(): node.replace_all_uses_with(out)


def _look_up_bags(gm: GraphModule, node: Node) -> None:
    given = {"mode": 0, "per_sample_weights": None, "include_last_offset": False, "padding_idx": -1}
    given |= dict(zip(_ARGUMENTS, node.args)) | node.kwargs
    table, indices, offsets = given["weight"], given["indices"], given["offsets"]
    if not _ops.is_gpu(table.meta["val"].device) or given["include_last_offset"] or given["padding_idx"] != -1: return
    if any(not is_getitem(u) or u.args[1] != 0 for u in node.users): return  # gradients ask for more
    if name_of(offsets) != "aten.arange.start_step" or not all(isinstance(n, int) for n in offsets.args): return
    start, total, size = (*offsets.args, 1)[:3]
    if start != 0 or size <= 0 or total <= 0 or total % size or indices.meta["val"].shape != (total, ): return

    call = functools.partial(_call, gm, node)
    rows = call(_aten.embedding.default, table, call(_aten.view.default, indices, [total // size, size]))
    if given["per_sample_weights"] is not None:
        shares = call(_aten.view.default, given["per_sample_weights"], [total // size, size, 1])
        rows = call(_aten.mul.Tensor, rows, shares)
    along = (_aten.sum.dim_IntList, _aten.mean.dim, _aten.amax.default)[given["mode"]]
    out = call(along, rows, [1])
    for u in list(node.users): u.replace_all_uses_with(out)
