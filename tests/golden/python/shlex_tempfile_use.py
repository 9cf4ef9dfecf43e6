"""shlex, tempfile, importlib, and the modes of new folders."""
import importlib
import os
import shlex
import tempfile


def show(f):
    try:
        print(repr(f()))
    except Exception as e:
        print(type(e).__name__)


for text in ("a b", " a  'b c' ", '"x \\" y" z', "a\\ b", "''", "a''b", "", "--k='v w' -n=1", "'it'\"'\"'s'", "a # b",
             '"\\n"', "\\'"):
    print(shlex.split(text))
show(lambda: shlex.split("a # b", comments=True))
show(lambda: shlex.split("'open"))
show(lambda: shlex.split("end\\"))
for word in ("plain", "two words", "it's", "", "a/b.c-d=e", "$x", "é"):
    print(shlex.quote(word), shlex.split(shlex.quote(word)) == [word])
print(shlex.join(["a", "b c", "d'e"]))

with tempfile.TemporaryDirectory(prefix="kiln-test-") as folder:
    print(os.path.isdir(folder), os.path.basename(folder).startswith("kiln-test-"))
    print(oct(os.stat(folder).st_mode & 0o777))
    with open(os.path.join(folder, "f"), "w") as f:
        f.write("x")
    os.mkdir(os.path.join(folder, "private"), 0o700)
    os.makedirs(os.path.join(folder, "a", "b"), 0o750)
    os.makedirs(os.path.join(folder, "a", "b"), exist_ok=True)
    for made in ("private", "a/b"):
        print(oct(os.stat(os.path.join(folder, made)).st_mode & 0o777))
    show(lambda: os.makedirs(os.path.join(folder, "a", "b")))
    show(lambda: os.makedirs(os.path.join(folder, "f"), exist_ok=True))
    show(lambda: os.makedirs(os.path.join(folder, "f", "g")))
    show(lambda: os.mkdir(os.path.join(folder, "no", "such")))
    with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=folder) as f:
        f.write("text\n")
        f.flush()
        print(f.name.endswith(".txt"), open(f.name).read(), os.stat(f.name).st_mode & 0o777 == 0o600)
    print(os.path.exists(f.name), f.closed)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as f:
        f.write(b"bytes")
        f.seek(0)
        print(f.read())
    print(os.path.exists(f.name))
print(os.path.exists(folder))
made = tempfile.mkdtemp(suffix="-end")
print(made.startswith(tempfile.gettempdir()), made.endswith("-end"))
os.rmdir(made)

print(importlib.import_module("math").pi, importlib.import_module("os.path").basename("a/b"))
show(lambda: importlib.import_module("no_such_module"))
show(lambda: importlib.import_module(".x"))

with tempfile.NamedTemporaryFile("r") as f:
    print(repr(f.read()))
with tempfile.NamedTemporaryFile("a+") as f:
    print(f.write("more"), f.seek(0), f.read())
show(lambda: tempfile.NamedTemporaryFile("q"))
