"""An ASTSource's signature, constants and attributes, as arguments of a compilation and of its launches."""
from __future__ import annotations

import re
from typing import Any

from triton import language as tl

from kiln.triton._functions import Functions, Refused, _Unknown

Path = tuple


def arguments(source: Any, functions: Functions, padded: frozenset[Path] = frozenset()) -> tuple[list, list]:
    """For each parameter what the compiler takes of it, and how the launcher passes it on. `padded`: which of them are
    tensor descriptors with NaN around their tensors."""
    compiled, launched = [], []
    for i, name in enumerate(source.fn.arg_names):
        if name not in source.signature: raise Refused(f"a signature without the parameter {name}")
        argument, step = _one(source, functions, (i, ), source.signature[name], padded)
        compiled.append(argument)
        launched.append(step)
    return compiled, launched


def _one(source: Any, functions: Functions, path: Path, type_: Any, padded: frozenset[Path]) -> tuple[Any, Any]:
    if isinstance(type_, (tuple, list)):
        pairs = [_one(source, functions, path + (i, ), t, padded) for i, t in enumerate(type_)]
        return ("tuple", [p[0] for p in pairs], getattr(type_, "_fields", None)), [p[1] for p in pairs]
    if type_ == "constexpr":
        try:
            return ("value", functions.value(source.constants[path])), None
        except _Unknown as e:
            raise Refused(str(e)) from None
    if type_.startswith("tensordesc"):
        found = re.fullmatch(r"tensordesc<([^[>]*)\[([^]]*)\]>", type_)
        if not found: raise Refused(f"an argument of type {type_}")
        rank = found[2].count(",") + 1
        return (("type", f"{type_}:nan"), -rank) if path in padded else (("type", type_), rank)
    if type_ == "nvTmaDesc": raise Refused("an argument of type nvTmaDesc")
    return ("type", type_ + _hint(source, path, type_)), type_


def _hint(source: Any, path: Path, type_: str) -> str:
    if type_[0] != "*" and not re.fullmatch(r"[iu](8|16|32|64)", type_): return ""
    attributes = source.attrs.get(path, []) if source.attrs else []
    return ":16" if any(a[0] == "tt.divisibility" and a[1] == 16 for a in attributes) else ""


def padded_of(steps: list, values: Any, path: Path = ()) -> set[Path]:
    """Which of a launch's arguments are tensor descriptors with NaN around their tensors."""
    found = set()
    for i, (step, value) in enumerate(zip(steps, values)):
        if isinstance(step, list): found |= padded_of(step, value, path + (i, ))
        if isinstance(step, int) and getattr(value, "padding", "") == "nan": found.add(path + (i, ))
    return found


def is_flat(steps: list) -> bool:
    """Whether Triton's own launchers pass these arguments as Kiln's code takes them."""
    return not any(isinstance(s, int) or (isinstance(s, list) and not is_flat(s)) for s in steps)
