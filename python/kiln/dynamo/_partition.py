"""Which operations of an ATen graph Kiln computes together, and the code that runs pieces and the rest in order.

Each node has a level. Those of one level that have expressions are a piece; the others of that level run behind it. So
there is no cycle between pieces, and no two of them that could be one.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Callable, Iterable

import torch
from torch.fx import GraphModule, Node

from kiln import _kiln
from kiln.dynamo import _ops, _report, _sorts
from kiln.dynamo._build import (Builder, constant_of, device_number, full_arguments, hint, is_full, is_getitem,
                                memory_order, name_of, tensors_of, why_not)
from kiln.dynamo._puts import Put
from kiln.dynamo._writes import readers_of_written

# The most operations of a piece: planning takes longer than in proportion.
MOST_OPERATIONS = 256


def is_ordered(node: Node) -> bool:
    """What must not change places with its like: draws of random numbers, writes."""
    if node.op != "call_function": return False
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags
    if isinstance(node.target, Put): return node.target.writes
    if node.target in _sorts.OPERATIONS: return False
    return getattr(node.target, "__module__", "") not in ("_operator", "math", "torch", "torch.fx")


def is_write(node: Node) -> bool:
    if isinstance(node.target, torch._ops.OpOverload): return node.target._schema.is_mutable
    return is_ordered(node)


def _lies_apart(node: Node) -> bool:
    """Whether an operand is broadcast, has gaps, another order than the result, or another dtype than others."""
    def layout(value: torch.Tensor) -> tuple:
        return [hint(n) for n in value.shape], [hint(n) for d, n in enumerate(value.stride()) if value.shape[d] != 1]

    made = layout(node.meta["val"])
    operands = [t for n in node.all_input_nodes if not is_full(n) for t in tensors_of(n.meta["val"]) if t.shape]
    return any(layout(t) != made for t in operands) or len({t.dtype for t in operands}) > 1


class Partition:
    """The pieces of a graph."""

    def __init__(self, gm: GraphModule, strict: bool) -> None:
        self.gm, self.strict = gm, strict
        self.nodes = [n for n in gm.graph.nodes if n.op != "output"]
        self.output = next(n for n in gm.graph.nodes if n.op == "output")
        self.place = {n: i for i, n in enumerate(self.nodes)}
        self.reasons: dict[Node, str] = {}
        self.fixed = readers_of_written(self.nodes)
        inside = {n for n in self.nodes if n.op == "call_function" and not is_getitem(n) and self._is_covered(n)}
        # What has nothing to share a kernel with is left, which may leave others alone.
        while True:
            inside = self._with_getitems(inside)
            pieces = self._pieces(inside)
            alone = {n for piece in pieces if not self._pays(piece) for n in piece}
            if not alone: break
            for n in alone:
                if not is_getitem(n) and name_of(n) not in _ops.VIEWS: self.reasons[n] = _report.ALONE
            inside -= alone
        for piece in reversed(pieces): self._trim(piece, pieces)
        self.pieces = [p for p in pieces if p]

    def counts(self) -> tuple[int, int, Counter]:
        """Operations, those in pieces, and why others are not."""
        inside = {n for p in self.pieces for n in p}
        real = [n for n in self.nodes if n.op == "call_function" and self._is_operation(n)]
        left = Counter((name_of(n), self.reasons.get(n, _report.ALONE)) for n in real if n not in inside)
        own = sum(n.target in _sorts.OPERATIONS for n in self.nodes)
        own += sum(n.target.operations for n in self.nodes if isinstance(n.target, Put))
        return len(real) + own, sum(n in inside for n in real) + own, left

    @staticmethod
    def _is_operation(n: Node) -> bool:
        """Computes something: no view, no size, no number, and no write of a new value to an argument."""
        if not isinstance(n.target, torch._ops.OpOverload) or is_full(n) or name_of(n) in _ops.VIEWS: return False
        if name_of(n) == "aten.copy_.default" and n.args[0].op == "placeholder" or "writes_argument" in n.meta: return False
        return bool(tensors_of(n.meta.get("val")))

    def _is_covered(self, node: Node) -> bool:
        if is_full(node): return False  # a part of what reads it
        if not tensors_of(node.meta.get("val")): return False
        reason = why_not(node)
        if reason: self.reasons[node] = reason
        return reason is None

    def _pays(self, piece: list[Node]) -> bool:
        """Whether operations share a kernel, or one is worth its own."""
        computing = [n for n in piece if not is_getitem(n) and name_of(n) not in _ops.VIEWS]
        return len(computing) > 1 or any(self._is_worth(n) for n in computing)

    @staticmethod
    def _is_worth(node: Node) -> bool:
        """What reduces; a copy that brings elements into another order, as of a transpose; a choice between a tensor
        and a number, which masked_fill() became and for which PyTorch would copy the number to the GPU; operands that
        do not lie as the result does, for which PyTorch's kernels compute an address for each element."""
        name = name_of(node)
        if name in _ops.WORTH_ALONE: return True
        if _ops.is_gpu(tensors_of(node.meta["val"])[0].device):
            if name in _ops.WORTH_ALONE_ON_GPUS or name in _ops.POINTWISE and _lies_apart(node): return True
        if name == "aten.where.self": return any(is_full(n) for n in node.all_input_nodes)
        if name != "aten.clone.default": return False
        before, after = memory_order(node.args[0].meta["val"]), memory_order(node.meta["val"])
        return before is not None and after is not None and before != after

    def _with_getitems(self, inside: set[Node]) -> set[Node]:
        kept = {n for n in inside if not is_getitem(n)}
        return kept | {u for n in kept for u in n.users if is_getitem(u)}

    def _levels(self, inside: set[Node]) -> dict[Node, int]:
        level: dict[Node, int] = {}
        ordered = written = highest = 0
        for n in self.nodes:
            before = [level[p] if (n in inside) == (p in inside) or p in inside else level[p] + 1
                      for p in n.all_input_nodes if not (n in inside and is_full(p))]
            # An operation outside runs behind the piece of its level.
            level[n] = max([*before, written + 1 if n in inside else written])
            if n not in inside and is_ordered(n): ordered = level[n] = max(level[n], ordered)
            # A write comes behind all that may read what was there.
            if n not in inside and is_write(n): ordered = written = level[n] = highest
            highest = max(highest, level[n])
        return level

    def _pieces(self, inside: set[Node]) -> list[list[Node]]:
        level = self._levels(inside)
        self._sink(inside, level)
        self.level = level
        groups: dict[tuple[int, str], list[Node]] = {}
        for n in self.nodes:
            if n in inside: groups.setdefault((level[n], str(tensors_of(n.meta["val"])[0].device)), []).append(n)
        pieces = []
        for _, group in sorted(groups.items()):
            chunk: list[Node] = []
            where: dict[Node, list[Node]] = {}
            for n in group:
                if is_getitem(n):  # beside the operation that it is of
                    where[n.args[0]].append(n)
                    continue
                if len(chunk) >= MOST_OPERATIONS: pieces.append(chunk), (chunk := [])
                chunk.append(n)
                where[n] = chunk
            pieces.append(chunk)
        return pieces

    def _sink(self, inside: set[Node], level: dict[Node, int]) -> None:
        """Moves operations to the piece that needs them, where that keeps no more memory meanwhile."""
        for n in reversed(self.nodes):
            if n in self.fixed: continue  # what it reads may change behind it
            if n not in inside or is_getitem(n) or any(is_getitem(u) for u in n.users): continue
            if self.output in n.users or not n.users: continue
            size = sum(t.numel() for t in tensors_of(n.meta["val"]))
            inner = [p for p in n.all_input_nodes if p.op != "placeholder"]
            read = sum(t.numel() for p in inner for t in tensors_of(p.meta.get("val")))
            if hint(size) < hint(read): continue
            level[n] = max(level[n], min(level[u] for u in n.users))

    def _trim(self, piece: list[Node], pieces: list[list[Node]]) -> None:
        """Leaves views to those who need them: other pieces have their own, and PyTorch's alias its own tensors."""
        home = {n: p for p in pieces for n in p}
        for n in reversed(list(piece)):
            if name_of(n) not in _ops.VIEWS and not (is_getitem(n) and name_of(n.args[0]) in _ops.VIEWS): continue
            for other in pieces:
                theirs = [u for u in n.users if home.get(u) is other] if other is not piece else []
                if not theirs: continue
                twins = self._twin(n)
                for u in theirs: u.replace_input_with(n, twins[-1])
                at = min(other.index(u) for u in theirs)
                other[at:at] = twins
                home.update((t, other) for t in twins)
                self.level.update((t, self.level[theirs[0]]) for t in twins)
            away = [u for u in n.users if u not in home]
            if (not away and n.users) or self._may_stay(n, set(piece)): continue
            if len(away) < len(n.users):
                twin = self._twin(n)[-1]
                for u in away: u.replace_input_with(n, twin)
            else:
                piece.remove(n)
                del home[n]

    def _may_stay(self, n: Node, members: set[Node]) -> bool:
        """A result that is another's memory in other words, which nobody else has."""
        base = n.args[0]
        values = [n.meta["val"], base.meta["val"]]
        if is_getitem(n) or is_getitem(base) or not all(isinstance(v, torch.Tensor) for v in values): return False
        if base not in members or len(base.users) != 1: return False
        if name_of(base) in _ops.VIEWS and not self._may_stay(base, members): return False
        a, b = [math.prod(map(hint, v.shape)) for v in values]
        return a == b and memory_order(values[0]) is not None

    def _twin(self, n: Node) -> list[Node]:
        """The same view again; behind the operation that it is one of the results of."""
        made = []
        for source in [n.args[0], n] if is_getitem(n) else [n]:
            with self.gm.graph.inserting_after(made[-1] if made else n): twin = self.gm.graph.node_copy(source)
            twin.meta = dict(source.meta)
            self._add(twin, source)
            made.append(twin)
        if is_getitem(n): made[1].args = (made[0], n.args[1])
        return made

    def _add(self, node: Node, beside: Node) -> None:
        self.level[node] = self.level[beside]
        self.place[node] = self.place[beside]

    # --- the order

    def schedule(self) -> list[Any]:
        """Pieces (lists of nodes) and nodes, in an order in which they can run."""
        inside = {n for p in self.pieces for n in p}
        free = [n for n in self.gm.graph.nodes if n.op not in ("placeholder", "output") and n not in inside]
        # A number that pieces alone read is in their kernels.
        needed = [n for n in free if not is_full(n) or any(u not in inside for u in n.users)]
        steps: list[tuple] = []
        for i, piece in enumerate(self.pieces): steps.append((self.level[piece[0]], 0, i, piece))
        order = {n: i for i, n in enumerate(self.gm.graph.nodes)}
        for n in needed: steps.append((self.level[n], 1, order[n], n))
        return [s[3] for s in sorted(steps, key=lambda s: s[:3])]


