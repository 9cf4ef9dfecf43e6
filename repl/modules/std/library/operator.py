"""operator: the operators as functions."""


def add(a, b): return a + b
def sub(a, b): return a - b
def mul(a, b): return a * b
def truediv(a, b): return a / b
def floordiv(a, b): return a // b
def mod(a, b): return a % b
def pow(a, b): return a**b
def matmul(a, b): return a @ b
def neg(a): return -a
def pos(a): return +a
def invert(a): return ~a
def and_(a, b): return a & b
def or_(a, b): return a | b
def xor(a, b): return a ^ b
def lshift(a, b): return a << b
def rshift(a, b): return a >> b
def not_(a): return not a
def truth(a): return bool(a)
def is_(a, b): return a is b
def is_not(a, b): return a is not b
def eq(a, b): return a == b
def ne(a, b): return a != b
def lt(a, b): return a < b
def le(a, b): return a <= b
def gt(a, b): return a > b
def ge(a, b): return a >= b
def contains(a, b): return b in a
def concat(a, b): return a + b
def getitem(a, b): return a[b]


def index(a):
    if isinstance(a, int):
        return int(a)
    made = getattr(a, "__index__", None)
    if made is None:
        raise TypeError(f"'{type(a).__name__}' object cannot be interpreted as an integer")
    return made()


def length_hint(obj, default=0):
    try:
        return len(obj)
    except TypeError:
        hint = getattr(obj, "__length_hint__", None)
    n = NotImplemented if hint is None else hint()
    if n is NotImplemented:
        return default
    if not isinstance(n, int):
        raise TypeError(f"__length_hint__ must be an integer, not {type(n).__name__}")
    if n < 0:
        raise ValueError("__length_hint__() should return >= 0")
    return n


def setitem(a, b, c):
    a[b] = c


def delitem(a, b):
    del a[b]


def iadd(a, b):
    a += b
    return a


def countOf(a, b):
    return sum(1 for v in a if v == b)


def itemgetter(item, *items):
    if not items:
        return lambda obj: obj[item]
    return lambda obj: tuple(obj[i] for i in (item,) + items)


def _attribute(obj, path):
    for name in path.split("."):
        obj = getattr(obj, name)
    return obj


def attrgetter(attr, *attrs):
    if not attrs:
        return lambda obj: _attribute(obj, attr)
    return lambda obj: tuple(_attribute(obj, a) for a in (attr,) + attrs)


def methodcaller(name, *args, **kwargs):
    return lambda obj: getattr(obj, name)(*args, **kwargs)
