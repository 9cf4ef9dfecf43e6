"""How values of Python become values of a session: by source, by memory, or as literals."""
from __future__ import annotations

import ast
import dataclasses
import dis
import math
import re
import sys
import types
from typing import Any, Callable, Mapping

from kiln import language as tl
from kiln._text import dedented, keep_lines, lines_of

_WORD = re.compile(
    r"(?P<f>\b[rR]?[fF][rR]?(?=['\"]))?(?P<text>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*)"
    r"|(?P<name>(?<![\w.])[^\W\d]\w*)")
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
    is_absent: bool = False  # a name that means nothing, or a builtin
    is_function: bool = False


def names_in(text: str) -> list[str]:
    """Words of a text that stand behind no point, each once: outside of comments and of strings but for f-strings."""
    found: dict[str, None] = {}
    for m in _WORD.finditer(text):
        if m["name"]: found[m["name"]] = None
        elif m["f"]:
            for part in re.findall(r"\{([^{}]*)", m["text"]): found.update(dict.fromkeys(names_in(part)))
    return list(found)


class Conflict(Unsendable):
    """Two things of one name."""


def plan_of(values: Mapping[str, Any], strict: bool) -> list[Step]:
    """Steps that set these names and what they refer to, in an order in which they can run.

    strict: Unsendable is raised for what cannot be set; else a step says so. A Conflict among `values` is raised
    always.
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
            raise Conflict(f"two things are named '{name}' in what is referred to; a session has one set of names, so "
                           "give one of them another")
        self._seen[name] = value
        try:
            step = self._step(name, value)
        except Conflict:
            raise
        except Exception as e:
            problem = str(e)
            if not isinstance(e, Unsendable):  # of the value's own attributes
                problem = f"a '{type(value).__qualname__}' that raises {type(e).__name__}: {e}"
            if self._strict: raise Unsendable(problem) from None
            step = Step(name, problem=problem)
        self._steps.append(step)

    def _step(self, name: str, value: Any) -> Step:
        if isinstance(value, types.ModuleType): return _import(name, value.__name__)
        if _is_tensor(value):
            if not _is_complex(value): return Step(name, tensor=lambda: _capsule(value))
            self._steps.append(Step("_kiln_parts", tensor=lambda: _capsule(_parts(value))))
            return Step(name, text=f"import torch as _kiln_torch\n{name} = _kiln_torch.view_as_complex(_kiln_parts)\n"
                                   "del _kiln_parts\n")
        if (home := _home_of(value)) is not None:
            return Step(name, key=home, text=f"import {home[0]} as _kiln_home\n{name} = _kiln_home.{home[1]}\n")
        if (function := _function_of(value)) is not None: return self._definition(name, value, function)
        literal = _literal(value)
        # What can be changed in place may have been.
        may_change = isinstance(value, (list, dict, set)) or isinstance(value, tuple) and re.search(r"[\[{]", literal)
        return Step(name, key=None if may_change else literal, text=f"{_imports(literal)}{name} = {literal}\n")

    def _definition(self, name: str, value: Any, function: types.FunctionType) -> Step:
        own_name = function.__code__.co_name
        if not own_name.isidentifier(): raise Unsendable(f"'{own_name}' is no function that a def statement made")
        if name != own_name:
            self._add(own_name, value)
            return Step(name, key=None, text=f"{name} = {own_name}\n")
        text, tree, first = _parsed(function)
        # A function of a class is one without it.
        tree.decorator_list = [d for d in tree.decorator_list if getattr(d, "id", "") != "staticmethod"]
        is_kernel = _is_kernel(value)
        text = _replaced(text, [*_defaults(tree, function), *_configs(tree, value)])
        rows = text.splitlines(keepends=True)
        start = tree.lineno - 1  # of def: decorators stand before it
        decorators = rows[:start] if tree.decorator_list else []
        # kiln.jit is triton.jit there.
        own = is_kernel and type(value).__module__.startswith("kiln")
        if own: decorators = ["@_kiln_triton.jit\n"]
        outer = _names_around(function)
        for found in _referred(function, tree, is_kernel, bool(decorators) and not own):
            if found == name:
                _check_own_name(name, function, outer)
                continue
            if found in outer: self._add(found, outer[found])
            elif found not in self._seen: self._steps.append(Step(found, is_absent=True))
        text = "".join(decorators) + "".join(rows[start:])
        before = _imports(text)
        # Lines keep their numbers, but for one decorator in place of several.
        line = first + start - len(decorators) - before.count("\n")
        whole = before + text
        file = function.__code__.co_filename
        return Step(name, key=(whole, line), text=whole, file=file, line=max(line, 1), is_function=True)


def _check_own_name(name: str, function: types.FunctionType, outer: Mapping[str, Any]) -> None:
    """A function that calls itself by its name means what has that name now."""
    if name not in outer: return
    try:
        if _function_of(outer[name]) is function: return
    except Unsendable:
        pass
    raise Conflict(f"the function '{name}' refers to '{name}', which is another one now; a session has one set of "
                   "names, so give one of them another")


def _imports(text: str) -> str:
    """What a text needs that names modules as literals do, which take no name of the program's."""
    return "".join(f"import {m} as _kiln_{m}\n" for m in ("torch", "triton") if f"_kiln_{m}." in text)


