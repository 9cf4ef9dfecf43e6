"""match: every kind of pattern, what it binds, guards, and the words as names."""
import collections
import enum
from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int = 0


class Shape:
    __match_args__ = ("kind", "size")

    def __init__(self, kind, size):
        self.kind, self.size = kind, size


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Consts:
    LIMIT = 10


Pair = collections.namedtuple("Pair", "left right")


def kind(v):
    match v:
        case None:
            return "none"
        case True | False as b:
            return f"bool {b}"
        case 0 | 1:
            return "small"
        case -5 | 2.5 | 1 + 2j:
            return "number"
        case "a" | 'b':
            return "letter"
        case b"x":
            return "bytes"
        case Color.RED:
            return "red"
        case Consts.LIMIT:
            return "limit"
        case int(n) if n > 100:
            return f"big {n}"
        case int() | float():
            return "other number"
        case str(s):
            return f"text {s!r}"
        case Point(0, y):
            return f"on the axis at {y}"
        case Point(x=x, y=0):
            return f"x {x}"
        case Point():
            return "point"
        case Shape("circle", size) | Shape("round", size):
            return f"circle of {size}"
        case Shape(kind=k, size=[w, h]):
            return f"{k} {w}x{h}"
        case Pair(left, right):
            return f"pair {left} {right}"
        case []:
            return "empty"
        case [x]:
            return f"one {x}"
        case (1, *rest):
            return f"one and {rest}"
        case [first, *_, last] if first == last:
            return f"both ends {first}"
        case [[a, b], c]:
            return f"nested {a} {b} {c}"
        case [*head, 9]:
            return f"nine behind {head}"
        case {"kind": "user", "name": str(name), **rest}:
            return f"user {name} {rest}"
        case {"n": n}:
            return f"n {n}"
        case {}:
            return "mapping"
        case _:
            return f"else {type(v).__name__}"


values = [None, True, False, 0, 1, -5, 2.5, 1 + 2j, "a", b"x", Color.RED, Color.BLUE, 10, 500, 7, 3.5, "word",
          Point(0, 3), Point(4), Point(1, 2), Shape("circle", 2), Shape("round", 3), Shape("box", (1, 2)),
          Shape("box", 5), Pair(1, 2), [], (), [5], (1, 2, 3), [4, 5, 4], [[1, 2], 3], [3, 4, 9], [3, 4, 5],
          range(3, 5), collections.deque([7]), {"kind": "user", "name": "ann", "age": 3}, {"kind": "user", "name": 5},
          {"n": 1}, {}, collections.defaultdict(int), {1, 2}, bytearray(b"x"), "", object]
for v in values:
    print(kind(v))

# What binds and when.
x = "before"
match [1, 2]:
    case [x, 3]:
        print("no")
    case [_, _] if x == "before":
        print("names of a pattern that fails stay", x)
match (1, 2):
    case (x, y) if x > y:
        print("no")
    case _:
        print("a guard sees and leaves them", x, y)
match 5:
    case 6:
        print("no")
print("no case is no error")
match {"a": {"b": [10, {"c": 20}]}}:
    case {"a": {"b": [first, {"c": second}]}}:
        print(first, second)
match [1, [2, 3]]:
    case [int() as a, [int(), *_] as b] as whole:
        print(a, b, whole)
match 1, 2:
    case a, b:
        print("open", a, b)
match 3,:
    case (a,):
        print("of one", a)
match [1, 2, 3]:
    case first, *others:
        print(first, others)
match (4):
    case (4):
        print("grouped")


# In loops, functions, generators and classes.
def walk(tree):
    match tree:
        case [left, right]:
            yield from walk(left)
            yield from walk(right)
        case leaf:
            got = yield leaf
            if got:
                print("got", got)


print(list(walk([[1, 2], [3, [4, 5]]])))
g = walk(7)
next(g)
try:
    g.send("it")
except StopIteration:
    print("done")

out = []
for i in range(6):
    match i % 3:
        case 0:
            continue
        case 1 if i > 3:
            break
        case rest:
            out.append((i, rest))
print(out)


class Holder:
    match 3:
        case n:
            value = n + 1


print(Holder.value, Holder.n)


def counts():
    total = 0

    def add(v):
        nonlocal total
        match v:
            case [total, *_] | (int() as total):
                pass

    add(5)
    first = total
    add([7, 8])
    return first, total


print(counts())


def declared():
    match 1:
        case 1:
            global made
            made = "global"


declared()
print(made)

# Both words are names elsewhere.
match = [1, 2]
case = {"match": match}
match[0] = 5
print(match, case, match[0] - 1)
match: int = 3
print(match)
_ = "kept"
match 1:
    case _:
        print(_)


def match_one(match, case=2):
    return match + case


print(match_one(1), match_one(match=2, case=3))


def error(f):
    try:
        f()
    except Exception as e:
        print(type(e).__name__)


def many():
    match Shape("a", 1):
        case Shape(a, b, c):
            pass


def int_of_two():
    match 1:
        case int(a, b):
            pass


def no_class():
    match 1:
        case match_one(a):
            pass


error(many)
error(int_of_two)
error(no_class)


def many_of_another_kind():
    match Shape("b", 1):  # the first pattern does not match
        case Shape("a", 1, 2):
            pass


error(many_of_another_kind)
for value in (1, "x"):
    match value:
        case int(_ as n) | (_ as n):
            print(n)
match [1, 2]:
    case [a as b, _ as c]:
        print(a, b, c)
match 1 + 2j:
    case 1 + 2j:
        print("complex")
