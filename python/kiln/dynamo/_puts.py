"""Elements that go to places which tensors name: index_put, index_add, scatter and their like, and parts of arguments.

Each is a kernel that stores its elements, or adds them by atomics, in memory that is there. What computes them, and
their places, element by element is part of it:

    p = y * w.unsqueeze(1)                            out = zeros(…)
    out = index_add(zeros(…), 0, token, p)     →      put(out, y, w, token)
"""
from __future__ import annotations

import functools
import math
import time
from typing import Any, Callable, NamedTuple, Sequence

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

from kiln import _kiln
from kiln._expr import Expr, _apply, _arange
from kiln.dynamo import _ops, _report
from kiln.dynamo._build import (ARANGES, device_number, evaluate, full_arguments, hint, is_full, is_getitem,
                                name_of, placeholder, why_not)
from kiln.dynamo._ops import Full, Unsupported
from kiln.dynamo._writes import readers_of_written

_aten = torch.ops.aten
# What makes a new tensor, and the same in place.
_IN_PLACE = {
    "index_put.default": _aten.index_put_.default, "_unsafe_index_put.default": _aten.index_put_.default,
    "index_copy.default": _aten.index_copy_.default, "index_add.default": _aten.index_add_.default,
    "scatter.src": _aten.scatter_.src, "scatter.value": _aten.scatter_.value,
    "scatter_add.default": _aten.scatter_add_.default
}
_IN_PLACE = {f"aten.{name}": op for name, op in _IN_PLACE.items()}
_MOST_ABSORBED = 32
# Atomics have 32 or 64 bits, of floats 16 as well.
_ADDED = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64)


class _Where(NamedTuple):
    """Elements of a shape, the index along each dimension of the tensor that tells where they go (None: their own
    dimension `at`), and whether they are added."""
    value: Expr
    indices: list[Expr | None]  # by dimension of the tensor
    dims: list[int]  # of the elements, where there is no index
    shape: Sequence[int]
    adds: bool = False
    may_be_negative: bool = False


def _index_put(x: torch.Tensor, indices: Sequence[Any], value: Expr, accumulate: bool = False, *unsafe: Any) -> _Where:
    given: list[Expr | None] = [*indices, *[None] * (x.ndim - len(indices))]
    looked = [d for d, i in enumerate(given) if i is not None]
    if not looked or any(i.dtype not in ("int64", "int32") for i in given if i is not None):
        raise Unsupported("places that are no integers")
    together = torch.broadcast_shapes(*[i.shape for i in given if i is not None])
    beside = looked == list(range(looked[0], looked[-1] + 1))
    first = looked[0] if beside else 0  # where the dimensions of the indices stand among those of the elements
    rest = [d for d in range(x.ndim) if given[d] is None]
    lead = [d for d in rest if d < first]
    behind = [d for d in rest if d not in lead]
    shape = [*(x.shape[d] for d in lead), *together, *(x.shape[d] for d in behind)]
    dims = [0] * x.ndim
    for k, d in enumerate(lead): dims[d] = k
    for k, d in enumerate(behind): dims[d] = len(lead) + len(together) + k
    places = [i if i is None else i.reshape([*i.shape, *[1] * len(behind)]) for i in given]
    return _Where(value, places, dims, shape, bool(accumulate), True)


def _index_add(x: torch.Tensor, dim: int, index: Expr, source: Expr, *, alpha: Any = 1) -> _Where:
    return _along(x, dim, index, source if alpha == 1 else source * alpha, True)


def _along(x: torch.Tensor, dim: int, index: Expr, source: Expr, adds: bool = False) -> _Where:
    axis = dim % x.ndim
    if source.ndim != x.ndim: raise Unsupported("elements without dimensions")
    places: list[Expr | None] = [None] * x.ndim
    places[axis] = index.reshape([index.numel(), *[1] * (x.ndim - axis - 1)])
    return _Where(source, places, list(range(x.ndim)), source.shape, adds)


def _scatter(x: torch.Tensor, dim: int, index: Expr, source: Any, adds: bool = False) -> _Where:
    axis = dim % x.ndim
    if index.ndim != x.ndim: raise Unsupported("places without dimensions")
    if isinstance(source, Expr) and source.shape != index.shape:
        source = source[tuple(slice(0, n) for n in index.shape)]
    places: list[Expr | None] = [None] * x.ndim
    places[axis] = index
    return _Where(source, places, list(range(x.ndim)), index.shape, adds)


