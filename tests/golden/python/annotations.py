"""Module doc."""
from __future__ import annotations
from typing import TYPE_CHECKING, Any, Callable, Tuple, Union, Optional, Sequence, Literal, TypeVar, Generic, Iterable, cast, overload, Protocol
if TYPE_CHECKING:
    import numpy as np
T = TypeVar("T")
Shape = Tuple[int, ...]
Num = Union[int, float]
def f(x: np.ndarray, y: int | None = None, *a: Any) -> list[int]: return [x]
class Stack(Generic[T]):
    def __init__(self): self.i: list[T] = []
    def push(self, x: T) -> None: self.i.append(x)
s = Stack[int](); s.push(1); print(s.i, f(1), cast(int, 3))
print(f.__annotations__)
M: Literal["a","b"] = "a"
print(isinstance(3, int | str), Optional[int] is not None)
