"""shutil: copies of files."""
import os as _os


def copyfile(src, dst):
    with open(src) as f, open(dst, "w") as g:
        g.write(f.read())
    return dst


def copy(src, dst):
    return copyfile(src, _os.path.join(dst, _os.path.basename(src)) if _os.path.isdir(dst) else dst)


def move(src, dst):
    _os.rename(src, dst)
    return dst


def rmtree(path, ignore_errors=False):
    for folder, _, files in _os.walk(path, topdown=False):
        for f in files:
            _os.remove(_os.path.join(folder, f))
        _os.rmdir(folder)


def which(cmd):
    for folder in _os.environ.get("PATH", "").split(":"):
        if _os.path.isfile(_os.path.join(folder, cmd)):
            return _os.path.join(folder, cmd)
    return None
