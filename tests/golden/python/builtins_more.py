import os.path
from collections import ChainMap
print(pow(2, 10, 1000), pow(3, -1, 7), pow(7, -2, 10), pow(-3, -1, 7), pow(3, -1, -7), pow(5, 0, 1), pow(2, -3, 1))
try: pow(2, -1, 4)
except ValueError: print("ValueError")
r = range(10, 0, -3)
print(r.index(4), r.count(7), r.count(8), range(3).index(1.0), range(3).count(True))
for bad in (lambda: r.index(5), lambda: range(3).index("a")):
    try: bad()
    except ValueError: print("ValueError")
c = ChainMap({"a": 1}, {"b": 2, "a": 3})
class M:
    def keys(self): return ["x", "y"]
    def __getitem__(self, k): return k * 2
print(dict(c), {**c, "z": 1}, (lambda **k: k)(**c), dict(M()), {**M()}, (lambda **k: k)(**M()))
e = {}
e.update(M(), q=1)
print(e)
n = float("nan")
print(n in [n], [n] == [n], {"a": n} == {"a": n}, {n: 1}[n], [n].index(n), {n} == {n}, n == n)
print(slice(1, None, 2).indices(10), slice(None).indices(3), slice(5, 1, -1).indices(4),
    slice(None, None, -1).indices(0), slice(-9, 9).indices(3))
s = {1, 2, 3}
s.symmetric_difference_update([3, 4])
print(sorted(s))
for bad in (lambda: float("inf").as_integer_ratio(), lambda: "%x" % 1.5, lambda: "%d" % float("nan"),
        lambda: "%d" % float("inf")):
    try: print(bad())
    except Exception as x: print(type(x).__name__)
print("%d %i" % (3.9, -3.9))
print(os.path.commonprefix(["/usr/lib", "/usr/local"]), os.path.commonprefix([]),
    os.path.commonpath(["/usr/lib", "/usr/local/x"]),
      os.path.commonpath(["a/./b", "a//b/c"]), repr(os.path.commonpath(["a", "b"])), os.path.commonprefix(["é", "è"]))
try: os.path.commonpath(["/a", "b"])
except ValueError: print("ValueError")
print(f"{'ab':05}|{float('inf'):08.3f}|{float('nan'):+06}|{-1.5:08.2f}", "%08.3f|%+06f" % (float("inf"), float("-inf")))
for bad in (lambda: "abc" % 1, lambda: "abc" % "d", lambda: "%d" % (1, 2)):
    try: print(bad())
    except TypeError: print("TypeError")
print("abc" % [1], "abc" % {}, "%(a)s" % {"a": 1, "b": 2})
print(int(" \u0663\u0664 "), float("\u2003١.٥\n"), int("𝟙𝟚", 16), (5).as_integer_ratio(), True.numerator, (2.5).imag,
    (7).denominator, slice(1, 2) == slice(1, 2))
d = {"a": 1}
d |= [("b", 2)]
d |= M()
print(d)
for bad in (lambda: d.__ior__([(1, 2, 3)]), lambda: d.__ior__([1])):
    try: bad()
    except Exception as e: print(type(e).__name__)
print("%.3d|%5.2d|%-6.4dx|%+.2d|%#.4x|%05.2d|%.0d|%.2x|% .3i" % (7, 7, 7, 7, 10, 7, 0, 300, 5), "%.2d" % -3,
    "%.5o" % 8, "%08.3f" % -1.5)
print(f"{65:5c}|{65:<5c}|{float('nan'):%}|{float('-inf'):.1%}", "%5c|%-3c" % (66, 67))
for bad in (lambda: f"{'a':-5}", lambda: f"{-1:c}", lambda: "%c" % 0x110000, lambda: float("1\0"), lambda: float("\0")):
    try: print(bad())
    except Exception as e: print(type(e).__name__)
print(pow(2**63, 2, 7), pow(3, 2**70, 11), pow(-5, 3, 2**63), pow(2**100 + 1, -1, 2**61 - 1), pow(2**63 - 1, 3, -(2**63)))
# Underscores stand between digits, one at a time.
def read(f, text, *base):
    try: return f(text, *base)
    except ValueError: return "no"
print([read(int, t) for t in ("1_0", "1__0", "_1", "1_", "-_1", "0_0", "+1_000", "٣_٤")], [read(int, t, 16) for t in ("0x_f", "0x__f", "f_f", "_0xf", "0x")])
print([read(int, t, 0) for t in ("0x_f", "0b_1", "0_7", "07", "00", "0_0", "1_0", "0o_1_7")])
print([read(float, t) for t in ("_1", "1_", "1_0.0_1", "1__0", "1_.0", "1._0", "1e1_0", "1e_1", "_", "inf_", "in_f", "1_e5", "nan(1)", "-inf")])
print(int("-170141183460469231731687303715884105728"), int("-0x80000000000000000000000000000000", 16), int("170141183460469231731687303715884105727"))
