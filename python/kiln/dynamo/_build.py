"""From a part of an ATen graph to an expression, and to a program for tensors of one layout."""
from __future__ import annotations

import functools
import math
import operator
import time
from typing import Any, Callable, Sequence

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

from kiln import _kiln, _memory
from kiln._expr import Expr
from kiln.dynamo import _ops, _places, _report, _windows  # noqa: F401, these two fill the table
from kiln.dynamo._ops import Full, Unsupported

ARANGES = ("aten.arange.default", "aten.arange.start", "aten.arange.start_step", "prims.iota.default",
           "aten.linspace.default")


def name_of(node: Node) -> str:
    return str(node.target)


def is_getitem(node: Node) -> bool:
    return node.target is operator.getitem


def is_full(node: Node) -> bool:
    """A tensor of one number, whose shape is known: what reads it is told the number."""
    if constant_of(node) is not None: return True
    return (name_of(node) in _ops.FULL or name_of(node) in _ops.ZEROS) and node.op == "call_function" and all(
        isinstance(n, int) for n in node.meta["val"].shape) and not isinstance(_full_value(node), Node)


def constant_of(node: Node) -> torch.Tensor | None:
    """What torch.tensor(number) made in the function, or what is computed of such alone: a tensor of the CPU without
    dimensions. None: the node is something else."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload): return None
    if _CONSTANT not in node.meta: node.meta[_CONSTANT] = _constant(node)
    return node.meta[_CONSTANT]


_CONSTANT = "kiln_constant"


def _constant(node: Node) -> torch.Tensor | None:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.shape != () or value.device.type != "cpu": return None
    if value.dtype is torch.bool or value.is_complex() or not node.all_input_nodes: return None
    if torch.Tag.nondeterministic_seeded in node.target.tags or node.target._schema.is_mutable: return None
    given: dict[Node, torch.Tensor] = {}
    for n in node.all_input_nodes:
        if name_of(node) == _ops.CONSTANT and n.op == "get_attr":
            found: Any = node.graph.owning_module
            for part in n.target.split("."): found = getattr(found, part, None)
        else:
            found = constant_of(n)
        if not isinstance(found, torch.Tensor): return None
        given[n] = found
    args, kwargs = torch.fx.map_arg((node.args, dict(node.kwargs)), lambda n: given[n])
    with _disable_current_modes(): return node.target(*args, **kwargs)  # PyTorch traces, with tensors without memory


def device_number(device: torch.device) -> int:
    if device.type == "cpu": return -1
    if device.type != "cuda": raise Unsupported(f"tensors on {device.type}")
    return device.index if device.index is not None else torch.cuda.current_device()


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def hint(size: Any) -> int:
    """A size, or the one that a symbolic size had when the graph was made."""
    return size if isinstance(size, int) else int(size.node.hint)


def placeholder(value: torch.Tensor) -> Expr:
    return Expr(_kiln.Expr.placeholder(dtype_name(value.dtype), [hint(n) for n in value.shape],
                                       device_number(value.device)))


def evaluate(node: Node, env: dict[Node, Any]) -> Any:
    """The expression of one operation, of those of its arguments. Raises Unsupported or kiln.Error."""
    if is_getitem(node): return env[node.args[0]][node.args[1]]
    name, value = name_of(node), node.meta["val"]
    if is_full(node):
        device_number(value.device)
        return Full(_full_value(node), dtype_name(value.dtype), value.shape, _device_text(value.device))
    if name in ARANGES: return _evaluate_arange(node, env)
    builder = _ops.TABLE.get(name)
    if builder is None: raise Unsupported("no expression")
    if name == "aten.as_strided.default" and not node.args[0].meta["val"].is_contiguous():
        raise Unsupported("part of a tensor's memory")
    beside = {env[n].dtype for n in _value_operands(node) if isinstance(env.get(n), Expr)}

    def argument(a: Any) -> Any:
        if isinstance(a, Node):
            there = env[a]
            if not isinstance(there, Full): return there
            if name in _ops.POINTWISE and (beside == {there.dtype} or _goes_with(there, beside)): return _number(there)
            return there.expr()
        if isinstance(a, (list, tuple)): return [argument(x) for x in a]
        if isinstance(a, slice): return slice(argument(a.start), argument(a.stop), argument(a.step))
        return a

    made = builder(*[argument(a) for a in node.args], **{k: argument(v) for k, v in node.kwargs.items()})
    if isinstance(value, (list, tuple)):
        missing = {i for i, m in enumerate(made) if m is None and value[i] is not None}
        if any(u.args[1] in missing for u in node.users): raise Unsupported("no expression for one of its results")
        return tuple(None if m is None else _finished(m, v) for m, v in zip(made, value))
    return _finished(made, value)


def _value_operands(node: Node) -> list[Node]:
    args = node.args[1:] if name_of(node).startswith("aten.where") else node.args
    return [a for a in args if isinstance(a, Node)]


def _goes_with(full: Full, beside: set[str]) -> bool:
    """Whether a tensor without dimensions changes nobody's dtype: it is of a kind that comes below theirs."""
    floats = [_ops.is_float_name(d) for d in beside]
    if full.shape != () or not floats: return False
    return all(floats) or not _ops.is_float_name(full.dtype) and "bool" not in beside and not any(floats)