def _names_around(function: types.FunctionType) -> dict[str, Any]:
    """What names mean in a function that are not its own; a variable of a closure may have no value yet."""
    outer = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            outer[name] = cell.cell_contents
        except ValueError:
            outer.pop(name, None)
    return outer


def _defaults(tree: ast.FunctionDef, function: types.FunctionType) -> list[tuple[ast.AST, Any]]:
    """Expressions of defaults with their values, which they were evaluated to as def ran."""
    given = function.__defaults__ or ()
    values = list(zip(tree.args.defaults, given)) if len(given) == len(tree.args.defaults) else []
    return values + [(node, (function.__kwdefaults__ or {}).get(a.arg)) for a, node in
                     zip(tree.args.kwonlyargs, tree.args.kw_defaults) if node is not None]


def _configs(tree: ast.FunctionDef, value: Any) -> list[tuple[ast.AST, Any]]:
    """The expression of an autotuner's configurations with those that it has."""
    for _ in range(_DEEPEST):
        if not _is_kernel(value) or isinstance(getattr(value, "configs", None), list): break
        value = value.fn
    if not isinstance(getattr(value, "configs", None), list): return []
    for call in tree.decorator_list:
        if not isinstance(call, ast.Call) or "autotune" not in ast.unparse(call.func): continue
        nodes = [k.value for k in call.keywords if k.arg == "configs"] or call.args[:1]
        return [(node, value.configs) for node in nodes]
    return []


def _replaced(text: str, values: list[tuple[ast.AST, Any]]) -> str:
    """The text with literals in place of expressions, on as many lines. What has no literal stays as it is."""
    starts = [0]
    data = text.encode()
    for row in data.splitlines(keepends=True): starts.append(starts[-1] + len(row))
    for node, value in sorted(values, key=lambda v: (v[0].lineno, v[0].col_offset), reverse=True):
        try:
            literal = _literal(value)
        except Unsendable:
            continue
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        lines = "\n" * (node.end_lineno - node.lineno)  # inside of brackets
        data = data[:begin] + (literal + lines).encode() + data[end:]
    return data.decode()


def _referred(function: types.FunctionType, tree: ast.FunctionDef, is_kernel: bool,
              with_decorators: bool) -> list[str]:
    """Names that a function takes from around it."""
    outside: list[ast.AST] = [*tree.args.defaults, *(d for d in tree.args.kw_defaults if d is not None)]
    # Annotations of other functions are not evaluated.
    if is_kernel:
        nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.arg, ast.AnnAssign)) and n.annotation is not None]
        outside += [n.annotation for n in nodes]
    if with_decorators: outside += tree.decorator_list
    found = dict.fromkeys(n.id for part in outside for n in ast.walk(part) if isinstance(n, ast.Name))
    found.update(dict.fromkeys(function.__code__.co_freevars))
    todo = [function.__code__]
    while todo:
        code = todo.pop(0)
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        found.update(dict.fromkeys(i.argval for i in dis.get_instructions(code) if i.opname in _OF_GLOBALS))
    return list(found)


_OF_GLOBALS = ("LOAD_GLOBAL", "STORE_GLOBAL", "LOAD_NAME")


def _is_kernel(value: Any) -> bool:
    """One of kiln.jit, or of triton.jit, perhaps under triton.autotune and its like."""
    return hasattr(value, "fn") and type(value).__module__.split(".")[0] in ("kiln", "triton")


def _function_of(value: Any) -> types.FunctionType | None:
    """The function as it was written, with its decorators above it where there are any; torch.compile is none there."""
    for _ in range(_DEEPEST):  # an object may lead back to itself
        if _is_kernel(value):
            if isinstance(value.fn, types.FunctionType): keep_lines(value.fn, value)
            value = value.fn
        elif "_torchdynamo_orig_callable" in getattr(value, "__dict__", {}): value = value._torchdynamo_orig_callable
        else: break
    if not isinstance(value, types.FunctionType): return None
    inner, wrappers = value, 0
    while isinstance(getattr(inner, "__wrapped__", None), types.FunctionType) and wrappers < _DEEPEST:
        inner, wrappers = inner.__wrapped__, wrappers + 1
    # fast = wrapping(slow) has no decorator above slow: the function is the wrapper.
    return inner if wrappers and len(_parsed(inner)[1].decorator_list) >= wrappers else value


def _parsed(function: types.FunctionType) -> tuple[str, ast.FunctionDef, int]:
    """Its text from the decorators on, the tree of that, and the line that it begins on."""
    code = function.__code__
    try:
        lines, first = lines_of(function)
        text = dedented(lines)
        tree = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError, IndexError) as e:
        raise Unsendable(f"the source of function '{code.co_name}' cannot be had ({e})") from None
    if not isinstance(tree, ast.FunctionDef):
        raise Unsendable(f"'{code.co_name}' is no function that a def statement made")
    return text, tree, first


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
    path = {"kiln.language": "triton.language", "posixpath": "os.path"}.get(path, path)
    if path == "kiln" or path.startswith("kiln."):
        raise Unsendable("the package kiln is Python's; a session has its commands as %bench and so on")
    text = f"import {path} as {name}\n" if name != path else f"import {path}\n"
    return Step(name, key=text, text=text)


