"""The names of Triton's language for kernels under kiln.jit, where triton is not installed.

    import kiln.language as tl

They stand for what the compiler knows: outside of a kernel they cannot be called.
"""
from __future__ import annotations

from typing import Any

from kiln._kiln import FunctionTable


class constexpr:
    """A value that is known when a kernel is compiled: an annotation of parameters, and a mark of globals."""

    __slots__ = ("value", )

    def __init__(self, value: Any) -> None:
        self.value = value.value if isinstance(value, constexpr) else value

    # Equal objects are one specialisation; 1, True and 1.0 are not equal here.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"


class dtype:
    """An element type."""

    __slots__ = ("name", )

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"kiln.language.{self.name}"


class _Name:
    """A function or a module of the language, by its path in triton."""

    __slots__ = ("path", )

    def __init__(self, path: str) -> None:
        self.path = path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Name) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __getattr__(self, name: str) -> "_Name":
        path = f"{self.path}.{name}"
        if name.startswith("__") or not FunctionTable.knows(path): raise AttributeError(f"Kiln has no {path}")
        return _Name(path)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise TypeError(f"{self.path} is for kernels: it cannot be called outside of a function under kiln.jit")

    def __repr__(self) -> str:
        return f"<{self.path}>"


for _name in ("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float8e4nv",
              "float8e5", "float8e4b15", "float16", "bfloat16", "float32", "float64"):
    globals()[_name] = dtype(_name)


def __getattr__(name: str) -> Any:
    path = f"triton.language.{name}"
    if name.startswith("__") or not FunctionTable.knows(path): raise AttributeError(f"Kiln has no {path}")
    return _Name(path)
