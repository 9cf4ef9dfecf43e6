"""shutil: copies of files."""
import os as _os


def copyfile(src, dst):
    with open(src, "rb") as f, open(dst, "wb") as g:
        while piece := f.read(1 << 20):
            g.write(piece)
    return dst


def copy(src, dst):
    return copyfile(src, _os.path.join(dst, _os.path.basename(src)) if _os.path.isdir(dst) else dst)


def move(src, dst):
    _os.rename(src, dst)
    return dst


def rmtree(path, ignore_errors=False):
    def attempt(remove, name):
        try:
            remove(name)
        except OSError:
            if not ignore_errors:
                raise

    if not _os.path.isdir(path):
        return attempt(_os.rmdir, path)
    for folder, _, files in _os.walk(path, topdown=False):
        for f in files:
            attempt(_os.remove, _os.path.join(folder, f))
        attempt(_os.rmdir, folder)


def which(cmd):
    for folder in _os.environ.get("PATH", "").split(":"):
        if _os.path.isfile(_os.path.join(folder, cmd)):
            return _os.path.join(folder, cmd)
    return None
