import sys
import types

x = 5
print("__main__" in sys.modules, sys.modules[__name__].x, "fractions_of_mine" in sys.modules)
import json

print(sys.modules["json"] is json, sys.modules["__main__"].__name__)
import __main__

__main__.y = 6
print(y, getattr(sys.modules[__name__], "x"))
mine = types.ModuleType("fractions_of_mine")
mine.half = 0.5
sys.modules["fractions_of_mine"] = mine
import fractions_of_mine
from fractions_of_mine import half

print(half, fractions_of_mine is mine)


class A:
    def m(self, a, b=1):
        return self, a, b


import inspect

a = A()
print(inspect.signature(a.m), inspect.signature(A.m), a.m.__func__ is A.m, a.m.__self__ is a)


def twice(self, n):
    return type(self).__name__, n * 2


a.twice = types.MethodType(twice, a)
print(a.twice(4), twice.__get__(a, A)(3), twice.__get__(None, A) is twice)
for wrong in ((3, a), (twice, None)):
    try:
        types.MethodType(*wrong)
    except TypeError as e:
        print(e)
