"""kiln.jit: kernels in Triton's language, launched without triton."""
from __future__ import annotations

import collections
import hashlib
import inspect
import operator
import os
import re
import sys
import time
import types
from typing import Any, Callable, Sequence

from kiln import _kiln
from kiln import language as tl
from kiln._text import aggregate_source, dedented, is_aggregate, keep_lines, lines_of

_MISSING = object()


class _Unknown(Exception):
    """A value that means nothing to a kernel."""


class Kernel(_kiln.Dispatcher):
    """A function under kiln.jit: `kernel[grid](*arguments, **options)` compiles it where needed and launches it.

    grid: an int, a tuple of 1 to 3 ints, or a function of the arguments by name that gives one of these.
    Arguments: tensors of torch, numpy arrays, objects with `__dlpack__` or `__cuda_array_interface__`, numbers, bools,
    None, tuples of these; anything for `tl.constexpr` parameters. Options: num_warps, num_stages, num_ctas, maxnreg,
    launch_pdl, enable_fp_fusion, debug, sanitize_overflow; check=True waits for the end and raises kiln.Error for an
    access outside of a tensor. Tensors on the CPU run on the CPU, those on a GPU on torch's current stream.
    """

    def __new__(cls, fn: Callable, do_not_specialize: Sequence[Any] = ()) -> "Kernel":
        parameters = list(inspect.signature(fn).parameters.values())
        for p in parameters:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise TypeError(f"kernel '{fn.__name__}': kiln.jit takes no parameter *{p.name}")
        _check_positions(fn.__name__, [p.name for p in parameters], do_not_specialize)
        rows = [(p.name, _is_constexpr(p.annotation), p.name not in do_not_specialize and i not in do_not_specialize,
                 _annotated(p.annotation), () if p.default is p.empty else (_plain(p.default), ))
                for i, p in enumerate(parameters)]
        compile: list = []
        keep_lines(fn)
        self = super().__new__(cls, fn.__name__, rows, lambda *args: compile[0](*args))
        self.fn, self.__name__, self.__doc__, self.__module__ = fn, fn.__name__, fn.__doc__, fn.__module__
        self.__wrapped__, self.__qualname__ = fn, fn.__qualname__
        self._checks: _Names | None = None
        compile.append(self._compile)
        return self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise TypeError(f"kernel '{self.__name__}' is launched with a grid: {self.__name__}[grid](...)")

    def __repr__(self) -> str:
        return f"<kiln.Kernel {self.__module__}.{self.__name__}>"

    def __reduce__(self) -> str:
        return self.__qualname__  # by its name, as functions; a copy is the kernel itself

    def _compile(self, descriptions: list, options: dict, target: str, device: str) -> Any:
        names = _Names()
        number = names.add(self)
        arguments = []
        for parameter, description in zip(inspect.signature(self.fn).parameters, descriptions):
            try:
                arguments.append(names.argument(description))
            except _Unknown as e:
                raise TypeError(f"kernel '{self.__name__}': argument '{parameter}': {e}") from None
        image = names.table.compile(number, arguments, target, options, device)
        self.saw(names.seen)
        return image

    def _launch_checked(self, arguments: list, grid: tuple[int, int, int], options: dict, device: int) -> None:
        names = self._checks
        if names is None or names.have_changed(): names = _Names()
        number = names.add(self)
        told = self._told(names, arguments)
        if names.checked is not None and len(names) != names.checked[1]:  # a function among the constants is new to it
            names = _Names()
            number = names.add(self)
            told = self._told(names, arguments)
        if names.checked is None: names.checked = names.table.checked(number), len(names)
        self._checks = names
        names.checked[0].launch(told, grid, options, device)

    def _told(self, names: _Names, arguments: list) -> list:
        told = []
        for parameter, argument in zip(inspect.signature(self.fn).parameters, arguments):
            try:
                told.append(_checked_argument(names, argument))
            except _Unknown as e:
                raise TypeError(f"kernel '{self.__name__}': argument '{parameter}': {e}") from None
        return told


def _check_positions(kernel: str, parameters: list[str], chosen: Any) -> None:
    if isinstance(chosen, (str, int)):
        raise TypeError(f"kernel '{kernel}': do_not_specialize is a list of names or positions, got {chosen!r}")
    for one in chosen:
        if one not in parameters and one not in range(len(parameters)):
            raise ValueError(f"kernel '{kernel}': do_not_specialize names no parameter by {one!r}; the parameters are "
                             f"{', '.join(parameters)}")


