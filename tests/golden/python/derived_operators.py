"""Operators of classes that derive from types: their own methods come first, then the type's."""
from collections import Counter, OrderedDict, namedtuple

a, b = Counter("aab"), Counter("abc")
print(a | b, type(a | b).__name__, a & b, a + b, a - b)
print(Counter(a=0) == Counter(), Counter(a=1) == Counter(a=1, b=0), Counter(a=1) != Counter(a=2))
c = Counter("aab")
c |= b
print(c, type(c).__name__)
c &= a
print(c)


class Vector(list):
    def __add__(self, other):
        return Vector(x + y for x, y in zip(self, other))

    def __radd__(self, other):
        return "radd"

    def __iadd__(self, other):
        self[:] = [x + y for x, y in zip(self, other)]
        return self

    def __eq__(self, other):
        return len(self) == len(other)

    def __lt__(self, other):
        return sum(self) < sum(other)


v = Vector([1, 2])
print(v + [3, 4], [3, 4] + v, v == [7, 8], v != [7, 8], v < [9, 9], [0, 0] > v)
w = v
w += [10, 20]
print(v, w is v)


class Plain(list):
    pass


class Keys(dict):
    pass


p = Plain([1])
print(p + [2], type(p + [2]).__name__, [0] + p, p == [1], p < [2], p * 2)
p += (5, 6)
print(p, type(p).__name__)
k = Keys(a=1)
print(k | {"b": 2}, {"b": 2} | k, k == {"a": 1})
k |= {"c": 3}
print(k, type(k).__name__)
Point = namedtuple("Point", "x y")
print(Point(1, 2) + (3,), Point(1, 2) == (1, 2), Point(1, 2) < (1, 3))
print(OrderedDict(a=1, b=2) == OrderedDict(b=2, a=1), OrderedDict(a=1, b=2) == {"b": 2, "a": 1})


class Text(str):
    def __add__(self, other):
        return Text(str(self) + "+" + other)


print(Text("a") + "b", "a" + Text("b"), Text("a") == "a", type(Text("a") + "b").__name__)
