"""Arguments of which a graph changes a part, as a cache of keys that gets a row in each step.

AOTAutograd makes values of changes: the whole argument with another part (slice_scatter, index_put), which is copied
into the argument at the end. Here the part alone is written, as early as the value was made, and what read the new
value reads the argument:

    new = slice_scatter(cache, rows, 1, at, at + 1)        view = slice(cache, 1, at, at + 1)
    y = f(new)                                       →     copy_(view, rows)
    copy_(cache, new)                                      y = f(cache)
"""
from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from kiln.dynamo import _ops
from kiln.dynamo._build import is_getitem, name_of

_aten = torch.ops.aten
# What puts a part into a tensor, and the view of that part.
_PUTS = {"aten.slice_scatter.default": _aten.slice.Tensor, "aten.select_scatter.default": _aten.select.int}
# What puts elements, and the same in place.
_IN_PLACE = {
    "aten.index_put.default": _aten.index_put_.default, "aten.index_copy.default": _aten.index_copy_.default,
    "aten.index_add.default": _aten.index_add_.default, "aten.scatter.src": _aten.scatter_.src,
    "aten.scatter.value": _aten.scatter_.value, "aten.scatter_add.default": _aten.scatter_add_.default
}
_DEFAULTS = {"aten.slice.Tensor": (0, None, None, 1), "aten.select.int": ()}


class _Write(NamedTuple):
    """`op(view, *args)`, where `views` lead from the argument to the view: operations with what follows their input."""
    views: tuple
    op: Any
    args: tuple
    kwargs: dict


def write_parts(gm: GraphModule) -> None:
    for copy in [n for n in gm.graph.nodes if name_of(n) == "aten.copy_.default" and n.args[0].op == "placeholder"]:
        _Argument(gm, copy).rewrite()


def readers_of_written(nodes: list[Node]) -> set[Node]:
    """What reads an argument that the graph writes a part of, and views of such arguments."""
    written = {_root(n.args[0]) for n in nodes if "writes_argument" in n.meta}
    return {n for n in nodes if n.op == "call_function" and any(_root(p) in written for p in n.all_input_nodes)}


def _root(n: Node) -> Node:
    """Of a view: the tensor that it is a view of."""
    while n.op == "call_function" and (name_of(n) in _ops.VIEWS or is_getitem(n)): n = n.args[0]
    return n


class _Argument:

    def __init__(self, gm: GraphModule, copy: Node) -> None:
        self.graph, self.copy = gm.graph, copy
        self.argument: Node = copy.args[0]

    def rewrite(self) -> None:
        while (new := self._first_change()) is not None:
            writes = self._writes(new, self.argument, ())
            if not writes or not self._may_come_early(new): return
            self._insert(new, writes)
        if self.copy.args[1] is not self.argument: return
        self.copy.replace_all_uses_with(self.argument)
        self.graph.erase_node(self.copy)

    def _first_change(self) -> Node | None:
        """Of the changes that make the new value one after the other, that of the argument as it is."""
        value, change = self.copy.args[1], None
        while isinstance(value, Node) and (name_of(value) in _PUTS or name_of(value) in _IN_PLACE):
            value, change = value.args[0], value
        return change if value is self.argument else None

    def _insert(self, new: Node, writes: list[_Write]) -> None:
        with self.graph.inserting_after(new): last = self.graph.call_function(_aten.sym_size.int, (self.argument, 0))
        made: list[Node] = []

        def call(op: Any, args: tuple, kwargs: dict | None = None, behind: Node | None = None) -> Node:
            with self.graph.inserting_after(behind) if behind else self.graph.inserting_before(last):
                node = self.graph.call_function(op, args, kwargs or {})
            made.append(node)
            known = torch.fx.map_arg((args, kwargs or {}), lambda n: n.meta["val"])
            node.meta["val"] = known[0][0] if op._schema.is_mutable else op(*known[0], **known[1])
            return node

        # Parts of arguments that change are taken where they stand, before anything is written to these.
        changing = {_root(n.args[0]) for n in self.graph.nodes if _is_write(n)}
        copies: dict[Node, Node] = {}
        *_, first = (n for n in self.graph.nodes if n.op == "placeholder")

        def taken(n: Node) -> Node:
            if _root(n) not in changing: return n
            behind = first if n.op == "placeholder" else n
            if n not in copies: copies[n] = call(_aten.clone.default, (n, ), behind=behind)
            return copies[n]

        writes = [w._replace(args=torch.fx.map_arg(w.args, taken)) for w in writes]
        for w in writes:
            view = self.argument
            for op, rest in w.views: view = call(op, (view, *rest))
            call(w.op, (view, *w.args), w.kwargs).meta["writes_argument"] = True
        self.graph.erase_node(last)
        new.replace_all_uses_with(self.argument)
        for n in reversed(list(self.graph.nodes)):
            if n.op == "call_function" and not n.users and n not in made and not _is_write(n): self.graph.erase_node(n)

    def _writes(self, value: Any, content: Any, views: tuple) -> list[_Write] | None:
        """What makes `value` of a part of the argument that has the value `content`; None: a new value altogether."""
        if not isinstance(value, Node): return None
        if _key(value) == _key(content): return []
        name, args = name_of(value), value.args
        if name == "aten.copy.default" and _key(args[0]) == _key(content):
            return [_Write(views, _aten.copy_.default, (args[1], ), {})]
        if name not in _PUTS and name not in _IN_PLACE: return None
        before = self._writes(args[0], content, views)
        if before is None: return None
        if name in _IN_PLACE: return [*before, _Write(views, _IN_PLACE[name], args[1:], dict(value.kwargs))]
        if value.kwargs: return None
        part = (_PUTS[name], args[2:])
        inner = self._writes(args[1], (part[0], _filled(*part), _key(args[0])), (*views, part))
        if inner is None: inner = [_Write((*views, part), _aten.copy_.default, (args[1], ), {})]
        return before + inner

    def _aliases(self) -> set[Node]:
        """The argument and views of it."""
        return {n for n in self.graph.nodes if _root(n) is self.argument}

    def _may_come_early(self, new: Node) -> bool:
        """Whether nothing reads what the argument held before, once the new value has been made."""
        order = {n: i for i, n in enumerate(self.graph.nodes)}
        if any(u.op == "output" for u in new.users): return False
        aliases = [n for n in self.graph.nodes if _root(n) is self.argument]
        return all(u is self.copy or order[u] <= order[new] for n in aliases for u in n.users)


def _is_write(n: Node) -> bool:
    return isinstance(n.target, torch._ops.OpOverload) and n.target._schema.is_mutable


def _filled(op: Any, rest: tuple) -> tuple:
    defaults = _DEFAULTS[str(op)]
    return (*rest, *defaults[len(rest):])


def _key(value: Any) -> Any:
    """What a value is, as far as views of one tensor are equal that were made alike."""
    if not isinstance(value, Node) or value.op != "call_function" or name_of(value) not in _DEFAULTS or value.kwargs:
        return value
    return value.target, _filled(value.target, value.args[1:]), _key(value.args[0])
