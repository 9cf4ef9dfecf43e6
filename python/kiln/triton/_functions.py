"""What the names of Triton's functions mean, as kiln._kiln.FunctionTable takes it.

Triton looks a name up when it meets it: in the function's variables, its closure, its module. Here everything that a
kernel reaches is looked up beforehand, function by function, so that helpers of one name, aliases, closures and modules
need no renaming: each function keeps its own text and gets a table.
"""
from __future__ import annotations

import inspect
import re
import sys
import types
from typing import Any, NamedTuple

import triton
from triton import language as tl
from triton.runtime.jit import JITFunction

from kiln._kiln import FunctionTable
from kiln._text import aggregate_source, is_aggregate

try:
    from triton.runtime.jit import ConstexprFunction, JITCallable
except ImportError:  # before Triton 3.5
    ConstexprFunction, JITCallable = (), JITFunction
# Whether Triton's key of a source tells functions apart that differ in the variables of their closures alone.
is_told_apart = bool(ConstexprFunction)


class Refused(Exception):
    """Kiln cannot be asked for this kernel: Triton compiles it."""


class _Specialization(NamedTuple):
    """What a kernel's `repr` is asked with."""
    constants: dict
    signature: dict


class _Unknown(Exception):
    """A value that means nothing to Kiln: its name stays unbound, and the compiler says so where the name is needed."""


# Of dtypes by Triton's short names; others are known to Triton alone.
_DTYPES = {
    "int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "fp8e4nv", "fp8e5", "fp8e4b15",
    "fp16", "bf16", "fp32", "fp64"
}
_MISSING = object()


def dtype_name(dtype: tl.dtype) -> str:
    if dtype.name not in _DTYPES: raise _Unknown(f"Kiln has no element type {dtype.name}")
    return dtype.name