def _number(full: Full) -> Any:
    if full.dtype == "bool": return bool(full.value)
    return float(full.value) if _ops.is_float_name(full.dtype) else int(full.value)


def _full_value(node: Node) -> Any:
    name = name_of(node)
    if (constant := constant_of(node)) is not None:
        with _disable_current_modes(): return constant.item()
    if name in _ops.ZEROS: return _ops.ZEROS[name]
    at = _ops.FULL[name]
    return node.args[at] if len(node.args) > at else node.kwargs.get("fill_value", node.kwargs.get("value"))


def full_arguments(node: Node) -> tuple[tuple, dict]:
    """Of aten.full, where is_full()."""
    value = node.meta["val"]
    return (list(value.shape), _full_value(node)), {"dtype": value.dtype, "device": value.device}


def simplify_fulls(gm: GraphModule) -> None:
    """zeros_like(x) and its like need no x: what was computed for its shape alone goes."""
    for n in gm.graph.nodes:
        if not is_full(n) or constant_of(n) is not None or not n.meta["val"].is_contiguous(): continue
        n.args, n.kwargs = full_arguments(n)
        n.target = torch.ops.aten.full.default
    erase_unread(gm)


def erase_unread(gm: GraphModule) -> None:
    """Takes out what nothing reads, but no writes and no draws of random numbers."""
    for n in reversed(list(gm.graph.nodes)):
        if n.op != "call_function" or n.users: continue
        if is_getitem(n) or isinstance(n.target, torch._ops.OpOverload) and not n.target._schema.is_mutable and (
                torch.Tag.nondeterministic_seeded not in n.target.tags and n.target._schema.returns):
            gm.graph.erase_node(n)


def _device_text(device: torch.device) -> str:
    return "cpu" if device.type == "cpu" else f"cuda:{device_number(device)}"


