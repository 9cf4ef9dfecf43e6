"""Where things end: nesting, counts, numbers."""


def told(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__)


def deep(make):
    it = iter([1])
    for _ in range(200000):
        it = make(it)
    return it


# How deep one may go differs; that these are made and dropped without an end of the process does not.
for make in (lambda it: map(abs, it), lambda it: filter(None, it)):
    chain = deep(make)
    del chain

nested = int
for _ in range(100000):
    nested = (nested,)
told(lambda: isinstance("a", nested))
told(lambda: frozenset([1]).issuperset(range(2**62)))
told(lambda: {1, 2, 3}.issuperset(iter([2, 3])))
told(lambda: round(1.5, foo=2))
told(lambda: int(float("inf")))
told(lambda: int(float("nan")))
told(lambda: round(float("inf")))
told(lambda: 0**-1)
told(lambda: 0.0**-1)
for number in (0, 5, 15, 25, -25, -15, 2**60 + 7, 2**100, -(2**100) - 50000, 14_5, 10**30 + 5):
    print([round(number, -n) for n in (1, 2, 5, 20, 50)])
for text in ("", "a", "ab", "abc", "é"):
    print([text.center(width, "*") for width in range(7)])
