class Base:
    registry = {}
    def __init_subclass__(cls, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.tag = tag or cls.__name__
        Base.registry[cls.tag] = cls
class A(Base, tag="a"):
    def hi(self): return ["A"]
class B(Base):
    def hi(self): return ["B"]
class C(A, B):
    def hi(self): return ["C"] + super().hi() + B.hi(self)
print(sorted(Base.registry), C().hi(), [k.__name__ for k in C.__mro__], C.tag)
class X:
    def f(self): return ["X"]
class Y(X):
    def f(self): return ["Y"] + super().f()
class Z(X):
    def f(self): return ["Z"] + super().f()
class W(Y, Z):
    def f(self): return ["W"] + super(W, self).f()
print(W().f())
class Singleton:
    _it = None
    def __new__(cls, *args):
        if cls._it is None:
            cls._it = super().__new__(cls)
        return cls._it
    def __init__(self, n): self.n = n
print(Singleton(1) is Singleton(2), Singleton(3).n)
class Typed:
    def __init__(self, kind): self.kind = kind
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, obj, owner): return self if obj is None else getattr(obj, self.name, None)
    def __set__(self, obj, value):
        if not isinstance(value, self.kind): raise TypeError(f"{self.name} wants {self.kind.__name__}")
        setattr(obj, self.name, value)
class P:
    n = Typed(int)
    def __init__(self, n): self.n = n
p = P(3); print(p.n, isinstance(P.n, Typed), p.__dict__)
try: p.n = "x"
except TypeError as e: print(e)
class Lazy:
    def __getattr__(self, name):
        if name == "up": raise AttributeError("no up")
        setattr(self, name, name * 2)
        return getattr(self, name)
l = Lazy(); print(l.ab, l.__dict__, hasattr(l, "up"), getattr(l, "up", 7))
class V:
    def __init__(self, *xs): self.xs = xs
    def __eq__(self, o): return NotImplemented if not isinstance(o, V) else self.xs == o.xs
    def __add__(self, o): return V(*(a + b for a, b in zip(self.xs, o.xs)))
    def __mul__(self, k): return V(*(a * k for a in self.xs))
    __rmul__ = __mul__
    def __iter__(self): return iter(self.xs)
    def __repr__(self): return f"V{self.xs}"
    def __getitem__(self, i): return self.xs[i]
    def __matmul__(self, o): return sum(a * b for a, b in zip(self, o))
    def __iadd__(self, o): self.xs = (self + o).xs; return self
    def __bool__(self): return any(self.xs)
v = V(1, 2); w = v; v += V(1, 1); print(v, w is v, 2 * v, v @ V(1, 0), v == V(2, 3), v == 3, v != V(0, 0), bool(V(0)), [*v], v[0])
try: {v: 1}
except TypeError: print("unhashable")
class Stack(list):
    def push(self, x): self.append(x); return self
    def __repr__(self): return "Stack" + super().__repr__()
s = Stack([1]); print(s.push(2), len(s), isinstance(s, list), s + [3], s == [1, 2], s[0], sorted(s, reverse=True))
class Default(dict):
    def __missing__(self, k): self[k] = k * 2; return self[k]
d = Default(a=1); print(d["x"], d, d.get("q"), dict(d))
class Frozen(tuple):
    def __new__(cls, *xs): return super().__new__(cls, xs)
    @property
    def first(self): return self[0]
f = Frozen(4, 5); print(f.first, f, f == (4, 5), {f: 1}[(4, 5)], type(f).__name__)
class Name(str):
    def shout(self): return self.upper() + "!"
print(Name("ab").shout(), Name("ab") == "ab", Name("x") + "y", {"ab": 1}[Name("ab")], f"{Name('q'):>3}")
class I(int): pass
print(I(3) + 1, I(3) * 2.0, isinstance(I(3), int), [0, 1, 2, 3][I(2)], range(I(3)), f"{I(255):x}")
T = type("T", (Base,), {"z": 5, "get": lambda self: self.z}); print(T().get(), T.__name__, T.tag)
class Outer:
    class Inner:
        k = 1
    val = Inner.k + 1
print(Outer.Inner().k, Outer.val, Outer.Inner.__name__)
class Counter:
    total = 0
    def __init__(self): type(self).total += 1
    def __len__(self): return 2
    def __enter__(self): return self
    def __exit__(self, *a): return True
    def __delitem__(self, k): print("del", k)
    def __contains__(self, k): return k == "in"
    def __call__(self, *a, **k): return a, k
    def __ge__(self, o): return "ge"
    def __abs__(self): return 9
    def __round__(self, n=None): return 8
    def __reversed__(self): return iter("zy")
c = Counter(); Counter(); print(Counter.total, len(c), "in" in c, c(1, k=2), c >= 1, abs(c), list(reversed(c)))
del c["k"]
with c: raise ValueError
del c
print(callable(Counter), callable(3), issubclass(C, (A, int)), isinstance(C(), (B, str)), vars(P(2)))
try:
    class Bad(A, Base, X): pass
    print("ok")
except TypeError as e: print("mro")
def gen_method():
    class G:
        def __iter__(self):
            for i in range(2): yield i
    return list(G())
print(gen_method())

# Classes know those that derive from them.
class Plugin: pass
class First(Plugin): pass
class Second(Plugin): pass
class Third(First): pass
print([c.__name__ for c in Plugin.__subclasses__()], First.__subclasses__() == [Third], Third.__subclasses__())