def _evaluate_arange(node: Node, env: dict[Node, Any]) -> Expr:
    given = [env[a] if isinstance(a, Node) else a for a in node.args]
    value = node.meta["val"]
    if name_of(node) == "aten.linspace.default":
        if any(isinstance(v, Expr) for v in given): raise Unsupported("linspace between tensors")
        return _ops.linspace(*given, dtype_name(value.dtype), _device_text(value.device))
    if name_of(node) == "prims.iota.default":
        n, start, step = given[0], node.kwargs["start"], node.kwargs["step"]
        start, step = (env[a] if isinstance(a, Node) else a for a in (start, step))
    else:
        start, end, step = ([0, *given] if len(given) == 1 else given)[:2] + [given[2] if len(given) > 2 else 1]
        whole = all(isinstance(v, int) for v in (start, end, step))
        n = max(0, -(-(end - start) // step) if whole else math.ceil((end - start) / step))
    return _ops.arange(n, start, step, dtype_name(value.dtype), _device_text(value.device))


def _finished(made: Expr, value: torch.Tensor | None) -> Any:
    """As PyTorch has it: of its dtype, and of its shape where a tensor of one number was taken for the number."""
    if value is None: return None
    out = made.to(value.dtype)
    if all(isinstance(n, int) for n in value.shape) and out.shape != tuple(value.shape):
        out = out.expand(list(value.shape))
    return out


def tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor): return [value]
    if isinstance(value, (list, tuple)): return [t for v in value for t in tensors_of(v)]
    return []


def why_not(node: Node) -> str | None:
    """Why PyTorch computes an operation; None where Kiln can. Asks the very code that makes the expression."""
    if not isinstance(node.target, torch._ops.OpOverload): return "no operation of PyTorch's"
    name = name_of(node)
    if name not in _ops.TABLE and not is_full(node) and name not in ARANGES:
        return "no expression"
    env: dict[Node, Any] = {}
    devices = set()
    try:
        for value in tensors_of(node.meta.get("val")) + [
                t for n in node.all_input_nodes if constant_of(n) is None for t in tensors_of(n.meta.get("val"))]:
            if value.layout != torch.strided: return f"tensors of layout {value.layout}"
            if any(hint(n) == 0 for n in value.shape): return "tensors without elements"
            if value.is_neg(): return "a tensor whose sign is still to be changed"
            devices.add(value.device)
        if len(devices) > 1: return "tensors on two devices"
        for n in node.all_input_nodes:
            value = n.meta.get("val")
            if isinstance(value, torch.Tensor): env[n] = evaluate(n, {}) if is_full(n) else placeholder(value)
            elif isinstance(value, (list, tuple)): env[n] = tuple(placeholder(v) for v in value)
            elif isinstance(value, (int, torch.SymInt)): env[n] = hint(value)
            else: return "a number that is not known before it runs"
        evaluate(node, env)
    except Unsupported as e:
        return str(e)
    except _kiln.Error as e:
        return e.message
    except (TypeError, ValueError, IndexError, AttributeError) as e:
        return str(e)
    return None


def memory_order(value: torch.Tensor) -> tuple[int, ...] | None:
    """The dimensions from the widest stride to the narrowest, where a tensor is dense; None: it has gaps."""
    sizes, strides = [hint(n) for n in value.shape], [hint(n) for n in value.stride()]
    order = sorted(range(len(sizes)), key=lambda d: (-strides[d], -sizes[d], d))
    step = 1
    for d in reversed(order):
        if sizes[d] == 1: continue
        if strides[d] != step: return None
        step *= sizes[d]
    # Dimensions of one element lie anywhere: they stay where they are between those that do not move.
    moving = [d for d in order if sizes[d] != 1]
    if moving == sorted(moving): return tuple(range(len(sizes)))
    return tuple(order)


def _copy(sizes: list[int], strides: list[int], tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone().as_strided(sizes, strides)


class Builder:
    """A piece of a graph: gives kiln._kiln.piece a program for each layout of its arguments.

    inputs: nodes outside of it, of tensors and of sizes. targets: the inputs that outputs are about to be copied to,
    and that nobody else reads. instead: the same, computed by PyTorch.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node],
                 targets: dict[Node, Node], instead: Callable[..., tuple], strict: bool) -> None:
        self.nodes, self.inputs, self.outputs, self.targets = nodes, inputs, outputs, targets
        self.instead, self.strict = instead, strict
        self.orders = [memory_order(n.meta["val"]) for n in outputs]
        self.operations = sum(not is_getitem(n) and not is_full(n) and name_of(n) not in _ops.VIEWS for n in nodes)

    def __call__(self, arguments: tuple) -> Any:
        if any(isinstance(a, torch.Tensor) and a.numel() == 0 for a in arguments): return self.instead
        start = time.perf_counter()
        try:
            recipe, kernels = self._recipe(arguments)
        except (Unsupported, _kiln.Error, TypeError, ValueError) as e:
            reason = getattr(e, "message", None) or str(e)
            if self.strict: raise Unsupported(f"no kernels for {self.operations} operations: {reason}") from e
            _report.add_piece(_report.Piece(self.operations, 0, time.perf_counter() - start, reason))
            return self.instead
        _report.add_piece(_report.Piece(self.operations, kernels, time.perf_counter() - start))
        return recipe

    def _recipe(self, arguments: tuple) -> tuple[Any, int]:
        env: dict[Node, Any] = {}
        leaves = []
        for node, given in zip(self.inputs, arguments):
            if isinstance(given, torch.Tensor):
                leaves.append(_kiln.Expr.leaf(given))
                env[node] = Expr(leaves[-1], (), given)
            else:
                env[node] = given
        for node in self.nodes: env[node] = evaluate(node, env)
        roots = [self._root(env[n], order) for n, order in zip(self.outputs, self.orders)]
        program = _kiln.ExprProgram(leaves, [r._node for r in roots])
        memory = _memory.Torch(torch)
        buffers: list[Any] = [None] * len(program.buffers)
        results = []
        tensors = [i for i, given in enumerate(arguments) if isinstance(given, torch.Tensor)]
        for node, made, order in zip(self.outputs, program.outputs, self.orders):
            buffer, dtype, shape, strides, offset, over = made
            whole = program.buffers[buffer] == math.prod(shape) * getattr(torch, dtype).itemsize
            if offset or not whole or strides != _memory.row_major(shape):
                raise Unsupported("a result that is part of another")
            sizes, steps = list(shape), list(strides)
            for at, d in enumerate(order or range(len(shape))): sizes[d], steps[d] = shape[at], strides[at]
            view = None
            target = self.inputs.index(self.targets[node]) if node in self.targets else -1
            if buffers[buffer] is None and target in [tensors[i] for i in over] and target not in buffers and (
                    arguments[target].data_ptr() % 16 == 0 and arguments[target].shape == tuple(sizes)):
                buffers[buffer] = target  # the copy is then of a tensor to itself
            elif buffers[buffer] is None:
                buffers[buffer] = memory.empty(sizes, steps, dtype, roots[0].device)
            else:  # results that are equal, which the caller may change apart
                view = functools.partial(_copy, sizes, steps)
            results.append((buffer, view))
        workspace = None
        if program.workspace:
            workspace = memory.empty((program.workspace, ), (1, ), "uint8", roots[0].device)
        return (program, buffers, workspace, results), program.kernels

    @staticmethod
    def _root(e: Any, order: tuple[int, ...] | None) -> Expr:
        """In memory of its own, in the order that PyTorch's result has."""
        if isinstance(e, Full): e = e.expr()
        if order is not None and order != tuple(range(e.ndim)): e = e.permute(list(order))
        if e._tensor is None and not e._node.is_view: return e
        return Expr(_kiln.Expr.apply("cast", [e._node], {"dtype": e.dtype}), (e, ))