def _checked_argument(names: _Names, argument: tuple) -> tuple:
    if argument[0] == "tuple": return ("tuple", [_checked_argument(names, a) for a in argument[1]], argument[2])
    if argument[0] == "tensor":
        _, tensor, dtype, address = argument
        return ("tensor", dtype, address, *_extent(tensor, address))
    value = argument[1]
    try:
        return ("value", names.value(value))
    except _Unknown:
        if hasattr(value, "__index__"): return ("value", operator.index(value))
        if hasattr(value, "__float__"): return ("value", float(value))
        raise


def _extent(tensor: Any, address: int) -> tuple[int, int]:
    """The memory that a kernel may use of a tensor: for a view, that of the tensor that it is of."""
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    all = tensor
    while hasattr(getattr(all, "base", None), "__array_interface__"): all = all.base
    for one in (all, tensor):
        try:
            begin, end = _kiln.extent(one)
        except (TypeError, ValueError):  # of elements that kernels do not have, as a view of bytes may be
            continue
        if begin <= address <= end: return begin, end
    return address, address


def jit(fn: Callable | None = None, *, do_not_specialize: Sequence[Any] = ()) -> Any:
    """A kernel, or a function that kernels call, of a function in Triton's language. See Kernel.

    do_not_specialize: names or positions of parameters of which the code assumes nothing.
    """
    if fn is None: return lambda f: Kernel(f, do_not_specialize)
    if not isinstance(fn, types.FunctionType): raise TypeError(f"kiln.jit takes a function, got {fn!r}")
    return Kernel(fn, do_not_specialize)


def _plain(value: Any) -> Any:
    return value.value if _is_triton(value, "constexpr") or isinstance(value, tl.constexpr) else value


def _is_triton(value: Any, name: str) -> bool:
    return type(value).__name__ == name and type(value).__module__.startswith("triton.language")


def _is_constant_function(value: Any) -> bool:
    """A function of Python under `@tl.constexpr`, Triton's."""
    return _is_triton(value, "constexpr") and isinstance(value.value, types.FunctionType)


def _identity(function: types.FunctionType) -> str:
    """Of what a function computes: the texts of it and of those that it calls, with the constants that they read. One
    that reads anything else is itself alone, and its kernels are compiled anew in each process."""
    told: dict[types.FunctionType, str] = {}
    constants: list[str] = []

    def tell(f: types.FunctionType) -> bool:
        if f in told: return True
        told[f] = inspect.getsource(f)
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))
        values = {n: _meaning(cells.get(n, f.__globals__), n) for n in sorted({*_global_names(f.__code__), *cells})}
        constants.append(repr(f.__defaults__))
        for name, value in values.items():
            if isinstance(value, types.FunctionType):
                if not tell(value): return False
            elif value is not _MISSING and not isinstance(value, (types.ModuleType, type)):
                if not isinstance(value := _plain(value), (int, float, str, type(None))): return False
                constants.append(f"{name} {value!r}")
        return True

    try:
        if tell(function): return hashlib.sha256("\n".join([*told.values(), *constants]).encode()).hexdigest()
    except OSError:  # no source
        pass
    return f"{os.getpid()} {time.monotonic_ns()}"


def _global_names(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_global_names, inner))


def _is_constexpr(annotation: Any) -> bool:
    if isinstance(annotation, str): return bool(re.fullmatch(r"(\w+\.)*constexpr", annotation.strip()))
    return getattr(annotation, "__name__", "") == "constexpr"


def _annotated(annotation: Any) -> str | None:
    if isinstance(annotation, tl.dtype) or _is_triton(annotation, "dtype"): return annotation.name
    if isinstance(annotation, str): return annotation.split(".")[-1].strip()  # what is no dtype fixes nothing
    return None


