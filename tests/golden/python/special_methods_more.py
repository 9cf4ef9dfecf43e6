import math, operator
class V:
    def __init__(s, *c): s.c = c
    def __iter__(s): return iter(s.c)
    def __abs__(s): return 9
    def __int__(s): return 4
    def __float__(s): return 4.5
    def __index__(s): return 2
    def __round__(s, n=None): return ("r", n)
    def __trunc__(s): return 3
    def __floor__(s): return 1
    def __ceil__(s): return 2
    def __divmod__(s, o): return "dm"
    def __rdivmod__(s, o): return "rdm"
    def __pow__(s, o, m=None): return ("pow", o, m)
    def __rpow__(s, o): return "rpow"
    def __matmul__(s, o): return "mm"
    def __imatmul__(s, o): return "imm"
    def __reversed__(s): return "rev"
    def __dir__(s): return ["q", "a"]
v = V(1, 2)
print(abs(v), int(v), float(v), round(v), round(v, 2), math.trunc(v), math.floor(v), math.ceil(v), divmod(v, 1),
    divmod(1, v))
print(pow(v, 2), pow(v, 2, 5), 2**v, reversed(v), dir(v), operator.index(v), hex(v), [1, 2, 3][v], "abc"[v], range(v),
    [0] * 2)
class Seq:
    def __len__(s): return 3
    def __getitem__(s, i): return i
print(list(reversed(Seq())), Seq()[1:2], Seq()[..., None])
for bad in ({1}, iter([]), frozenset()):
    try: reversed(bad)
    except TypeError: print("TypeError")
# What the language's own types have, as functions and as methods.
class D(dict):
    def __init__(self, *a, **k): dict.__init__(self, *a, **k)
    def __setitem__(self, k, v): dict.__setitem__(self, k, v * 2)
    def __getitem__(self, k): return dict.__getitem__(self, k) + 1
    def __len__(self): return dict.__len__(self) + 100
d = D(a=1)
d["b"] = 2
print(d["a"], d["b"], len(d), d.get("b"), dict.__contains__(d, "a"))
class L(list):
    def __init__(self, it=()): list.__init__(self, it)
    def append(self, x): list.append(self, x * 10)
    def __getitem__(self, i): return list.__getitem__(self, i)
    def __iter__(self): return list.__iter__(self)
    def __repr__(self): return "L" + list.__repr__(self)
    def __contains__(self, x): return list.__contains__(self, x)
    def __add__(self, o): return L(list.__add__(self, o))
    def __eq__(self, o): return list.__eq__(self, o)
    def __delitem__(self, i): list.__delitem__(self, i)
l = L([1])
l.append(2)
print(l, l[1], list(l), 20 in l, l + [3], l == [1, 20], l != [1])
del l[0]
print(l)
class I(int):
    def __new__(cls, v): return int.__new__(cls, v + 1)
    def __add__(self, o): return I(int.__add__(self, o))
    def __repr__(self): return f"I({int.__repr__(self)})"
print(I(3), I(3) + 4, I(2) * 3, int(I(5)), [10, 20, 30, 40][I(1)])
class S(str):
    def __add__(self, o): return S(str.__add__(self, o).upper())
    def __eq__(self, o): return str.__eq__(self, o)
    def __hash__(self): return str.__hash__(self)
    def __int__(self): return 12
print(S("a") + "b", S("A") == "A", {S("a"): 1}, int(S("x")))
class E(Exception):
    def __init__(self, m, code):
        Exception.__init__(self, m)
        self.code = code
    def __str__(self): return f"{Exception.__str__(self)} ({self.code})"
    def __repr__(self): return "<" + super().__repr__() + ">"
try: raise E("bad", 5)
except E as e: print(e, repr(e), e.code, e.args)
print([].__len__(), "ab".__contains__("a"), (5).__add__(3), {1: 2}.__getitem__(1), (3).__eq__(3),
    [1, 2].__iter__().__next__())
