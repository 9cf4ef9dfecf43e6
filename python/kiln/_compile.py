"""kiln.compile: torch.compile with Kiln's kernels."""
from __future__ import annotations

from typing import Any, Callable


def compile(fn: Callable | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            strict: bool = False) -> Any:
    """A function or module whose operations on tensors share kernels of Kiln's, beside torch.compile.

    What Kiln has no expression for is left to PyTorch: kiln.dynamo.report() tells what and why. Gradients,
    modules, guards and recompilations are TorchDynamo's and AOTAutograd's, as of torch.compile.

    fullgraph: a break of the graph is an error. dynamic: True takes sizes as unknown from the first call on; kernels
    are made for each size all the same. strict: an operation without an expression raises kiln.dynamo.Unsupported.
    """
    if fn is None: return lambda f: compile(f, fullgraph=fullgraph, dynamic=dynamic, strict=strict)
    if not callable(fn): raise TypeError(f"kiln.compile takes a function or a module, got {fn!r}")
    for name, value in (("fullgraph", fullgraph), ("dynamic", dynamic), ("strict", strict)):
        if not isinstance(value, bool) and not (name == "dynamic" and value is None):
            raise TypeError(f"kiln.compile: {name} is a bool, got {value!r}")
    import torch
    from kiln import dynamo
    return torch.compile(fn, backend=dynamo.backend, fullgraph=fullgraph, dynamic=dynamic,
                         options={"strict": True} if strict else None)