class _Names:
    """What the names of one kernel and of the functions that it reaches mean, as FunctionTable takes it."""

    def __init__(self) -> None:
        self.table = _kiln.FunctionTable()
        self._ids: dict[int, int] = {}
        self._kept: list[Any] = []  # keeps id() of each unique
        self._members: set[tuple[str, str]] = set()
        self.checked: tuple[Any, int] | None = None  # a kernel of the table, and how many functions it had then
        # Names of modules, or the cells of closures, and what they mean now, but for modules.
        self.seen: list[tuple[dict | types.CellType, str, Any]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def have_changed(self) -> bool:
        return any(_meaning(names, name) is not value for names, name, value in self.seen)

    def argument(self, description: tuple) -> tuple:
        kind, value = description[:2]
        if kind == "constexpr": return ("value", self.value(value))
        if kind == "tuple": return ("tuple", [self.argument(d) for d in value], description[2])
        return description

    def value(self, value: Any) -> Any:
        if _is_constant_function(value): return ("function", self._add_evaluated(value.value))
        value = _plain(value)
        if isinstance(value, tl._Name): return ("module", value.path)
        if isinstance(value, tl.dtype) or _is_triton(value, "dtype"): return ("dtype", value.name)
        if value is None or isinstance(value, bool): return value
        if isinstance(value, int):
            if not -2**63 <= int(value) < 2**64: raise _Unknown("an integer of more than 64 bits")
            return int(value)
        if any(t.__module__ == "numpy" and t.__name__ == "generic" for t in type(value).__mro__):
            return self.value(value.item())
        if isinstance(value, (float, str)): return type(value).__mro__[-2](value)
        if isinstance(value, (tuple, list)):
            return ("tuple", [self.value(v) for v in value], getattr(value, "_fields", None))
        if isinstance(value, types.ModuleType): return ("module", _module_path(value))
        path = f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"
        if path.startswith("triton.") and _kiln.FunctionTable.knows(path): return ("module", path)
        if _is_function(value): return ("function", self.add(value))
        if _is_evaluated(value): return ("function", self._add_evaluated(value))
        if _makes_namedtuples(value): return ("function", self._add_named_tuple(value))
        if is_aggregate(value): return ("function", self._add_aggregate(value))
        if held := _held_by(value): return ("tuple", [self.value(v) for v in held.values()], tuple(held))
        raise _Unknown(f"{value!r} means nothing to a kernel")

    def add(self, function: Any) -> int:
        if (found := self._ids.get(id(function))) is not None: return found
        fn = function.fn
        if not isinstance(function, Kernel): keep_lines(fn, function)
        try:
            lines, line = lines_of(inspect.unwrap(fn))
        except OSError:
            raise OSError(f"kernel '{fn.__name__}' has no source text: Python keeps none of what exec() and, before 3.13, "
                          "its own prompt define; write it in a file or a notebook") from None
        text = dedented(lines)
        start = re.search(r"^(async\s+)?def\s", text, re.MULTILINE)
        if not start: raise TypeError(f"kernel '{fn.__name__}' is no function with a source text")
        number = self.table.add(text[start.start():], fn.__code__.co_filename, line + text[:start.start()].count("\n"))
        self._ids[id(function)] = number
        self._kept.append(function)
        self._bind_names(number, dict(zip(fn.__code__.co_freevars, fn.__closure__ or ())), fn.__globals__)
        for name, parameter in inspect.signature(fn).parameters.items():
            if parameter.default is parameter.empty: continue
            try:
                self.table.bind_default(number, name, self.value(parameter.default))
            except _Unknown:
                pass
        return number

    def _bind_names(self, number: int, nonlocals: dict, variables: dict) -> None:
        for path in sorted(self.table.names(number), key=lambda p: p.count(".")):
            root, *rest = path.split(".")
            names = nonlocals.get(root, variables)
            found = _meaning(names, root)
            if found is not _MISSING and not _is_visible(found):
                self.table.hide(number, root, type(found).__name__, root in nonlocals)
            try:
                self._bind(number, root, rest, found, names)
            except _Unknown:
                pass  # the compiler says so where the name is needed

    def _add_aggregate(self, cls: Any) -> int:
        """The class as its constructor, with its methods: the compiler runs all of them, on tensors too."""
        if (found := self._ids.get(id(cls))) is not None: return found
        source = aggregate_source(cls)
        number = self.table.add(source.text, source.file, source.line)
        self._ids[id(cls)] = number
        self._kept.append(cls)
        cells = {name: types.CellType(value) for name, value in source.nonlocals.items()}
        self._bind_names(number, cells, source.variables)
        return number

    def _add_named_tuple(self, cls: Any) -> int:
        """The class as a function: kernels make tuples by it."""
        if (found := self._ids.get(id(cls))) is not None: return found
        defaults = cls._field_defaults
        fields = "".join(f"\n    {f}: object" + (" = None" if f in defaults else "") for f in cls._fields) or "\n    pass"
        number = self.table.add(f"class {cls.__name__}(NamedTuple):{fields}\n", cls.__module__, 1)
        self._ids[id(cls)] = number
        self._kept.append(cls)
        for name, value in defaults.items():
            try:
                self.table.bind_default(number, name, self.value(value))
            except _Unknown:
                pass
        return number

    def _add_evaluated(self, function: Any) -> int:
        """A function under triton.constexpr_function or tl.constexpr: Python computes it as the kernel is compiled."""
        if (found := self._ids.get(id(function))) is not None: return found

        def evaluate(args: list, keywords: dict) -> Any:
            result = function(*(self._object_of(a) for a in args),
                              **{k: self._object_of(v)
                                 for k, v in keywords.items()})
            try:
                return self.value(result)
            except _Unknown as e:
                raise TypeError(f"its result: {e}") from None

        identity = function.cache_key if hasattr(function, "cache_key") else _identity(function)
        number = self.table.add_evaluated(function.__name__, identity, evaluate)
        self._ids[id(function)] = number
        self._kept.append(function)
        return number

    def _object_of(self, value: Any) -> Any:
        """The other way, for functions that Python computes; dtypes are Triton's, as these functions are."""
        if not isinstance(value, tuple): return value
        tag, payload = value[:2]
        language = sys.modules["triton.language"]
        if tag == "dtype": return getattr(language, payload)
        if tag == "pointer": return language.pointer_type(getattr(language, payload))
        if tag == "function": return self._kept[payload]
        if tag != "tuple": raise TypeError(f"a constexpr function cannot take {payload}")
        items = [self._object_of(v) for v in payload]
        return collections.namedtuple("Tuple", value[2])(*items) if value[2] else tuple(items)

    def _bind(self, number: int, root: str, rest: list, found: Any, names: dict | types.CellType) -> None:
        if found is _MISSING or not _is_visible(found): return
        if not rest:
            self.table.bind(number, root, self.value(found))
            if not isinstance(found, types.ModuleType): self.seen.append((names, root, found))
            return
        if not isinstance(found, types.ModuleType): return
        for i, name in enumerate(rest):
            if not isinstance(inner := getattr(found, name, None), types.ModuleType): break
            if i + 1 < len(rest): found = inner
        module = _module_path(found)
        if (module, name) in self._members or _kiln.FunctionTable.knows(f"{module}.{name}"): return
        self._members.add((module, name))
        member = getattr(found, name, _MISSING)
        if member is _MISSING: return
        self.table.bind_member(module, name, self.value(member))
        self.seen.append((vars(found), name, member))


def _meaning(names: dict | types.CellType, name: str) -> Any:
    if isinstance(names, dict): return names.get(name, _MISSING)
    try:
        return names.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


def _module_path(module: types.ModuleType) -> str:
    return "triton.language" if module is tl else module.__name__


def _is_function(value: Any) -> bool:
    """One of kiln.jit, or of triton.jit."""
    return isinstance(value, Kernel) or (type(value).__name__ == "JITFunction" and hasattr(value, "fn"))


def _is_evaluated(value: Any) -> bool:
    """One of triton.constexpr_function."""
    return type(value).__name__ == "ConstexprFunction" and type(value).__module__.startswith("triton.")


def _makes_namedtuples(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def _held_by(value: Any) -> dict[str, Any]:
    """The functions of kiln.jit or triton.jit that a class holds, by their names; {} for what is no class."""
    if not isinstance(value, type): return {}
    members = {name: getattr(value, name, None) for name in vars(value)}
    return {name: member for name, member in members.items() if _is_function(member)}


def _is_visible(value: Any) -> bool:
    """As Triton has it: other globals may change behind the compiled code's back."""
    return (isinstance(value, (types.ModuleType, tl.constexpr, tl.dtype, tl._Name)) or _is_function(value)
            or bool(_held_by(value)) or is_aggregate(value) or _is_evaluated(value) or _makes_namedtuples(value)
            or (isinstance(value, tuple) and hasattr(value, "_fields"))
            or (getattr(value, "__module__", None) or type(value).__module__).startswith("triton")
            or type(value).__module__.startswith("triton.language"))
