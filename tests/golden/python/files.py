from pathlib import Path
import os, sys
os.makedirs("/tmp/kiln_python_corpus", exist_ok=True)
p = Path("/tmp/kiln_python_corpus/zz_out.txt")
p.write_text("hello\nworld\n")
print(p.name, p.stem, p.suffix, p.parent, p.exists(), p.read_text(), p / "x", Path("a") / "b" / "c.py", p.is_file(), str(p))
with open(p) as f: print(f.read())
with open("/tmp/kiln_python_corpus/zz_out.txt", "a") as f: f.write("more\n"); print("x", file=f)
with open("/tmp/kiln_python_corpus/zz_out.txt") as f:
    for line in f: print(line.rstrip())
print(open(p).readlines())
os.remove(p); print(p.exists())
print(Path(__file__).name, Path(__file__).parent.resolve().name)
try: open("/nonexist/zz")
except FileNotFoundError as e: print("FNF")
os.makedirs("/tmp/kiln_python_corpus/dd/ee", exist_ok=True); print(os.listdir("/tmp/kiln_python_corpus/dd"), sorted(x.name for x in Path("/tmp/kiln_python_corpus/dd").iterdir()))
# The home folder is the script's.
was = os.environ.get("HOME")
for home in ("/kiln-home/", "/"):
    os.environ["HOME"] = home
    print(os.path.expanduser("~"), os.path.expanduser("~/x"), os.path.expanduser("x~"), os.path.expanduser("/~/a"))
if was is None: del os.environ["HOME"]
else: os.environ["HOME"] = was
