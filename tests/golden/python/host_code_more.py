"""What a differential against Python found: places where Kiln printed something else."""
import argparse
import sys

# Texts: bounds of searches, letters beyond ASCII, tables of characters.
print("hello".startswith("l", 2), "hello".endswith("l", 0, 4), "hello".startswith(("x", "ll"), -3), "abc".startswith("", 4))
print("abcabc".find("c", 3), "abcabc".find("a", 1, 3), "abcabc".rfind("a", 0, 3), "abcabc".count("a", 1), "é日é".find("é", 1))
print("abcabc".index("b", 2), "abcabc".rindex("b"), "abc".find("", 3), "abc".find("", 4), "abc".count("", 1))
print("ÀÉ".lower(), "ñu".upper(), "é日本".isalpha(), "éa".title(), "Ω".lower(), "ÀB".isupper(), "éÀ".swapcase(), "日1".isalnum())
print("Abc Def".istitle(), "ABc".istitle(), "a".istitle(), "A1B".istitle())
print("hello".translate({ord("l"): "1", ord("o"): None}), str.maketrans("ab", "xy"))
print("abcé".translate(str.maketrans("ab", "éy", "c")), "x".translate(str.maketrans({"x": "long"})), "ab".translate({97: 98}))
print("%c%c|%3c" % ("a", 98, "é"), "%5s|%-5s|" % ("ab", "cd"))


class Two:
    def __index__(self):
        return 2


print(hex(Two()), bin(Two()), oct(Two()), [1, 2, 3][Two()], (0.75).as_integer_ratio(), (-3.0).as_integer_ratio(), *(f.as_integer_ratio() for f in (1e-21, 2.0**-126, -1e38, 2.0**126)))

# Exceptions.
try:
    assert False
except AssertionError as e:
    print(repr(e), str(e) == "", e.args)
try:
    open("/nonexistent/x")
except OSError as e:
    print(e, e.errno, e.strerror, e.filename, type(e).__name__)
try:
    raise OSError(2, "No such thing", "f.txt")
except OSError as e:
    print(e, e.errno, e.strerror, e.filename)
e = OSError("plain")
print(e, e.errno, e.filename)
try:
    raise RuntimeError("gave up") from None
except RuntimeError as e:
    print(e.__cause__, e.__suppress_context__)
try:
    next(iter([]))
except StopIteration as e:
    print(repr(str(e)), e.value)
try:
    d = {1: 2}
    for k in d:
        d[k + 1] = 0
except RuntimeError as e:
    print("RuntimeError")


def handled():
    try:
        raise ValueError("a")
    except ValueError as err:
        kept = err
    try:
        return err
    except UnboundLocalError:
        return f"gone: {kept}"


def generated():
    try:
        yield 1
        raise ValueError("a")
    except ValueError as err:
        yield str(err)
    try:
        yield err
    except UnboundLocalError:
        yield "gone"


print(handled(), list(generated()))


def early():
    try:
        print(later)
    except UnboundLocalError as err:
        print(type(err).__name__)
    later = 1


early()

# The body of a class is not around its comprehensions.
x = 2


class Body:
    x = 5
    names = ["a", "b"]
    seen = [x for _ in range(2)]
    first = [x for x in names]
    table = {n: x for n in names}
    nested = [[x for _ in range(1)] for _ in range(1)]
    call = (lambda: x)()
    lazy = list(x for _ in range(1))
    y = x + 1


print(Body.seen, Body.first, Body.table, Body.nested, Body.call, Body.lazy, Body.y)


class Slots:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = 1


class More(Slots):
    __slots__ = "c"


class Open(Slots):
    pass


s = More()
s.b = s.c = 2
o = Open()
o.anything = 3
print(s.a, s.b, s.c, o.anything)
try:
    s.d = 1
except AttributeError:
    print("no d")

# Usage of options that exclude one another.
p = argparse.ArgumentParser(prog="bench")
p.add_argument("kernel", nargs="?")
p.add_argument("-m", "--size", type=int, metavar="N")
g = p.add_mutually_exclusive_group()
g.add_argument("--fast", action="store_true")
g.add_argument("--slow", action="store_true")
sys.stdout.write(p.format_usage())
g = p.add_mutually_exclusive_group(required=True)
g.add_argument("--one")
g.add_argument("--two-with-a-long-name")
g.add_argument("--three")
sys.stdout.write(p.format_usage())

# What was handled when an exception was raised.
try:
    try:
        {}["k"]
    except KeyError:
        raise RuntimeError("second")
except RuntimeError as e:
    print(repr(e.__context__), e.__cause__, e.__suppress_context__)
try:
    try:
        raise ValueError("a")
    except ValueError:
        raise
except ValueError as e:
    print(e.__context__)
