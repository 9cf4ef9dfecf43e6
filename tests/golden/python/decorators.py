import functools, time
def deco(arg=None, *, key=3):
    def wrap(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            return (arg, key, fn(*args, **kwargs))
        return inner
    return wrap
@deco(1, key=2)
def f(x, y=2): return x*y
print(f(3), f.__name__)
class Reg:
    _r = {}
    @classmethod
    def register(cls, name):
        def d(c): cls._r[name] = c; return c
        return d
@Reg.register("a")
class A: pass
print(Reg._r["a"].__name__)
class Meth:
    @functools.cached_property
    def v(self): print("once"); return 3
    @functools.lru_cache(maxsize=2)
    def m(self, x): print("m", x); return x
o = Meth(); print(o.v, o.v, o.m(1), o.m(1))
@functools.singledispatch
def sd(x): return "o"
@sd.register
def _(x: int): return "i"
@sd.register(str)
def _(x): return "s"
print(sd(1), sd("a"), sd(2.0))
@functools.total_ordering
class T:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v
print(T(1) >= T(0), T(1) <= T(0))
