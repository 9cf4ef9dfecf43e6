"""Floats as hexadecimal texts, powers that are complex, functions of math, and what numbers refuse."""
import math
import sys


def show(f):
    try:
        print(repr(f()))
    except Exception as e:
        print(type(e).__name__)


show(lambda: [x.hex() for x in (1.5, -0.1, 0.0, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan)])
show(lambda: [float.fromhex(t) for t in ("0x1.8p+0", "-0x1p-3", "inf", " 1.8 ", "0x.8p1", "1p-1074", "nan", "0XFP0")])
show(lambda: float.fromhex("1.5.2"))
show(lambda: float.fromhex(""))
show(lambda: float.fromhex("0x1p2000"))
show(lambda: (-8) ** (1 / 3))
show(lambda: (-8.0) ** 0.5)
show(lambda: (-2) ** 3.0)
show(lambda: pow(-4, 0.5))
show(lambda: (math.nextafter(1.0, 2.0), math.nextafter(0.0, -1.0), math.ulp(1.0), math.ulp(0.0), math.ulp(-math.inf)))
show(lambda: (math.cbrt(-8), math.exp2(10), math.exp2(0.5)))
show(lambda: math.exp2(2000))
show(lambda: (math.remainder(7, 3), math.remainder(-5.0, 3), math.fmod(-7, 3)))
show(lambda: math.remainder(1, 0))
show(lambda: (math.erfc(0.5), math.sinh(1), math.acosh(2), math.atanh(0.5)))
show(lambda: (bool.__mro__, bool.__bases__, issubclass(bool, int)))
show(lambda: sum("ab", ""))
show(lambda: sum([b"a"], b""))
show(lambda: sum([[1], [2]], []))
show(lambda: abs("a"))
show(lambda: abs([]))
show(lambda: (sys.float_info.max, sys.float_info.min, sys.float_info.epsilon))
show(lambda: (sys.float_info.dig, sys.float_info.mant_dig))
show(lambda: (abs(True), +True, -True, ~True, round(True), int.bit_length(True)))