class _Code:
    """Python source with the objects that it names."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        self.names: dict[Node, str] = {}
        self.objects: dict[int, str] = {}
        self.lines: list[str] = []

    def name(self, node: Node) -> str:
        return self.names.setdefault(node, f"v{len(self.names)}")

    def object(self, value: Any) -> str:
        name = self.objects.get(id(value))
        if name is None:
            name = self.objects[id(value)] = f"o{len(self.objects)}"
            self.scope[name] = value
        return name

    def text(self, a: Any) -> str:
        if isinstance(a, Node): return self.name(a)
        if a is None or isinstance(a, (bool, int, str)) or type(a) is float: return repr(a)
        if isinstance(a, tuple) and type(a) is tuple: return "(" + "".join(self.text(x) + ", " for x in a) + ")"
        if isinstance(a, list): return "[" + ", ".join(map(self.text, a)) + "]"
        if isinstance(a, dict): return "{" + ", ".join(f"{k!r}: {self.text(v)}" for k, v in a.items()) + "}"
        if isinstance(a, slice): return f"slice({self.text(a.start)}, {self.text(a.stop)}, {self.text(a.step)})"
        return self.object(a)

    def call(self, node: Node, gm: GraphModule) -> None:
        if node.op == "get_attr":
            found: Any = gm
            for part in node.target.split("."): found = getattr(found, part)
            self.lines.append(f"{self.name(node)} = {self.object(found)}")
        elif is_getitem(node):
            self.lines.append(f"{self.name(node)} = {self.text(node.args[0])}[{self.text(node.args[1])}]")
        elif (constant := constant_of(node)) is not None:
            self.lines.append(f"{self.name(node)} = {self.object(constant)}.clone()")
        else:
            given = [self.text(a) for a in node.args] + [f"{k}={self.text(v)}" for k, v in node.kwargs.items()]
            self.lines.append(f"{self.name(node)} = {self.object(node.target)}({', '.join(given)})")

    def full(self, node: Node) -> None:
        """A tensor of one number."""
        args, kwargs = full_arguments(node)
        given = ", ".join([*map(self.text, args), *(f"{k}={self.text(v)}" for k, v in kwargs.items())])
        self.lines.append(f"{self.name(node)} = {self.object(torch.ops.aten.full.default)}({given})")

    def function(self, head: str) -> Callable:
        body = "\n    ".join(self.lines)
        exec(compile(f"def run({head}):\n    {body}\n", "<kiln.dynamo>", "exec"), self.scope)
        return self.scope["run"]


def _members(step: Any) -> list[Node]:
    return step if isinstance(step, list) else [step]


def _external(piece: Iterable[Node]) -> tuple[list[Node], list[Node]]:
    """A piece's inputs, and the numbers that are tensors to PyTorch."""
    members, inputs, full = set(piece), [], []
    for n in piece:
        for p in n.all_input_nodes:
            if p in members or p in inputs or p in full: continue
            (full if is_full(p) else inputs).append(p)
    return inputs, full


