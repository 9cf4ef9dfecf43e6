# locals(), private names, qualified names, frozen sets, errors by number.
def f(a, *rest, b=2, **more):
    c = [x * a for x in range(2)]
    return locals(), sorted(dir()), vars() == locals()
print(f(1, 5, k=3))
def outer():
    shared, own = 1, 2
    def inner():
        late = shared
        return locals()
    del own
    return inner(), locals()["shared"], "own" in locals()
print(outer())
print("{name} {n}".format(**(lambda name, n: locals())("x", 3)), "f" in locals(), locals() == globals())
class K:
    v = [q for q in range(2)]
    names = sorted(n for n in locals() if not n.startswith("__"))
print(K.names)
accent = "\u00e9"
print(ascii("h\u00e9 \u20ac \U0001f600 'x'"), f"{accent!a} {K.names!a}")


class _A:
    __z = 5
    __slots__ = ("__s", "t")
    def __init__(self): self.__s = 7
    def f(self, __p):
        add = lambda __r: __r + __p + self.__z
        def __inner(): return add(1)
        return __inner(), [__k for __k in range(2)], f"{self.__z} {self.__s}"
    class __In:
        __w = 8
        def g(self): return self.__w
    def h(self): return self.__In().g()
class B(_A):
    def __m(self): return 1
    def __dunder__(self): return self.__m()
print(_A().f(3), _A().h(), _A()._A__s, sorted(n for n in dir(_A) if "A__" in n and n != "_A__s"), hasattr(_A, "__z"))
print(B().__dunder__(), hasattr(B, "_B__m"))
class __:
    __x = 1
print(__.__x)
try:
    _A().__z
except AttributeError:
    print("private")


class C:
    class D:
        def f(self): pass
    def g(self):
        def h(): pass
        class E: pass
        return h, E
    k = lambda self: 0
h, E = C().g()
print(C.D.__qualname__, C.D.f.__qualname__, h.__qualname__, E.__qualname__, C.D.__name__, C.k.__qualname__)
print(C.D, E)
def make():
    global Made
    class Made: pass
    return Made
print(make().__qualname__, type("T", (), {"__qualname__": "U.T"}).__qualname__)

a = frozenset([1, 2])
d = {a: 3, frozenset(): 0}
print(d[frozenset([2, 1])], a == {2, 1}, a | {3}, type({3} | a).__name__, type(a | {3}).__name__, a - {1}, a ^ {2, 5})
print(frozenset(), repr(frozenset("a")), a.union([7]) == {1, 2, 7}, a.copy() is a, frozenset(a) is a, a <= {1, 2, 3})
print(isinstance(a, set), isinstance(a, frozenset), type(a), {frozenset([1])} == {frozenset([1])}, len({a, frozenset([2, 1])}))
b = a
b |= {9}
print(a, sorted(b), hash(a) == hash(frozenset([2, 1])))
for bad in (lambda: a.add(1), lambda: {{1}: 2}):
    try:
        bad()
    except (AttributeError, TypeError) as e:
        print(type(e).__name__)
class F(frozenset):
    pass
print(F([1]) == {1}, {F([1]): 2}[F([1])], isinstance(F(), frozenset))
from collections.abc import Hashable, Set
print(isinstance(a, Hashable), isinstance({1}, Hashable), isinstance(a, Set))

import errno
print([type(OSError(n, "t")).__name__ for n in (errno.ENOENT, errno.EACCES, errno.EEXIST, errno.EPIPE, errno.EINTR, 9999)])
e = OSError(errno.ENOTDIR, "no folder", "a/b")
print(type(e).__name__, e, e.errno, e.filename, type(OSError("text")).__name__, errno.errorcode[2])
try:
    raise OSError(errno.EISDIR, "x")
except IsADirectoryError as e:
    print("folder", e.strerror)

print(... is ..., Ellipsis is ..., ... == ..., [...].index(...), {...: 1}[Ellipsis])

for x, y in (({0, 2}, frozenset({False})), ({0}, frozenset({False, 1})), ({0}, {False}), ({True, 3}, {1})):
    print(x & y, y & x, x.intersection(y), x.intersection(list(y)), x - y, sorted(x | y, key=repr))
z = {0, 1}
z &= {False, 5}
print(z, {0}.intersection([False, 1], (0,)), frozenset({0}).intersection([False]))
