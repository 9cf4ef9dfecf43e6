"""How values of Python become values of a session: by source, by memory, or as literals."""
from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import re
import sys
import textwrap
import types
from typing import Any, Callable, Iterator, Mapping

from kiln import language as tl

_WORD = re.compile(r"(?P<text>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*)|(?P<name>(?<![\w.])[^\W\d]\w*)")
_DEEPEST = 50  # lists in lists


class Unsendable(TypeError):
    """A value that a session cannot have; str() says why."""


@dataclasses.dataclass
class Step:
    """Sets one name: by running a text, or to a tensor; or tells why it is not set."""
    name: str
    key: Any = None  # as long as it is equal, the name need not be set again; None: it must
    text: str = ""
    file: str = "<python>"
    line: int = 1
    tensor: Callable[[], Any] | None = None  # a capsule of DLPack
    problem: str = ""


def names_in(text: str) -> list[str]:
    """Words of a text outside of strings and comments that stand behind no point, each once."""
    return list(dict.fromkeys(m["name"] for m in _WORD.finditer(text) if m["name"]))


def plan_of(values: Mapping[str, Any], strict: bool) -> list[Step]:
    """Steps that set these names and what they refer to, in an order in which they can run.

    strict: Unsendable is raised for what cannot be set; else a step says so.
    """
    return _Plan(strict).of(values)


class _Plan:

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._steps: list[Step] = []
        self._seen: dict[str, Any] = {}

    def of(self, values: Mapping[str, Any]) -> list[Step]:
        for name, value in values.items(): self._add(name, value)
        return self._steps

    def _add(self, name: str, value: Any) -> None:
        if name in self._seen:
            if self._seen[name] is value or _same(self._seen[name], value): return
            raise Unsendable(f"two things are named '{name}' in what the functions refer to; a session has one set of "
                             "names, so give one of them another")
        self._seen[name] = value
        try:
            self._steps.append(self._step(name, value))
        except Unsendable as e:
            if self._strict: raise
            self._steps.append(Step(name, problem=str(e)))

    def _step(self, name: str, value: Any) -> Step:
        if isinstance(value, types.ModuleType): return _import(name, value.__name__)
        if _is_tensor(value): return Step(name, tensor=lambda: _capsule(value))
        if (home := _home_of(value)) is not None:
            text = f"import {home[0]}\n{name} = {home[0]}.{home[1]}\n"
            return Step(name, key=text, text=text)
        if (function := _function_of(value)) is not None: return self._definition(name, value, function)
        text = f"{name} = {_literal(value)}\n"
        modules = {"torch.": "import torch\n", "triton.": "import triton.language\n"}
        text = "".join(line for prefix, line in modules.items() if prefix in text) + text
        return Step(name, key=text, text=text)

    def _definition(self, name: str, value: Any, function: types.FunctionType) -> Step:
        try:
            lines, first = inspect.getsourcelines(function)
            tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        except (OSError, TypeError, SyntaxError, IndexError) as e:
            raise Unsendable(f"the source of function '{function.__name__}' cannot be had ({e})") from None
        if not isinstance(tree, ast.FunctionDef):
            raise Unsendable(f"'{function.__name__}' is no function that a def statement made")
        if name != function.__name__:
            self._add(function.__name__, value)
            return Step(name, key=("alias", id(function)), text=f"{name} = {function.__name__}\n")
        text = textwrap.dedent("".join(lines)).splitlines(keepends=True)
        start = tree.lineno - 1  # of def: decorators stand before it
        decorators = text[:start]
        if _is_kernel(value) and type(value).__module__.startswith("kiln"): decorators = ["@triton.jit\n"]
        outer = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        for found in _referred(tree, bool(decorators) and decorators != ["@triton.jit\n"]):
            if found != name and found in outer: self._add(found, outer[found])
        before = "import triton\n" if _is_kernel(value) else ""
        body = "".join(text[start:])
        # Lines keep their numbers, but for one kernel's decorator in place of several.
        line = first + start - len(decorators) - before.count("\n")
        whole = before + "".join(decorators) + body
        return Step(name, key=(whole, line), text=whole, file=function.__code__.co_filename, line=max(line, 1))


