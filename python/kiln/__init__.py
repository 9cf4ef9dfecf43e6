"""Kiln: a compiler for kernels in the Triton language, and the lab around it."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kiln._compile import compile
from kiln._expr import Expr, Plan, expr
from kiln._jit import Kernel, jit
from kiln._kiln import Error, version as __version__

if TYPE_CHECKING:  # what launches kernels alone should not wait for what measures them
    from typing import Callable, Iterable, Mapping

    from kiln._results import Plot, Table
    from kiln import dynamo, triton
    from kiln._session import CommandError, Interrupted, Opaque, Session

__all__ = ["CommandError", "Error", "Expr", "Interrupted", "Kernel", "Opaque", "Plan", "Plot", "Session", "Table",
           "__version__",
           "bench", "compare", "compile", "expr", "jit", "profile", "session", "static", "sweep", "tune", "why"]


def bench(expression: str, **options: Any) -> Table:
    """Measures an expression with cold and hot caches: quartiles, spread, rates.

    expression: its text, as "softmax(x, -1)"; its names are the caller's. options: bytes= and flop= moved and done by
    one run (GB/s, TFLOP/s), budget= seconds for each cache state.
    """
    return _run_command("bench", expression, options)


def compare(expression: str, **options: Any) -> Table:
    """Ways to compute an expression side by side, in turn: fused, unfused, libraries. options: as %compare."""
    return _run_command("compare", expression, options)


def profile(statement: str, **options: Any) -> Table:
    """Where the time of a statement goes, by operation and kernel. options: as %profile."""
    return _run_command("profile", statement, options)


def static(kernel: str, **options: Any) -> Table:
    """What a kernel is on a target, without running it: registers, spills, shared memory, occupancy.

    options: as %static.
    """
    return _run_command("static", kernel, options)


def sweep(expression: str | Callable[..., Any], axes: Mapping[str, Iterable[Any]], executor: Any = None,
          **options: Any) -> list[dict[str, Any]]:
    """Measures an expression for all combinations of values: a dict for each point and contender, the last axis running
    fastest, with `us`, `spread`, `speedup`, `verdict` and `problem`.

    expression: its text, whose names are the caller's and the axes', or a function of the axes. executor: of
    concurrent.futures, or another with submit(): each point is a task of it, and what the expression names is sent to
    its workers. One worker at a time measures on a device. options: as %sweep.
    """
    from kiln import _sweep
    frame = sys._getframe(1)
    return _sweep.sweep(expression, axes, executor, options, {**frame.f_globals, **frame.f_locals})


def tune(launch: str, **options: Any) -> Table:
    """The best launch options of a kernel, found by measuring. options: as %tune."""
    return _run_command("tune", launch, options)


def why(expression: str, **options: Any) -> Any:
    """Why a plan or a kernel is as it is: what the compiler decided, with the line. options: as %why."""
    return _run_command("why", expression, options)


def session() -> Session:
    """The session that these functions and notebooks share; made when it is first asked for."""
    from kiln import _session
    return _session.session()


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext kiln` in IPython and Jupyter: the commands of Kiln's prompt."""
    from kiln import _notebook
    _notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    from kiln import _notebook
    _notebook.unload(shell)


def _run_command(name: str, expression: str, options: dict[str, Any]) -> Any:
    from kiln import _session
    return _session.run_command(name, expression, options, 3)


_LATER = ("CommandError", "Interrupted", "Opaque", "Plot", "Session", "Table")
_PACKAGES = ("dynamo", "triton")  # which import torch, and triton

if not TYPE_CHECKING:  # a checker would believe in any name

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            from kiln import _session
            return getattr(_session, name)
        if name in _PACKAGES:
            import importlib
            try:
                return importlib.import_module(f"kiln.{name}")
            except ModuleNotFoundError as e:
                raise AttributeError(f"kiln.{name} cannot be had: {e}") from e
        raise AttributeError(f"module 'kiln' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, "language", *(n for n in globals() if n.startswith("__"))})
