"""Memory for results: tensors of torch, else arrays of numpy."""
from __future__ import annotations

import sys
from typing import Any, Callable, Sequence

Allocation = tuple[Callable[..., Any], tuple]  # function and arguments


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def of(tensors: Sequence[Any]) -> Any:
    """What allocates beside these tensors: torch where one is torch's or none is numpy's, else numpy."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch and any(isinstance(t, torch.Tensor) for t in tensors): return Torch(torch)
    if numpy and any(isinstance(t, numpy.ndarray) for t in tensors): return Numpy(numpy)
    if torch: return Torch(torch)
    if numpy: return Numpy(numpy)
    raise TypeError("a result needs torch or numpy to be in: import one of them, or give eval() an out=")


class Torch:
    """Tensors of torch's allocator, which belong to its current stream."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        guards = getattr(torch._C._dynamo, "guards", None)
        # What Inductor allocates with: torch.empty_strided without the parsing of its arguments.
        self._fast = {kind: getattr(guards, f"_empty_strided_{kind}", None) for kind in ("cpu", "cuda")}

    def empty(self, shape: Sequence[int], strides: Sequence[int], dtype: str, device: str) -> Allocation:
        torch = self._torch
        kind = device.partition(":")[0]
        element = getattr(torch, dtype)
        fast = self._fast.get(kind)
        # The fast one allocates on the current device, which is another one at times where there are several.
        if fast and (kind == "cpu" or torch.cuda.device_count() == 1):
            return fast, (tuple(shape), tuple(strides), element)
        place = torch.device(device)
        return (lambda *a: torch.empty_strided(*a, dtype=element, device=place)), (tuple(shape), tuple(strides))

    @staticmethod
    def view(buffer: Any, shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
        return buffer.as_strided(shape, strides, offset)

    @staticmethod
    def copy(target: Any, source: Any) -> None:
        target.copy_(source)


class Numpy:
    """Arrays of numpy, on the CPU."""

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy

    def empty(self, shape: Sequence[int], strides: Sequence[int], dtype: str, device: str) -> Allocation:
        if device != "cpu": raise TypeError(f"numpy has no memory on {device}; import torch for the result")
        element = getattr(self._numpy, {"bool": "bool_"}.get(dtype, dtype), None)
        if element is None: raise TypeError(f"numpy has no {dtype}; convert the result, as in e.to('float32')")
        return self._numpy.empty, (tuple(shape), element)

    def view(self, buffer: Any, shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
        size = buffer.itemsize
        return self._numpy.lib.stride_tricks.as_strided(buffer.reshape(-1)[offset:], shape, [s * size for s in strides])

    @staticmethod
    def copy(target: Any, source: Any) -> None:
        target[...] = source