def _copy(x: torch.Tensor, source: Expr, non_blocking: bool = False) -> _Where:
    return _Where(source, [None] * x.ndim, list(range(x.ndim)), x.shape)


_WHERE: dict[str, Callable[..., _Where]] = {
    "aten.index_put_.default": _index_put, "aten.index_copy_.default": _along,
    "aten.index_add_.default": _index_add, "aten.scatter_.src": _scatter, "aten.scatter_.value": _scatter,
    "aten.scatter_add_.default": functools.partial(_scatter, adds=True), "aten.copy_.default": _copy
}


# Sums of so many elements to each place go to several copies of the tensor, which are added up: additions to one
# address take turns.
_MANY = 256
_MOST_OF_COPIES = 2**20  # elements


def _copies(x: torch.Tensor, w: _Where) -> int:
    """How many copies; 1: the tensor itself."""
    elements, places = math.prod(w.shape), x.numel()
    if not w.adds or not x.is_contiguous() or elements < 2**16 or elements < _MANY * places: return 1
    most = min(256, elements // (16 * places), _MOST_OF_COPIES // places)
    return 1 << (most.bit_length() - 1) if most > 1 else 1


def _turn(w: _Where, count: int, beside: Expr) -> Expr:
    """The copy for each element: another one for the next row that is put."""
    varies = [d for d in range(len(w.shape)) for i in w.indices
              if i is not None and d + i.ndim >= len(w.shape) and i.shape[d + i.ndim - len(w.shape)] != 1]
    row, stride = None, 1
    for d in sorted(set(varies), reverse=True):
        at = _arange(w.shape[d], len(w.shape), d, beside)
        if stride != 1: at = at.to("int64") * stride
        row = at if row is None else row + at
        stride *= w.shape[d]
    return row & (count - 1) if row is not None else _arange(1, len(w.shape), 0, beside)


def _expression(x: torch.Tensor, w: _Where, copies: int = 1) -> Expr:
    """The operation that puts elements into x, or one of several such, by their distance from its first element."""
    dtype = str(x.dtype)[6:]
    reach = sum((hint(n) - 1) * hint(s) for n, s in zip(x.shape, x.stride()))
    wide = "int32" if reach < 2**31 - 1 else "int64"
    beside = next((e for e in (w.value, *w.indices) if isinstance(e, Expr)), None)
    value = w.value
    if not isinstance(value, Expr): value = Full(value, dtype, [1] * len(w.shape), beside.device).expr()
    place = inside = None
    for d in range(x.ndim):
        size, stride, at = hint(x.shape[d]), hint(x.stride(d)), w.indices[d]
        if at is None:
            along = w.dims[d]
            if w.shape[along] == 1: continue
            at = _arange(w.shape[along], len(w.shape), along, beside).to(wide)
        else:
            if w.may_be_negative: at = _apply("where", (at < 0, at + size, at))
            test = _apply("logical_and", (at >= 0, at < size))
            inside = test if inside is None else _apply("logical_and", (inside, test))
            at = at.to(wide)
        if stride != 1: at = at * stride
        place = at if place is None else place + at
    first = _arange(1, len(w.shape), 0, beside)
    if copies > 1:
        turn = _turn(w, copies, beside).to(wide) * x.numel()
        place = turn if place is None else place + turn
    if place is None: place = first.to(wide)
    if inside is None: inside = first >= 0
    value = value.to(dtype)
    if torch.broadcast_shapes(value.shape, tuple(w.shape)) != torch.Size(w.shape):
        raise Unsupported("elements of another shape")
    whole = place.expand(list(w.shape))
    return _apply("put", (value, whole, inside), adds=w.adds)


def _sum_of_copies(x: torch.Tensor) -> torch.Tensor:
    return x.sum(0, dtype=x.dtype)


class Put:
    """A function of a tensor and of what the elements are made of: puts them there and gives the tensor, or a copy.

    graph: its placeholders are the tensor and the rest, and its last operation writes. `copy`: makes the copy; None:
    nobody else has the tensor. `writes`: it is an argument's memory.
    """
    __name__ = "put"

    def __init__(self, owner: GraphModule, graph: torch.fx.Graph, copy: Callable | None, writes: bool,
                 strict: bool) -> None:
        self.instead = GraphModule(owner, graph).forward
        self.strict, self.copy, self.writes = strict, copy, writes
        self.tensor, *self.inputs = [n for n in graph.nodes if n.op == "placeholder"]
        calls = [n for n in graph.nodes if n.op == "call_function"]
        *self.nodes, self.last = calls
        self.operations = sum(not is_getitem(n) and not is_full(n) and name_of(n) not in _ops.VIEWS for n in self.nodes)
        self.operations += not writes
        device = self.tensor.meta["val"].device
        several = device.type == "cuda" and torch.cuda.device_count() > 1
        self.device = device_number(device) if several else None
        self.run = _kiln.piece(self.build)

    def __call__(self, x: torch.Tensor, *inputs: Any) -> torch.Tensor:
        if self.copy is not None: x = self.copy(x)
        if self.device is None:
            sums = self.run(x, *inputs)
        else:
            with torch.cuda.device(self.device): sums = self.run(x, *inputs)
        if sums: x += sums[0]
        return x

    def build(self, arguments: tuple) -> Any:
        if any(isinstance(a, torch.Tensor) and a.numel() == 0 for a in arguments): return self.instead
        if arguments[0].data_ptr() % 16: return self.instead  # kernels write to aligned addresses
        start = time.perf_counter()
        try:
            leaves = [_kiln.Expr.leaf(a) for a in arguments if isinstance(a, torch.Tensor)]
            given = iter(leaves)
            env = {n: Expr(next(given), (), a) if isinstance(a, torch.Tensor) else a
                   for n, a in zip((self.tensor, *self.inputs), arguments)}
            put, copies = self.expression(env, arguments[0])
            program = _kiln.ExprProgram(leaves, [put._node])
            if program.workspace or len(program.buffers) != 1: raise Unsupported("a put of several kernels")
        except (Unsupported, _kiln.Error, TypeError, ValueError) as e:
            reason = getattr(e, "message", None) or str(e)
            if self.strict: raise Unsupported(f"no kernels for {self.operations} operations: {reason}") from e
            _report.add_piece(_report.Piece(self.operations, 0, time.perf_counter() - start, reason))
            return self.instead
        _report.add_piece(_report.Piece(self.operations, program.kernels, time.perf_counter() - start))
        if copies == 1: return program, [0], None, []
        x = arguments[0]
        zeros = functools.partial(torch.zeros, dtype=x.dtype, device=x.device)
        return program, [(zeros, ((copies, *x.shape), ))], None, [(0, _sum_of_copies)]

    def expression(self, env: dict[Node, Any], x: torch.Tensor) -> tuple[Expr, int]:
        for node in self.nodes: env[node] = evaluate(node, env)

        def argument(a: Any) -> Any:
            if isinstance(a, Node): return env[a].expr() if isinstance(env[a], Full) else env[a]
            return [argument(v) for v in a] if isinstance(a, (list, tuple)) else a

        args = [argument(a) for a in self.last.args[1:]]
        where = _WHERE[name_of(self.last)](x, *args, **self.last.kwargs)
        copies = _copies(x, where)
        return _expression(x, where, copies), copies

    def why_not(self) -> str | None:
        try:
            values = {n: n.meta["val"] for n in (self.tensor, *self.inputs)}
            if any(hint(n) == 0 for v in values.values() if isinstance(v, torch.Tensor) for n in v.shape):
                return "tensors without elements"
            x = values[self.tensor]
            with _disable_current_modes():  # numbers, so that no size is guarded
                x = torch.empty_strided(*(list(map(hint, n)) for n in (x.shape, x.stride())), dtype=x.dtype,
                                        device="meta")
            env = {n: placeholder(v) if isinstance(v, torch.Tensor) else hint(v) for n, v in values.items()}
            self.expression(env, x)
        except (Unsupported, _kiln.Error, TypeError, ValueError, IndexError, AttributeError) as e:
            return getattr(e, "message", None) or str(e)
        return None


def replace(gm: GraphModule, strict: bool) -> None:
    """Gives such operations, with what is computed for them alone, to kernels of their own."""
    fixed = readers_of_written(list(gm.graph.nodes))
    for node in reversed(list(gm.graph.nodes)):
        if node.op != "call_function": continue
        in_place = node.target if "writes_argument" in node.meta else _IN_PLACE.get(name_of(node))
        if in_place is not None and str(in_place) in _WHERE: _replace(gm, node, in_place, fixed, strict)


def _replace(gm: GraphModule, node: Node, in_place: Any, fixed: set[Node], strict: bool) -> None:
    writes = "writes_argument" in node.meta
    x = node.args[0].meta["val"]
    if not x.ndim or not _is_plain(x) or not writes and why_not(node) is None: return
    name = str(in_place)
    adds = name in ("aten.index_add_.default", "aten.scatter_add_.default") or name == "aten.index_put_.default" and (
        len(node.args) > 3 and node.args[3] or bool(node.kwargs.get("accumulate")))
    if adds and (x.dtype not in _ADDED or not _ops.is_gpu(x.device)): return
    if adds and torch.are_deterministic_algorithms_enabled(): return
    absorbed = _absorbed(node, fixed)
    if name == "aten.copy_.default" and not any(name_of(n) in _ops.POINTWISE for n in absorbed): return
    base, inputs = node.args[0], []
    for n in (*absorbed, node):
        for p in _operands(n) if n is node else [] if is_full(n) else n.all_input_nodes:
            if p not in absorbed and p not in inputs: inputs.append(p)
    if base in inputs and writes: return  # reads what it changes
    for p in inputs:
        value = p.meta.get("val")
        if isinstance(value, torch.Tensor):
            if value.device != x.device or not _is_plain(value): return
        elif not isinstance(value, (int, torch.SymInt)): return
    graph, copies = torch.fx.Graph(), {}
    target = graph.placeholder("target")
    target.meta = dict(base.meta)
    for i, n in enumerate(inputs):
        copies[n] = graph.placeholder(f"a{i}")
        copies[n].meta = dict(n.meta)
    for n in absorbed:
        if is_full(n):
            copies[n] = graph.call_function(_aten.full.default, *full_arguments(n))
            copies[n].meta = {"val": n.meta["val"]}
        else:
            copies[n] = graph.node_copy(n, lambda a: copies[a])
    args, kwargs = torch.fx.map_arg((node.args[1:], dict(node.kwargs)), lambda a: copies[a])
    if name_of(node) == "aten._unsafe_index_put.default": args = args[:3]
    copies[node] = graph.call_function(in_place, (target, *args), kwargs)
    copies[node].meta = dict(node.meta)
    graph.output(())
    copy = None if writes else _copier(node) or (torch.clone if base in inputs else None)
    put = Put(gm, graph, copy, writes, strict)
    if put.why_not() is not None: return
    node.target, node.args, node.kwargs = put, (base, *inputs), {}
    for n in reversed(absorbed):
        if not n.users: gm.graph.erase_node(n)


def _operands(node: Node) -> list[Node]:
    found: list[Node] = []
    torch.fx.map_arg((node.args[1:], node.kwargs), found.append)
    return found


def _is_plain(x: torch.Tensor) -> bool:
    return x.layout == torch.strided and not x.is_complex() and not x.is_neg() and x.device.type in ("cpu", "cuda")


def _absorbed(node: Node, fixed: set[Node]) -> list[Node]:
    """What is computed for the operation alone and element by element, and numbers, in order."""
    taken: set[Node] = set()
    places = {n: i for i, n in enumerate(node.graph.nodes)}
    left = sorted(_operands(node), key=places.__getitem__)
    while left and len(taken) < _MOST_ABSORBED:
        n = left.pop()
        if n in taken or n is node.args[0] or n.op != "call_function": continue
        if not is_full(n):
            if any(u is not node and u not in taken for u in n.users) or n in fixed: continue
            if name_of(n) not in _ops.POINTWISE | _ops.VIEWS | _MORE or is_getitem(n) or why_not(n): continue
        taken.add(n)
        if not is_full(n): left += n.all_input_nodes
        left.sort(key=places.__getitem__)
    return sorted(taken, key=places.__getitem__)


_MORE = {"aten.clone.default", "aten.copy.default", *ARANGES}


def _copier(node: Node) -> Callable | None:
    made, given = node.meta["val"], node.args[0].meta["val"]
    if made.stride() != given.stride(): return functools.partial(torch.clone, memory_format=torch.contiguous_format)
    return None if _is_fresh(node.args[0]) else torch.clone


def _is_fresh(n: Node) -> bool:
    """Whether the one who reads it may write to its memory: it was made here, and is nobody else's view."""
    if n.op != "call_function" or len(n.users) != 1 or name_of(n) in _ops.VIEWS or is_getitem(n): return False
    if isinstance(n.target, Put): return not n.target.writes
    if not isinstance(n.target, torch._ops.OpOverload): return False
    schema = n.target._schema
    return all(a.alias_info is None for a in (*schema.arguments, *schema.returns)) and math.prod(
        map(hint, n.meta["val"].shape)) > 0 and 0 not in n.meta["val"].stride()
