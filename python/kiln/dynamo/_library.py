"""Sorts, selections and elements of a rank by the kernels of scripts' torch, on PyTorch's tensors: the same files
(repl/modules/torch/library, copied to the folder `library` beside this one), with what they import given to them.
"""
from __future__ import annotations

import builtins
import functools
import os
import sys
import types
from typing import Any

import torch

import kiln
import kiln.language as tl

_FOLDER = os.path.join(os.path.dirname(__file__), "library")


@functools.lru_cache(None)
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


class _Lent:
    """What the files take from torch._kiln."""

    @staticmethod
    def processors(x: torch.Tensor, otherwise: int) -> int:
        return _processors(x.device) if x.device.type == "cuda" else otherwise

    @staticmethod
    def zeros(n: int, dtype: torch.dtype, beside: torch.Tensor) -> torch.Tensor:
        return torch.zeros(n, dtype=dtype, device=beside.device)

    @staticmethod
    def lazily(function: Any) -> Any:
        return function


def _next_power_of_2(n: int) -> int:
    return 1 << (n - 1).bit_length() if n > 0 else 0


def _jit(fn: Any = None, **options: Any) -> Any:
    return kiln.jit(fn, **options) if fn is not None else functools.partial(_jit, **options)


_triton = types.SimpleNamespace(jit=_jit, cdiv=lambda a, b: -(-a // b), next_power_of_2=_next_power_of_2, language=tl)


@functools.lru_cache(None)
def load(name: str) -> types.ModuleType:
    """A file of the library as a module: load("_sort")."""
    file = os.path.join(_FOLDER, f"torch.{name}.py")
    made = types.ModuleType(f"kiln.dynamo.library.{name}")
    made.__file__ = file
    made.__dict__["__builtins__"] = {**vars(builtins), "__import__": _imported}
    sys.modules[made.__name__] = made  # inspect finds the source of a kernel by it
    with open(file, encoding="utf-8") as f: exec(compile(f.read(), file, "exec"), made.__dict__)
    return made


def _imported(name: str, scope: Any = None, local: Any = None, names: Any = (), level: int = 0) -> Any:
    names = names or ()
    if name == "triton.language": return tl if names else _triton
    if name == "triton.language.extra": return types.SimpleNamespace(kiln=tl.extra.kiln)
    if name == "triton": return _triton
    if name.startswith("torch._"): return load(name[len("torch."):])
    if name == "torch" and names:
        return types.SimpleNamespace(**{n: _Lent if n == "_kiln" else load(n) for n in names})
    return builtins.__import__(name, scope, local, names, level)
