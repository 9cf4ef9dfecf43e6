"""Rarer operations of collections, enum, functools, heapq, itertools, operator, statistics and string."""
import collections.abc
import enum
import functools
import heapq
import itertools
import operator
import statistics
import string
from collections import ChainMap, Counter, deque, namedtuple


def show(name, make):
    try:
        print(name, make())
    except Exception as e:
        print(name, type(e).__name__, e)


# --- counters
a, b = Counter(a=3, b=1, c=-1), Counter(a=1, b=2)
show("and", lambda: a & b)
show("signs", lambda: (+a, -a))
show("within", lambda: (a <= b, b <= a, Counter(a=1) <= a, Counter(a=1) < a, a >= a, a > a))
show("kinds", lambda: (type(a & b).__name__, type(a + b).__name__, type(a - b).__name__))
show("in place", lambda: (Counter(a=3).__iadd__(b), Counter(a=3).__isub__(b), Counter(a=3).__iand__(b)))
show("fromkeys", lambda: Counter.fromkeys("ab"))


def forgotten():
    c = Counter("ab")
    del c["z"], c["a"]
    return c


show("del", forgotten)

# --- queues
show("plus", lambda: (deque([1, 2]) + deque([3]), deque([1], 2) + deque([2, 3]), deque([1, 2]) * 2))
show("plus a list", lambda: deque([1]) + [2])
show("full", lambda: deque([1, 2], 2).insert(0, 3))
show("negative", lambda: deque([], -1))


def changed():
    d = deque([1, 2, 3])
    d.insert(1, 9)
    d.insert(-1, 8)
    d.insert(100, 7)
    d += [2, 3]
    return d, list(reversed(d)), d.index(3, 4), deque([1]) < deque([2]), deque([1]) == [1]


show("changed", changed)
def ends():
    d = deque([1, 2, 3, 4, 5])
    d.popleft()
    d.popleft()
    d[0], d[-1] = "a", "b"
    del d[1]
    return d, d[0], d[-1], d[-2]


show("ends", ends)
show("outside", lambda: deque([1])[1])
show("slice", lambda: deque([1, 2, 3])[1:2])
show("no such item", lambda: deque([1, 2, 3]).index(1, 1))
show("remove", lambda: deque([1]).remove(2))

# --- maps
chained = ChainMap({"a": 1}, {"a": 2, "b": 3})
show("chained", lambda: (chained, chained.parents, chained == {"a": 1, "b": 3}, sorted(chained.items())))
show("child", lambda: (chained.new_child({"z": 1})["z"], len(chained.new_child({"z": 1}))))
show("pop", lambda: chained.pop("b"))

# --- named tuples
show("twice", lambda: namedtuple("P", "a a"))
show("renamed", lambda: namedtuple("P", "a def _x 1b a b", rename=True)._fields)
show("keyword", lambda: namedtuple("P", "a def"))
show("underscore", lambda: namedtuple("P", "_a"))
show("no name", lambda: namedtuple("P", "1a"))
show("defaults", lambda: namedtuple("P", "a", defaults=(1, 2)))

# --- iterators: bad arguments are told by the call
for name in ("combinations", "permutations", "combinations_with_replacement", "tee", "islice"):
    show(name, lambda: getattr(itertools, name)("ab", -1))
show("product", lambda: itertools.product("ab", repeat=-1))
show("some", lambda: (list(itertools.combinations("abc", 0)), list(itertools.permutations("ab")),
                      list(itertools.islice("abcdef", 1, None, 2))))

# --- heaps
show("replace", lambda: (lambda h: (heapq.heapreplace(h, 5), h))([1, 3, 2]))
show("replace nothing", lambda: heapq.heapreplace([], 5))
show("merge", lambda: list(heapq.merge([1, 4], [2, 3], [0])))
show("merge by key", lambda: list(heapq.merge(["dog", "horse"], ["cat", "fish", "kangaroo"], key=len)))
show("merge down", lambda: list(heapq.merge([4, 1], [3, 2], reverse=True)))


