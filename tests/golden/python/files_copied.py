# Copies, names and tables.
import os
from pathlib import Path

path = f"/tmp/kiln_files_copied_{os.getpid()}.txt"


def error(f):
    try:
        return f()
    except Exception as e:
        return type(e).__name__


def put(data):
    with open(path, "wb") as f:
        f.write(data)


import csv
import glob
import io
import shutil

folder = path + ".d"
os.makedirs(folder + "/deep")
put(bytes(range(256)) + b"\r\n")
print(shutil.copy(path, folder) == os.path.join(folder, os.path.basename(path)), Path(folder, os.path.basename(path)).read_bytes() == Path(path).read_bytes())
print(shutil.copyfile(path, folder + "/deep/two.bin") == folder + "/deep/two.bin", os.path.getsize(folder + "/deep/two.bin"))
print(glob.glob("*.bin", root_dir=folder + "/deep"), error(lambda: Path(path).touch(exist_ok=False)), Path(path).touch(), Path(path).write_bytes(b"ab"))
shutil.rmtree(folder)
print(os.path.exists(folder), error(lambda: shutil.rmtree(folder)), shutil.rmtree(folder, ignore_errors=True))
os.remove(path)
out = io.StringIO()
csv.writer(out, delimiter=";", lineterminator="\n").writerows([["a;b", "c,d", 'e"f', 1, None], ["x\ny", 2.5, "", True, "é"]])
print(repr(out.getvalue()), list(csv.reader(io.StringIO(out.getvalue()), delimiter=";")))
print(list(csv.DictReader(io.StringIO("n,us\n1,2.5\n"))), error(lambda: csv.reader([], nonsense=1)))
