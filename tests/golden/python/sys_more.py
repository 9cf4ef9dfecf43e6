"""What sys, os.environ, errors of imports and classes tell."""
import enum
import io
import os
import pathlib
import sys
import tempfile
import time


def show(f):
    try:
        print(repr(f()))
    except Exception as e:
        print(type(e).__name__)


print(sys.float_info.max_exp, sys.float_info.radix, sys.hexversion >= 0x030B0000, sys.intern("a") == "a")
print(sys.stdin is sys.__stdin__, sys.stdin.readable(), sys.stdin.fileno())
sys.stdin = io.StringIO("one\ntwo")
print(repr(input()), repr(input("? ")))
show(input)
sys.stdin = None
show(input)
sys.stdin = sys.__stdin__

os.environ["KILN_TEST_ONE"] = "1"
print("KILN_TEST_ONE" in list(os.environ), os.environ.copy()["KILN_TEST_ONE"], type(os.environ.copy()).__name__)
print([v for k, v in os.environ.items() if k == "KILN_TEST_ONE"], "KILN_TEST_ONE" in os.environ.keys())
print(len(os.environ) == len(list(os.environ.values())), dict(os.environ)["KILN_TEST_ONE"])
del os.environ["KILN_TEST_ONE"]
print("KILN_TEST_ONE" in dict(os.environ))

with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, "file")
    with open(name, "w") as f:
        f.write("12345")
        print(f.writable(), f.readable(), f.isatty(), f.fileno() > 2)
    print(os.stat(name).st_size, pathlib.Path(name).stat().st_size, os.stat(name).st_mtime == os.path.getmtime(name))
show(lambda: os.stat("no such file"))

try:
    import no_such_module
except ImportError as e:
    print(type(e).__name__, e.name)
try:
    from os import no_such_name
except ImportError as e:
    print(type(e).__name__, e.name)
print(ImportError("text").name)

show(lambda: time.sleep(-1))
show(lambda: time.sleep(0))


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


show(lambda: setattr(Level, "LOW", 5))
Level.extra = "kept"
print(Level.LOW.value, Level.extra, list(Level))
print(Level)
print(sys.stdout.encoding, sys.stdout.writelines(["a", "b\n"]), hasattr(sys.stderr, "writelines"))