def _of_numpy(value: Any, name: str) -> bool:
    return any(t.__module__.split(".")[0] == "numpy" and t.__name__ == name for t in type(value).__mro__)


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(type(value), "__dlpack__") and not _of_numpy(value, "generic")


def _is_complex(value: Any) -> bool:
    return "complex" in str(getattr(value, "dtype", ""))


def _parts(value: Any) -> Any:
    """The same memory as real numbers, with a last dimension of two: DLPack's complex tensors are not Kiln's."""
    if _of_numpy(value, "ndarray"):
        import numpy
        real = value.real
        return numpy.lib.stride_tricks.as_strided(real, (*real.shape, 2), (*real.strides, real.itemsize))
    if type(value).__module__.split(".")[0] != "torch" and not hasattr(value, "is_conj"):
        raise Unsendable(f"a complex tensor of '{type(value).__module__}'; torch's and numpy's can be shared")
    if value.is_conj():
        raise Unsendable("a tensor with the conjugate bit, which would be lost: x.resolve_conj() has none")
    import torch
    return torch.view_as_real(value.detach())


def _capsule(value: Any) -> Any:
    if _of_numpy(value, "MaskedArray"): raise Unsendable("a masked array: its mask would be lost")
    try:
        if hasattr(value, "is_neg") and value.is_neg():
            raise Unsendable("a tensor with the negative bit, which would be lost: x.resolve_neg() has none")
        if getattr(value, "requires_grad", False): value = value.detach()
        if getattr(value, "is_cuda", False):
            import torch
            torch.cuda.synchronize(value.device)  # the session has streams of its own
        flags = getattr(value, "flags", None)
        if flags is not None and not getattr(flags, "writeable", True): value = value.copy()  # DLPack has no other way
        return value.__dlpack__()
    except Unsendable:
        raise
    except Exception as e:
        raise Unsendable(f"a tensor that cannot be shared: {e}") from None


def _literal(value: Any, depth: int = 0) -> str:
    """The text of an expression that gives the value."""
    if depth > _DEEPEST: raise Unsendable("a list that holds itself, or is nested too deeply")
    if _of_numpy(value, "generic"): value = value.item()
    kind = type(value)
    if value is None or kind in (bool, int, str): return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float('{value}')"
    module = kind.__module__
    if module == "torch" and kind.__name__ == "dtype": return "_kiln_" + repr(value)
    if module == "torch" and kind.__name__ == "Size": return repr(tuple(value))
    if module == "torch" and kind.__name__ == "device": return f"_kiln_torch.device({str(value)!r})"
    if kind.__name__ == "constexpr" and module.startswith(("kiln.language", "triton.language")):
        return f"_kiln_triton.language.constexpr({_literal(value.value, depth + 1)})"
    if kind.__name__ == "dtype" and module.startswith(("kiln.language", "triton.language")):
        return f"_kiln_triton.language.{_DTYPES.get(value.name, value.name)}"
    if kind is tuple:
        return "(" + "".join(_literal(v, depth + 1) + ", " for v in value) + ")"
    if kind in (bytes, range): return repr(value)
    if kind is complex: return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    if kind is set:
        if not value: return "set()"
        return "{" + ", ".join(_literal(v, depth + 1) for v in value) + "}"
    if kind is list: return "[" + ", ".join(_literal(v, depth + 1) for v in value) + "]"
    if kind is dict:
        return "{" + ", ".join(f"{_literal(k, depth + 1)}: {_literal(v, depth + 1)}" for k, v in value.items()) + "}"
    if kind.__name__ == "Config" and module.startswith("triton.") and getattr(value, "pre_hook", None) is None:
        options = {n: getattr(value, n, None) for n in ("num_warps", "num_stages", "num_ctas", "maxnreg")}
        given = "".join(f", {n}={v!r}" for n, v in options.items() if v is not None)
        return f"_kiln_triton.Config({_literal(value.kwargs, depth + 1)}{given})"
    if depth and (_is_tensor(value) or _function_of(value) is not None or isinstance(value, types.ModuleType)):
        raise Unsendable(f"a list or dict with a '{module}.{kind.__qualname__}' in it; give the element a name")
    raise Unsendable(f"a session takes numbers, texts, lists, dicts, tensors, kernels, functions and modules, not a "
                     f"'{module}.{kind.__qualname__}'")


_DTYPES = {"fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp8e4b15": "float8e4b15", "fp16": "float16",
           "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}


def _same(a: Any, b: Any) -> bool:
    """Two objects that make one literal."""
    try:
        return type(a) is type(b) and _literal(a) == _literal(b)
    except Unsendable:
        return False
