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
Path(folder, "moved").touch()
print(shutil.move(folder + "/moved", folder + "/deep") == folder + "/deep/moved", os.listdir(folder + "/deep").sort(), shutil.move(folder + "/deep/moved", folder + "/m") == folder + "/m", os.remove(folder + "/m"))
print(glob.glob("*.bin", root_dir=folder + "/deep"), error(lambda: Path(path).touch(exist_ok=False)), Path(path).touch(), Path(path).write_bytes(b"ab"))
os.symlink(path, folder + "/itself")
print(error(lambda: shutil.copy(path, folder + "/itself")), os.path.getsize(path), os.path.samefile(path, folder + "/itself"), os.remove(folder + "/itself"))
# What links lead to stays, and is not walked through.
os.makedirs(path + ".kept/inner")
Path(path + ".kept/precious").touch()
os.symlink(path + ".kept", folder + "/link")
os.symlink("..", folder + "/deep/up")
os.symlink("nowhere", folder + "/deep/dangling")
print(os.path.islink(folder + "/link"), os.path.islink(folder), Path(folder, "link").is_symlink(), os.readlink(folder + "/deep/up"), error(lambda: os.readlink(folder)))
for top, folders, files in os.walk(folder):
    print(top.removeprefix(path), sorted(folders), len(files))
print(sum(1 for _ in os.walk(folder, followlinks=True)) > 3, list(os.walk(folder + "/nothing", onerror=lambda e: print(type(e).__name__))))
print(error(lambda: shutil.rmtree(folder + "/link")) in ("OSError", "NotADirectoryError"))
shutil.rmtree(folder)
print(sorted(os.listdir(path + ".kept")))
shutil.rmtree(path + ".kept")
print(os.path.exists(folder), error(lambda: shutil.rmtree(folder)), shutil.rmtree(folder, ignore_errors=True))
os.remove(path)
out = io.StringIO()
csv.writer(out, delimiter=";", lineterminator="\n").writerows([["a;b", "c,d", 'e"f', 1, None], ["x\ny", 2.5, "", True, "é"]])
print(repr(out.getvalue()), list(csv.reader(io.StringIO(out.getvalue()), delimiter=";")))
print(list(csv.DictReader(io.StringIO("n,us\n1,2.5\n"))), error(lambda: csv.reader([], nonsense=1)))
