import io
import sys
from contextlib import redirect_stderr, redirect_stdout
b = io.StringIO("a\nb\nlast")
print(list(b), b.read(), b.seek(0), b.readline(), b.tell(), b.read(2), b.readlines())
b = io.StringIO()
print("x", 1, file=b)
print(b.write("éy"), repr(b.getvalue()), b.seek(0), b.read(1), b.seek(0, 2), b.truncate(2), repr(b.getvalue()))
b.seek(1)
b.write("ZZZ")
b.seek(6)
b.write("!")
print(repr(b.getvalue()))
with io.StringIO("q") as f: print(f.read())
try: f.read()
except ValueError: print("closed", f.closed)
for bad in (lambda: io.StringIO(5), lambda: b.write(b"x"), lambda: io.BytesIO().write("x"), lambda: b.seek(-1),
        lambda: b.fileno()):
    try: bad()
    except Exception as e: print(type(e).__name__, isinstance(e, OSError))
c = io.BytesIO(b"ab\ncd")
print(c.readline(), c.read(1), c.getvalue(), list(io.BytesIO(b"1\n2")))
out = io.StringIO()
with redirect_stdout(out) as target:
    print("hidden")
    sys.stdout.write("too\n")
    with redirect_stdout(io.StringIO()) as inner: print("deeper")
    print(target is out, repr(inner.getvalue()))
print(repr(out.getvalue()), sys.stdout is sys.__stdout__)
err = io.StringIO()
with redirect_stderr(err): print("e", file=sys.stderr)
print(repr(err.getvalue()))
class Upper:
    def write(self, s): sys.__stdout__.write(s.upper())
    def flush(self): sys.__stdout__.write("(flush)")
sys.stdout = Upper()
print("loud", flush=True)
sys.stdout = sys.__stdout__
print(sys.stdout.isatty(), io.SEEK_END, isinstance(out, io.TextIOBase))
