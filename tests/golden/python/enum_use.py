from enum import Enum, IntEnum, auto, Flag
class Color(Enum):
    RED = 1
    GREEN = auto()
    def desc(self): return self.name.lower()
print(Color.RED, Color.GREEN.value, Color(1), Color["RED"], list(Color), Color.RED.desc(), repr(Color.RED), Color.RED is Color(1), len(Color))
class L(IntEnum):
    A = 1
    B = 2
print(L.A + 1, L.B > L.A, L(2), L.A == 1)
class S(str, Enum):
    X = "x"
print(S.X == "x", S.X.value, isinstance(S.X, str))
print({Color.RED: 1}[Color.RED], Color.RED == Color.RED, Color.RED in Color)
class Held:
    __members__ = {}
class Permission(Flag):
    READ = 1
print(Color, Permission, Enum, Flag, Held)
