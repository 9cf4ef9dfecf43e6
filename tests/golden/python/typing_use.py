import typing as t
from typing import *
import collections.abc
from collections.abc import Callable as C2, Iterable
X = t.Optional[t.Dict[str, t.List[int]]]
def f(cb: Callable[[int], str]) -> "X": pass
class TD(TypedDict):
    a: int
td: TD = {"a": 1}; print(td, TD(a=2))
Alias = list[tuple[int, str]]
print(get_origin is not None, NewType("U", int)(3))
print(isinstance([1], Iterable), isinstance(3, Iterable), isinstance(print, C2))
