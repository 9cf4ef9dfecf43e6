import functools
import sys
import traceback


def f(a):
    return g(a)


def g(a):
    if a == 0:
        raise ValueError("zero")
    return 1


def shown(text):
    # Without the marks under a part of a line, and without the file's folder.
    lines = [line for line in text.split("\n") if line.strip("^~ ") or not line]
    return "\n".join(lines).replace(__file__, "FILE")


try:
    f(0)
except ValueError as e:
    print(shown(traceback.format_exc()))
    print(traceback.format_exception_only(e))

try:
    try:
        f(0)
    except ValueError as e:
        raise RuntimeError("wrapped") from e
except RuntimeError:
    print(shown(traceback.format_exc()))

try:
    try:
        f(0)
    except ValueError:
        {}["missing"]
except KeyError as e:
    print(shown("".join(traceback.format_exception(e))))

try:
    try:
        f(0)
    except ValueError:
        raise TypeError("alone") from None
except TypeError:
    print(shown(traceback.format_exc()))


@functools.lru_cache
def kept(n):
    return g(n)


print(repr(traceback.format_exc()))
frame = traceback.FrameSummary("a.py", 3, "f", line="  x = 1  ")
print(frame, traceback.format_list([frame]))
