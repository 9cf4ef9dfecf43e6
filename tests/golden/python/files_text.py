# Text files: encodings, line ends, reading by characters, positions.
import os
from pathlib import Path

path = f"/tmp/kiln_files_text_{os.getpid()}.txt"


def error(f):
    try:
        return f()
    except Exception as e:
        return type(e).__name__


def put(data):
    with open(path, "wb") as f:
        f.write(data)


put("é日本x\n".encode())
with open(path) as f:
    print([f.read(1) for _ in range(6)], f.encoding.lower() in ("utf-8", "utf8"), f.errors)
with open(path, encoding="latin-1") as f:
    print(ascii(f.read(2)), ascii(f.readline()))
put(b"caf\xe9\n")
print(error(lambda: open(path).read()), error(lambda: open(path, encoding="ascii").read()),
      open(path, encoding="latin1").read().strip() == "caf\xe9", repr(open(path, errors="ignore").read()),
      ascii(open(path, errors="replace").read()), open(path, "rb").read())
print(error(lambda: open(path, encoding="nothing")), error(lambda: open(path, "rb", encoding="utf-8")), error(lambda: open(path, newline="x")))
put(b"a\r\nb\rc\n\r\nd\r")
print(open(path).readlines(), open(path, newline="").read() == "a\r\nb\rc\n\r\nd\r", open(path, newline="\n").readlines(), open(path, newline="\r\n").readlines(), open(path, newline="\r").readlines())
print([line for line in open(path)], [open(path).read(n) for n in (0, 2, 4)])
with open(path, "w", newline="\r\n", encoding="latin-1") as f:
    print(f.write("é\nb\n"))
print(open(path, "rb").read(), error(lambda: open(path, "w", encoding="ascii").write("é")), Path(path).open(newline="").read() == "")
# More than is read at once, with a character and a line end across the seam.
for n in (65535, 65534, 65533, 131071):
    text = "x" * n + "日\r\nüy"
    put(text.encode())
    with open(path) as f:
        got = f.read()
        print(len(got), got == text.replace("\r\n", "\n"))
    with open(path) as f:
        print(f.read(n) == "x" * n, f.read(1), repr(f.readline()), f.read(1), f.read(10), repr(f.read()))
put(b"0123456789")
with open(path, "r+b") as f:
    print(f.read(2), f.tell(), f.write(b"X"), f.tell(), f.seek(1, 1), f.read(2), f.seek(-1, 2), f.read(), f.tell())
print(open(path, "rb").read())
with open(path) as f:
    print(f.tell(), f.readline(), f.tell(), f.seek(3), f.read(2), f.seek(0, 2), f.tell())
print(Path(path).read_text(encoding="ascii"), Path(path).write_text("ü", encoding="latin-1"), Path(path).read_bytes())
with open(path, "a") as f:
    print("more", file=f)
print(open(path, errors="replace").read() == "\ufffdmore\n")
os.remove(path)
with open(path, "w") as f: f.write("name,n\na,1\nb,2,3\n\nc\n")
with open(path) as f: print(next(f), [line.strip() for line in f], next(f, "end"))
with open(path, "rb") as f: print(next(f), next(f))
import csv
rows = csv.DictReader(open(path))
print(next(rows), list(rows), next(rows, "end"), rows.fieldnames)
print(list(csv.DictReader(["x", "", "y,z"], ["a"], restkey="more")))
os.remove(path)
