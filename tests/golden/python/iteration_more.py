"""iter() with a sentinel, methods of generator expressions, index() with bounds, and errors of loops."""
import argparse
import datetime
import functools
import itertools
import types


def show(f):
    try:
        print(repr(f()))
    except Exception as e:
        print(type(e).__name__)


values = iter([3, 2, 1, 0, 9])
show(lambda: list(iter(lambda: next(values), 0)))
show(lambda: next(values))
show(lambda: list(iter(lambda: next(iter([])), 0)))
show(lambda: iter(5, 0))
show(lambda: list(next(iter([])) for _ in range(3)))
show(lambda: [x for x in (next(iter([x])) if x else next(iter([])) for x in (2, 1, 0))])

# A function that nothing but its own iterator holds, which it ends.
calls = []
own = iter(lambda: 7 if calls else [calls.append(1), next(own, None), calls, [x for x in range(3)]][2], 7)
print(next(own, "ended"), next(own, "ended"), calls)
ended = iter([1, 2].pop, 1)
print(list(ended), list(ended))

g = (x * x for x in range(4))
print(type(g).__name__, isinstance(g, types.GeneratorType), next(g))
print(g.send(None), g.send("ignored"))
g.close()
print(list(g))
show(lambda: next(g))
g = (x for x in range(3))
show(lambda: g.send(1))
print(next(g))
try:
    g.throw(ValueError("into"))
except ValueError as e:
    print(e)
print(list(g))

show(lambda: [1, 2, 1, 2].index(2, 2))
show(lambda: [1, 2, 1, 2].index(1, 1, 2))
show(lambda: [1, 2, 1].index(1, -1))
show(lambda: (1, 2, 1).index(1, 1))
show(lambda: (1, 2, 1).index(1, 1, -1))
show(lambda: [1].index(1, 5))


def stops():
    yield 1
    raise StopIteration("within")


try:
    list(stops())
except RuntimeError as e:
    print(e, repr(e.__cause__), repr(e.__context__))

try:
    raise
except RuntimeError as e:
    print(type(e).__name__)


class Negative:
    def __len__(self):
        return -1


class Wrong:
    def __len__(self):
        return "a"


show(lambda: len(Negative()))
show(lambda: len(Wrong()))
show(lambda: bool(Negative()))

deep = []
for _ in range(100000):
    deep = [deep]
show(lambda: repr(deep))
show(lambda: str(deep))
show(lambda: f"{deep}")
table = {}
for _ in range(100000):
    table = {1: table}
show(lambda: repr(table))
some = []
for _ in range(90):
    some = [some]
print(some)
while deep:  # a long chain goes in pieces
    deep = deep[0]
while table:
    table = table[1]
show(lambda: list(itertools.islice(iter(lambda: 1, 2), 3)))


class Shown:
    @functools.singledispatchmethod
    def show(self, value):
        return "any"

    @show.register(int)
    def _(self, value):
        return "int"

    @show.register
    def _(self, value: str):
        return "text"


print(Shown().show(1.5), Shown().show(1), Shown().show("a"), Shown().show(True))
for day in ((2024, 12, 31), (2021, 1, 3), (2020, 12, 31), (2024, 2, 29)):
    print(tuple(datetime.date(*day).isocalendar()), datetime.date(*day).isocalendar()[1])
parser = argparse.ArgumentParser("prog")
parser.add_argument_group("extra", "more options").add_argument("--seed")
parser.add_argument_group("plain").add_argument("--flat")
print(parser.format_help())