def equal_items():
    class Item:
        def __init__(self, rank, name):
            self.rank, self.name = rank, name

        def __lt__(self, other):
            return self.rank < other.rank

    heap, out = [], []
    for i, rank in enumerate([3, 1, 2, 1, 3, 2, 1, 1, 2]):
        heapq.heappush(heap, Item(rank, i))
    out.append(heapq.heappushpop(heap, Item(1, 9)).name)
    out.append(heapq.heappushpop(heap, Item(2, 10)).name)
    while heap:
        out.append(heapq.heappop(heap).name)
    return out


show("equal items", equal_items)


# --- what is called by type
@functools.singledispatch
def kind(x):
    return "object"


@kind.register(int)
def _(x):
    return "int"


@kind.register(collections.abc.Mapping)
def _(x):
    return "mapping"


show("kinds", lambda: (kind(True), kind(1), kind("a"), kind({}), kind(1.5), kind.dispatch(bool) is kind.dispatch(int)))


# --- numbers and texts
class Index:
    def __index__(self):
        return 3


class Hint:
    def __init__(self, n):
        self.n = n

    def __length_hint__(self):
        return self.n


show("index", lambda: (operator.index(True), operator.index(5), operator.index(Index())))
show("index of a float", lambda: operator.index(1.5))
show("hint", lambda: (operator.length_hint([1, 2]), operator.length_hint(Hint(7)),
                      operator.length_hint(Hint(NotImplemented), 4), operator.length_hint(5, 9)))
show("bad hint", lambda: operator.length_hint(Hint(-1)))
show("modes", lambda: (statistics.multimode("aabbc"), statistics.multimode([])))
show("words", lambda: (string.capwords("hello  wORLD x"), string.capwords("a-bc", "-"), string.capwords(" a,b ", ",")))


# --- flags
class Side(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    C = enum.auto()
    AB = A | B


class Color(enum.Flag):
    BLACK = 0
    RED = 1
    GREEN = 2
    BLUE = 4
    WHITE = RED | GREEN | BLUE


class Later(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    C = A | B
    D = enum.auto()
    E = ~A & 7
    F = A ^ C


class Named(enum.IntFlag):
    A = enum.auto()
    B = enum.auto()
    AB = A | B


class Mode(enum.IntFlag):
    R = 4
    W = 2
    X = 1
    RWX = 7


show("members", lambda: (Side.AB, Side.AB.value, list(Side), len(Side), list(Color), list(Color.__members__)))
show("composed", lambda: (Side.A | Side.C, Side.A & Side.B, Side.AB ^ Side.A, ~Side.A, Side(3) is Side.AB, Side(0)))
show("inside", lambda: (list(Side.AB), list(Side.A | Side.C), len(Side.AB), Side.A in Side.AB, bool(Side(0))))
show("names", lambda: (str(Side.A | Side.C), str(Side(0)), (Side.A | Side.C).name, Side(0).name, Side["AB"]))
show("once", lambda: ((Side.A | Side.C) is Side(5), {Side.A | Side.B: 1}[Side.AB], Side.A | Side.A is Side.A))
show("none such", lambda: Side(8))
show("later", lambda: (list(Later), Later.C.value, Later.D.value, Later.E, Later.F is Later.B, Later.A | Later.D))
show("named", lambda: (Named.AB, Named.A | 4, Named(7), ~Named.A, Named.AB ^ 1, Named.AB - 1, -Named.A))
show("colors", lambda: (Color.WHITE, Color(0), Color.RED & Color.GREEN, ~Color.RED, ~Color.BLACK, list(Color.WHITE)))
show("modes", lambda: (Mode.R | Mode.W, Mode.R | 8, Mode.R + 1, Mode.R & 5, 3 | Mode.R, ~Mode.R, Mode.R ^ 7))
show("numbers", lambda: (Mode.R == 4, Mode(0), Mode(16), list(Mode), Mode.RWX, list(Mode.R | Mode.X)))
show("within", lambda: (Mode.R in Mode.RWX, Mode.X | Mode.W in Mode.RWX))
show("shown", lambda: (str(Mode.R), f"{Mode.R}", isinstance(Mode.R, int), Mode.R < Mode.W, Mode(8).name, int(Mode.R)))
try:
    Side.A | 1
except TypeError:
    print("not a flag")
print(collections.namedtuple("Made", "x"), collections.namedtuple("Other", "x", module="m").__module__)
