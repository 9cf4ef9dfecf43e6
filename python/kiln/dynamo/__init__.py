"""Kiln behind torch.compile: a backend of TorchDynamo that computes what it can as expressions.

    torch.compile(model, backend="kiln")        or        @kiln.compile

Forward and backward graphs are made by AOTAutograd, of ATen operations without mutation. Those that have an expression
(_ops) are computed by Kiln, several in a kernel; PyTorch computes the others. report() tells which and why.
"""
from __future__ import annotations

import functools
from typing import Any, Callable

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

from kiln.dynamo import _ops, _puts, _report, _rewrites, _sorts
from kiln.dynamo._build import simplify_fulls
from kiln.dynamo._ops import Unsupported
from kiln.dynamo._partition import Partition, generate
from kiln.dynamo._report import Piece, Report
from kiln.dynamo._writes import write_parts

__all__ = ["Piece", "Report", "Unsupported", "backend", "clear_report", "report"]

_OPTIONS = {"strict"}


def backend(gm: torch.fx.GraphModule, example_inputs: list, *, options: dict | None = None,
            **more: Any) -> Callable[..., Any]:
    """A backend for torch.compile. options: {"strict": True} raises Unsupported for what has no expression."""
    chosen = {**(options or {}), **more}
    if unknown := set(chosen) - _OPTIONS:
        raise ValueError(f"the backend kiln has no option {sorted(unknown)[0]!r}; it has {', '.join(sorted(_OPTIONS))}")
    strict = chosen.get("strict", False)
    if not isinstance(strict, bool): raise TypeError(f"the backend kiln: strict is a bool, got {strict!r}")
    compiler = functools.partial(_compile, strict=strict)
    return aot_autograd(fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler,
                        keep_inference_input_mutations=True, decompositions=_ops.decompositions(),
                        partition_fn=min_cut_rematerialization_partition)(gm, example_inputs)


def report() -> Report:
    """What was compiled so far in this process, and what is left to PyTorch and why."""
    return _report.snapshot()


def clear_report() -> None:
    """Forgets what report() tells, and which warnings were given."""
    _report.clear()


def _compile(gm: torch.fx.GraphModule, example_inputs: list, *, strict: bool) -> Callable[[list], list]:
    simplify_fulls(gm)
    write_parts(gm)
    _rewrites.rewrite(gm)
    _sorts.replace(gm)
    _puts.replace(gm, strict)
    partition = Partition(gm, strict)
    operations, covered, left = partition.counts()
    if strict and (uncovered := sorted({f"{name} ({why})" for name, why in left if why != _report.ALONE})):
        raise Unsupported("no expression for " + ", ".join(uncovered))
    _report.add_graph(operations, covered, left)
    return generate(partition)
