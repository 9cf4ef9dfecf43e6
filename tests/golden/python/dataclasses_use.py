from dataclasses import dataclass, field, asdict, replace, fields
from typing import Optional, List, Dict, ClassVar
@dataclass
class Config:
    M: int
    N: int = 4
    names: List[str] = field(default_factory=list)
    opt: Optional[int] = None
    K: ClassVar[int] = 3
    def __post_init__(self):
        self.total = self.M * self.N
    @property
    def area(self): return self.M * self.N
c = Config(2)
print(c, c.total, c.area, c == Config(2), asdict(c), replace(c, M=5), [f.name for f in fields(c)])
@dataclass(frozen=True, order=True)
class P:
    x: int
    y: int = 0
print(P(1) < P(2), hash(P(1)) == hash(P(1)), {P(1): 2}[P(1)])
try:
    P(1).x = 3
except Exception as e: print(type(e).__name__, e)
# A pattern takes by place what __init__ takes by place.
import dataclasses
@dataclasses.dataclass
class Placed:
    a: int
    b: int = dataclasses.field(kw_only=True)
    _: dataclasses.KW_ONLY
    c: int = 1
@dataclasses.dataclass(kw_only=True)
class Below(Placed):
    e: int
@dataclasses.dataclass(match_args=False)
class Without:
    a: int
@dataclasses.dataclass
class Own:
    __match_args__ = ("z",)
    a: int
print(Placed.__match_args__, Below.__match_args__, hasattr(Without, "__match_args__"), Own.__match_args__)