def generate(partition: Partition) -> Callable[[list], list]:
    """A function of a list of arguments, which it empties, so that memory is free when it was read last."""
    gm, code = partition.gm, _Code()
    steps = partition.schedule()
    returned = partition.output.args[0]
    last: dict[Node, int] = {}
    kept = set(partition.output.all_input_nodes)
    for i, step in enumerate(steps):
        for n in _members(step):
            for p in n.all_input_nodes: last[p] = i
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    code.lines.append(f"[{', '.join(code.name(n) for n in placeholders)}] = args")
    code.lines.append("args.clear()")
    unused = [code.name(n) for n in placeholders if n not in last and n not in kept]
    if unused: code.lines.append(f"del {', '.join(unused)}")
    for i, step in enumerate(steps):
        members = set(_members(step))
        if isinstance(step, list):
            inputs, full = _external(step)
            outputs = [n for n in step if n in kept or any(u not in members for u in n.users)]
            outputs = [n for n in outputs if isinstance(n.meta["val"], torch.Tensor)]
            builder = Builder(full + step, inputs, outputs, _targets(members, inputs, outputs),
                              _eager(gm, full + step, inputs, outputs), partition.strict)
            call = code.object(_kiln.piece(builder))
            line = f"[{', '.join(map(code.name, outputs))}] = {call}({', '.join(map(code.name, inputs))})"
            device = outputs[0].meta["val"].device
            # Kiln makes the context of its device current, which is PyTorch's current device.
            if device.type == "cuda" and torch.cuda.device_count() > 1:
                line = f"with {code.object(torch.cuda.device)}({device_number(device)}): {line}"
            code.lines.append(line)
        else:
            code.call(step, gm)
        read = {p for n in members for p in n.all_input_nodes}
        done = [p for p in read | members if last.get(p, i) <= i and p not in kept and p in code.names]
        if done: code.lines.append(f"del {', '.join(sorted(code.names[p] for p in done))}")
    code.lines.append(f"return {code.text(list(returned) if isinstance(returned, (list, tuple)) else [returned])}")
    run = code.function("args")
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _targets(members: set[Node], inputs: list[Node], outputs: list[Node]) -> dict[Node, Node]:
    """Outputs that are nothing but the new value of an argument, which the piece alone reads."""
    found = {}
    for n in outputs:
        away = [u for u in n.users if u not in members]
        if len(away) != 1 or name_of(away[0]) != "aten.copy_.default" or away[0].args[1] is not n: continue
        target = away[0].args[0]
        if target.op == "placeholder" and target in inputs and all(u in members or u is away[0] for u in target.users):
            if n.meta["val"].dtype == target.meta["val"].dtype: found[n] = target
    return found


def _eager(gm: GraphModule, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> Callable[..., tuple]:
    """The same as PyTorch's operations."""
    code = _Code()
    head = ", ".join(map(code.name, inputs))
    for n in nodes:
        if is_full(n):  # full_like(x) needs no x
            code.full(n)
        else:
            code.call(n, gm)
    code.lines.append(f"return ({''.join(code.name(n) + ', ' for n in outputs)})")
    return code.function(head)