print((5).__add__("a"), (5).__add__(1.5), (1.5).__add__(5), [1].__eq__((1,)), "a".__lt__("b"), {1}.__le__({1, 2}),
    (7).__rsub__(10))
print([hasattr(x, n) for x in ([], {}, "a", 5, range(3), {1}, print, iter([]), None)
       for n in ("__iter__", "__len__", "__getitem__", "__call__", "__next__", "__contains__", "__index__",
               "__float__", "__setitem__")])
print([].__hash__, hasattr(V, "__len__"), hasattr(Seq, "__len__"), D.mro()[1].__name__, D.__base__, int.__base__,
    object.__base__)
try: dict.__setitem__([], 1, 2)
except TypeError: print("TypeError")
try: [].__len__(1)
except TypeError: print("TypeError")
class W:
    def __hash__(s): return 7
    def __eq__(s, o): return True
print(hash(W()), hash(5), hash(-1), hash(True), hash(1.0), hash(0.5), hash(2**61 - 1), hash(2**100), hash(1e300),
    hash(-7.25))
print(hash((1, 2)), hash(()), hash((1, (2, 3), 0.5)), hash(float("inf")), NotImplemented)
class T(tuple):
    def __eq__(s, o): return True
class OnlyFloat:
    def __float__(s): return 1.5
class LL(list):
    def __len__(s): return 0
class II(int):
    def __len__(s): return 3
    def __getitem__(s, i): return [5, 6][i]
class EE(Exception):
    def __repr__(s): return "repr!"
    def __len__(s): return 0
for bad in (lambda: {T(): 1}, lambda: hash(T()), lambda: int(OnlyFloat()), lambda: round(V()) and round(OnlyFloat()),
        lambda: int(V(), 10), lambda: int(L())):
    try: print(bad())
    except TypeError: print("TypeError")
print(bool(LL([1])), bool(II(0)), bool(II(2)), list(II()), float(V(1)), str(EE("a")), repr(EE("a")), bool(EE()),
    [0] * V(), V() * 1 if hasattr(V, "__mul__") else "-")
class LI(list):
    def __iter__(s): return iter((7, 8))
class TI(tuple):
    def __iter__(s): yield from (7, 8)
p, q = TI((1, 2, 3))
print(list(LI([1])), [*LI("ab")], tuple(TI()), list(map(str, LI())), sum(LI([1])), p, q, [x for x in TI((1, ))],
    sorted(LI([0, 0, 0])))
class R:
    def __radd__(s, o): return ("radded", o)
    def __rmul__(s, o): return NotImplemented
    def __iter__(s): return iter((1, 2))
    def __index__(s): return 2
l = [0]
l *= R()
print(l)
l += R()
print(l)
try: reversed(II(5))
except TypeError: print("TypeError")
class FS(frozenset): pass
print(type(tuple(T((1, )))).__name__, type(frozenset(FS([1]))).__name__, type(list(LL())).__name__, type(int(II(3))).__name__)
class Number:
    def __init__(s, n): s.n = n
    def __int__(s): return s.n
    def __index__(s): return s.n + 1
print("%d %i %5d|%x %#X %o %c" % tuple(Number(64) for _ in range(7)))
class OnlyInt:
    def __int__(s): return 7
print("%d" % OnlyInt())
for form in ("%x", "%c"):
    try: print(form % OnlyInt())
    except TypeError: print("TypeError")
print(round(2**63 + 1), round(-2**64 - 3, None), round(2**100 + 1), round(2**70 + 55, -1))

# next() with a default takes the end of a class's own iterator for what it is.
class Ended:
    def __iter__(self): return self
    def __next__(self): raise StopIteration(5)
class Inner:
    def __init__(self): self.items = iter([1])
    def __iter__(self): return self
    def __next__(self): return next(self.items)
inner = Inner()
print(next(Ended(), "default"), next(iter(Ended()), None), next(inner), next(inner, "end"))
try: next(Ended())
except StopIteration as e: print(e.value)
