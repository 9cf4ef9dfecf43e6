"""An ASTSource's signature, constants and attributes, as arguments of a compilation and of its launches."""
from __future__ import annotations

import re
from typing import Any

from triton import language as tl

from kiln.triton._functions import Functions, Refused, _Unknown

Path = tuple


def arguments(source: Any, functions: Functions) -> tuple[list, list]:
    """For each parameter what the compiler takes of it, and how the launcher passes it on."""
    compiled, launched = [], []
    for i, name in enumerate(source.fn.arg_names):
        if name not in source.signature: raise Refused(f"a signature without the parameter {name}")
        argument, step = _one(source, functions, (i, ), source.signature[name])
        compiled.append(argument)
        launched.append(step)
    return compiled, launched


def _one(source: Any, functions: Functions, path: Path, type_: Any) -> tuple[Any, Any]:
    if isinstance(type_, (tuple, list)):
        pairs = [_one(source, functions, path + (i, ), t) for i, t in enumerate(type_)]
        return ("tuple", [p[0] for p in pairs], getattr(type_, "_fields", None)), [p[1] for p in pairs]
    if type_ == "constexpr":
        try:
            return ("value", functions.value(source.constants[path])), None
        except _Unknown as e:
            raise Refused(str(e)) from None
    if type_.startswith("tensordesc"):
        found = re.fullmatch(r"tensordesc<([^[>]*)\[([^]]*)\]>", type_)
        if not found: raise Refused(f"an argument of type {type_}")
        return ("type", type_), found[2].count(",") + 1
    if type_ == "nvTmaDesc": raise Refused("an argument of type nvTmaDesc")
    return ("type", type_ + _hint(source, path, type_)), type_


def _hint(source: Any, path: Path, type_: str) -> str:
    if type_[0] != "*" and not re.fullmatch(r"[iu](8|16|32|64)", type_): return ""
    attributes = source.attrs.get(path, []) if source.attrs else []
    return ":16" if any(a[0] == "tt.divisibility" and a[1] == 16 for a in attributes) else ""


def is_flat(steps: list) -> bool:
    """Whether Triton's own launchers pass these arguments as Kiln's code takes them."""
    return not any(isinstance(s, int) or (isinstance(s, list) and not is_flat(s)) for s in steps)
