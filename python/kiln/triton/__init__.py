"""Kiln as the compiler under Triton: the same kernels and programs, compiled by Kiln.

    import kiln.triton
    kiln.triton.enable()

or KILN_TRITON=1 in the environment, with no change of the program. Kernels that Kiln does not compile are compiled by
Triton, with one warning for each; report() tells which and why. KILN_TRITON=strict raises instead.
"""
from __future__ import annotations

import os

import triton
import triton.compiler

from kiln.triton import _compile, _driver, _inductor, _report
from kiln.triton._compile import Unsupported
from kiln.triton._report import Report

__all__ = ["Report", "Unsupported", "clear_report", "disable", "enable", "report"]

_PLACES = (triton, triton.compiler, _compile.triton_compiler)


def enable(strict: bool = False) -> None:
    """Replaces triton.compile. Kernels that were launched before keep the compiler that they have.

    strict: what Kiln does not compile raises Unsupported. Processes that this one starts inherit the choice.
    """
    os.environ["KILN_TRITON"] = "strict" if strict else "1"
    for place in _PLACES: place.compile = _compile.compile
    _driver.take()
    _inductor.take()


def disable() -> None:
    """Gives triton.compile back to Triton. What Kiln compiled stays."""
    os.environ.pop("KILN_TRITON", None)
    for place in _PLACES: place.compile = _compile.original
    _driver.give_back()
    _inductor.give_back()


def report() -> Report:
    """What was compiled so far in this process, and what fell back to Triton and why."""
    return _report.snapshot()


def clear_report() -> None:
    """Forgets what report() tells, and which warnings were given."""
    _report.clear()