def _referred(tree: ast.FunctionDef, with_decorators: bool) -> Iterator[str]:
    """Names that a function's text takes from around it, as far as its text tells."""
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    outside: list[ast.AST] = [*tree.args.defaults, *(d for d in tree.args.kw_defaults if d is not None)]
    outside += [a.annotation for a in ast.walk(tree) if isinstance(a, ast.arg) and a.annotation is not None]
    if with_decorators: outside += tree.decorator_list
    found = dict.fromkeys(n.id for part in outside for n in ast.walk(part) if isinstance(n, ast.Name))
    inside = (n.id for part in tree.body for n in ast.walk(part) if isinstance(n, ast.Name))
    found.update(dict.fromkeys(n for n in inside if n not in own))
    return iter(found)


def _is_kernel(value: Any) -> bool:
    """One of kiln.jit, or of triton.jit, perhaps under triton.autotune and its like."""
    return hasattr(value, "fn") and type(value).__module__.split(".")[0] in ("kiln", "triton")


def _function_of(value: Any) -> types.FunctionType | None:
    while _is_kernel(value): value = value.fn
    return value if isinstance(value, types.FunctionType) else None


def _home_of(value: Any) -> tuple[str, str] | None:
    """The module and the name under which Kiln has it too."""
    if isinstance(value, tl._Name): return tuple(value.path.rpartition(".")[::2])
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or not callable(value) or _is_kernel(value): return None
    for path in ("torch", "torch.nn.functional", "triton", "triton.language", "math"):
        module = sys.modules.get(path)
        if module is not None and getattr(module, name, None) is value: return path, name
    return None


def _import(name: str, path: str) -> Step:
    if path == "kiln.language": path = "triton.language"
    if path == "kiln" or path.startswith("kiln."):
        return Step(name, problem="the package kiln is Python's; a session has its commands as %bench and so on")
    text = f"import {path} as {name}\n" if name != path else f"import {path}\n"
    return Step(name, key=text, text=text)


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "__dlpack__") and getattr(value, "shape", None) is not None \
        and not _is_numpy_scalar(value)


def _is_numpy_scalar(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "item") and type(value).__name__ != "ndarray"


def _capsule(value: Any) -> Any:
    if getattr(value, "requires_grad", False): value = value.detach()
    if getattr(value, "is_cuda", False):
        import torch
        torch.cuda.synchronize(value.device)  # the session has streams of its own
    flags = getattr(value, "flags", None)
    if flags is not None and not getattr(flags, "writeable", True): value = value.copy()  # DLPack has no other way
    try:
        return value.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise Unsendable(f"a tensor that cannot be shared: {e}") from None


def _literal(value: Any, depth: int = 0) -> str:
    """The text of an expression that gives the value."""
    if depth > _DEEPEST: raise Unsendable("a list that holds itself, or is nested too deeply")
    if _is_numpy_scalar(value): value = value.item()
    kind = type(value)
    if value is None or kind in (bool, int, str): return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float('{value}')"
    module = kind.__module__
    if module == "torch" and kind.__name__ == "dtype": return repr(value)
    if module == "torch" and kind.__name__ == "Size": return repr(tuple(value))
    if module == "torch" and kind.__name__ == "device": return f"torch.device({str(value)!r})"
    if kind.__name__ == "constexpr" and module.startswith(("kiln.language", "triton.language")):
        return f"triton.language.constexpr({_literal(value.value, depth + 1)})"
    if kind.__name__ == "dtype" and module.startswith(("kiln.language", "triton.language")):
        return f"triton.language.{_DTYPES.get(value.name, value.name)}"
    if kind is tuple:
        return "(" + "".join(_literal(v, depth + 1) + ", " for v in value) + ")"
    if kind is list: return "[" + ", ".join(_literal(v, depth + 1) for v in value) + "]"
    if kind is dict:
        return "{" + ", ".join(f"{_literal(k, depth + 1)}: {_literal(v, depth + 1)}" for k, v in value.items()) + "}"
    raise Unsendable(f"a session takes numbers, texts, lists, dicts, tensors, kernels, functions and modules, not a "
                     f"'{module}.{kind.__qualname__}'")


_DTYPES = {"fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32",
           "fp64": "float64"}


def _same(a: Any, b: Any) -> bool:
    """Two objects that make one literal."""
    try:
        return type(a) is type(b) and _literal(a) == _literal(b)
    except Unsendable:
        return False