def is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def makes_namedtuples(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


class Functions:
    """The functions that one kernel reaches."""

    def __init__(self) -> None:
        self.table = FunctionTable()
        self._ids: dict[int, int] = {}
        self._objects: list[Any] = []  # by id of the table; also keeps id() of each unique
        self._modules: dict[str, set[str]] = {}  # members that are bound
        self.told: list[Any] = []  # all that the table was told

    # ---- values ---------------------------------------------------------------------------------------------------
    def value(self, value: Any) -> Any:
        """A Python object as the table takes it; _Unknown when it means nothing to a kernel."""
        if isinstance(value, tl.constexpr): return self.value(value.value)
        if value is None or isinstance(value, (bool, int, float, str)): return self._plain(value)
        if isinstance(value, tl.pointer_type): return ("pointer", dtype_name(value.element_ty))
        if type(value) is tl.dtype: return ("dtype", dtype_name(value))
        if isinstance(value, (tuple, list)):
            return ("tuple", [self.value(v) for v in value], getattr(value, "_fields", None))
        if isinstance(value, tl.tuple):
            return ("tuple", [self.value(v) for v in value.values], getattr(value.type, "fields", None))
        if isinstance(value, types.ModuleType): return self._module(value)
        if isinstance(value, JITCallable): return self._function(value)
        if makes_namedtuples(value): return ("function", self._add_named_tuple(value))
        if is_aggregate(value): return ("function", self._add_aggregate(value))
        # A builtin of the language, or a class of it.
        return self._of_triton(value)

    @staticmethod
    def _plain(value: Any) -> Any:
        """Without subclasses (IntEnum, numpy.float64), whose text is another one."""
        if value is None or isinstance(value, bool): return value
        if isinstance(value, int):
            if not -2**63 <= int(value) < 2**64: raise _Unknown("an integer of more than 64 bits")
            return int(value)
        return float(value) if isinstance(value, float) else str(value)

    def _module(self, module: types.ModuleType) -> Any:
        return ("module", module.__name__)

    @staticmethod
    def _of_triton(value: Any) -> Any:
        module, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", None) or ""
        while module.split(".")[0] == "triton":
            path = f"{module}.{name}"
            if FunctionTable.knows(path): return ("module", path)
            # Packages give names of their modules as their own (triton.language.extra.cuda.globaltimer).
            module = module.rpartition(".")[0]
            if getattr(sys.modules.get(module), name, None) is not value: break
        raise _Unknown(f"{value!r} means nothing to a kernel")

    def _function(self, function: Any) -> Any:
        try:
            return self._of_triton(function)  # Kiln has it
        except _Unknown:
            return ("function", self.add(function))

    def object_of(self, value: Any) -> Any:
        """The other way, for functions that Python evaluates."""
        if not isinstance(value, tuple): return value
        tag, payload = value[:2]
        if tag == "dtype": return getattr(tl, payload)
        if tag == "pointer": return tl.pointer_type(getattr(tl, payload))
        if tag == "function": return self._objects[payload]
        if tag == "tuple":
            items = [self.object_of(v) for v in payload]
            if not value[2]: return tuple(items)
            from collections import namedtuple
            return namedtuple("Tuple", value[2])(*items)
        raise TypeError(f"a constexpr function cannot take {payload}")

    # ---- functions ------------------------------------------------------------------------------------------------
    def add_kernel(self, source: Any) -> int:
        """The kernel of an ASTSource, under the name that its `repr` gives it."""
        function = source.fn
        if getattr(function, "_repr", None) is None: return self.add(function)
        constants = {function.arg_names[path[0]]: v for path, v in source.constants.items() if len(path) == 1}
        name = function.repr(_Specialization(constants, source.signature))
        return self.add(function, re.sub(r"\W|^(?=\d)", "_", name))

    def add(self, function: Any, name: str | None = None) -> int:
        if (found := self._ids.get(id(function))) is not None: return found
        if ConstexprFunction and isinstance(function, ConstexprFunction): return self._add_evaluated(function)
        if type(function) is not JITFunction: raise Refused(f"{type(function).__name__} {function.__name__}")
        text = function.src
        if name is not None: text = re.sub(r"\bdef\s+\w+", f"def {name}", text, count=1)
        for p in function.params:
            if p.is_constexpr and (p.do_not_specialize or getattr(p, "do_not_specialize_on_alignment", False)):
                raise Refused(f"{p.name} is a constexpr and is listed in do_not_specialize")
        line = self._line(function)
        for decorator in _decorators(function):
            if line > 1: text, line = f"{decorator}\n{text}", line - 1
        number = self.table.add(text, function.fn.__code__.co_filename, line)
        self.told.append(text)
        self._register(function, number)
        scope = _Scope(inspect.getclosurevars(function.fn).nonlocals, function.__globals__)
        for path in sorted(self.table.names(number), key=lambda p: p.count(".")):
            self._bind(number, path, scope)
        for name, parameter in function.signature.parameters.items():
            if parameter.default is not inspect.Parameter.empty: self._bind_default(number, name, parameter.default)
        return number

    def _add_named_tuple(self, cls: Any) -> int:
        """The class as a function: kernels make tuples by it."""
        if (found := self._ids.get(id(cls))) is not None: return found
        defaults = cls._field_defaults
        fields = "".join(f"\n    {f}: object" + (" = None" if f in defaults else "") for f in cls._fields) or "\n    pass"
        number = self.table.add(f"class {cls.__name__}(NamedTuple):{fields}\n", cls.__module__, 1)
        self._register(cls, number)
        for name, value in defaults.items():
            self._bind_default(number, name, value)
        return number

    def _add_aggregate(self, cls: Any) -> int:
        """The class as its constructor, with its methods: the compiler runs all of them, on tensors too."""
        if (found := self._ids.get(id(cls))) is not None: return found
        source = aggregate_source(cls)
        number = self.table.add(source.text, source.file, source.line)
        self.told.append(source.text)
        self._register(cls, number)
        scope = _Scope(source.nonlocals, source.variables)
        for path in sorted(self.table.names(number), key=lambda p: p.count(".")):
            self._bind(number, path, scope)
        return number

    def _bind_default(self, number: int, parameter: str, value: Any) -> None:
        try:
            given = self.value(value)
            self.told.append((number, parameter, given))
            self.table.bind_default(number, parameter, given)
        except _Unknown:
            pass

    def _register(self, function: Any, number: int) -> None:
        self._ids[id(function)] = number
        assert number == len(self._objects)
        self._objects.append(function)

    @staticmethod
    def _line(function: Any) -> int:
        """Of the function's `def`; its text begins there."""
        for i, line in enumerate(getattr(function, "raw_src", ())):
            if re.match(r"\s*def\s", line): return function.starting_line_number + i
        return getattr(function, "starting_line_number", 1)

    def _add_evaluated(self, function: Any) -> int:

        def evaluate(args: list, keywords: dict) -> Any:
            result = function(*(self.object_of(a) for a in args),
                              **{k: self.object_of(v)
                                 for k, v in keywords.items()})
            try:
                return self.value(result)
            except _Unknown as e:
                raise TypeError(f"its result: {e}") from None

        # Triton's own key covers the function's text and what it reaches, but not the globals that plain Python reads.
        number = self.table.add_evaluated(function.__name__, function.cache_key, evaluate)
        self._register(function, number)
        return number

    def _bind(self, number: int, path: str, scope: "_Scope") -> None:
        root, *rest = path.split(".")
        try:
            if not rest:
                found = scope.find(root)
                if found is _MISSING: return
                value = self.value(found)
                self.told.append((number, root, value))
                self.table.bind(number, root, value)
                return
            holder = scope.find(root)
            for name in rest[:-1]:
                if not isinstance(holder, types.ModuleType): return
                holder = getattr(_mapped(holder), name, _MISSING)
            if not isinstance(holder, types.ModuleType): return
            self._bind_member(holder, rest[-1])
        except _Unknown:
            pass

    def _bind_member(self, module: types.ModuleType, name: str) -> None:
        bound = self._modules.setdefault(module.__name__, set())
        if name in bound or FunctionTable.knows(f"{module.__name__}.{name}"): return
        bound.add(name)
        found = getattr(_mapped(module), name, _MISSING)
        if found is _MISSING: return
        value = self.value(found)
        self.told.append((module.__name__, name, value))
        self.table.bind_member(module.__name__, name, value)


def _decorators(function: Any) -> list[str]:
    """What decorates a function and means something where it is called; its text begins below."""
    out = []
    if getattr(function, "noinline", False): out.append("@triton.jit(noinline=True)")
    reason = getattr(function, "_must_use_result", False)
    if reason: out.append(f"@triton.must_use_result({reason!r})")
    return out


def _mapped(module: types.ModuleType) -> types.ModuleType:
    """The module whose functions the CUDA backend uses in place of `module`."""
    if module.__name__ == "triton.language.extra.libdevice":
        from triton.language.extra.cuda import libdevice
        return libdevice
    return module


class _Scope:
    """What a name is outside of a function, as far as Triton lets a kernel see it."""

    def __init__(self, nonlocals: dict[str, Any], variables: dict[str, Any]) -> None:
        self._nonlocals, self._globals = nonlocals, variables
        allowed = getattr(getattr(triton, "knobs", None), "compilation", None)
        self._anything = bool(getattr(allowed, "allow_non_constexpr_globals", False))

    def find(self, name: str) -> Any:
        found = self._nonlocals.get(name, _MISSING)
        if found is _MISSING: found = self._globals.get(name, _MISSING)
        if found is _MISSING or self._visible(found): return found
        return _MISSING

    def _visible(self, value: Any) -> bool:
        return (self._anything or isinstance(value, (types.ModuleType, JITCallable, tl.dtype, tl.constexpr))
                or getattr(value, "__triton_builtin__", False) or is_namedtuple(value)
                or makes_namedtuples(value) or is_aggregate(value)
                or (getattr(value, "__module__", "") or "").startswith("triton.language"))
