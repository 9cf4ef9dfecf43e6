"""shutil: copies of files."""
import os as _os


class Error(OSError):
    pass


class SameFileError(Error):
    """A file cannot be copied onto itself: it would be emptied first."""


def copyfile(src, dst):
    if _os.path.exists(dst) and _os.path.samefile(src, dst):
        raise SameFileError(f"{src!r} and {dst!r} are the same file")
    with open(src, "rb") as f, open(dst, "wb") as g:
        while piece := f.read(1 << 20):
            g.write(piece)
    return dst


def _within(src, dst):
    return _os.path.join(dst, _os.path.basename(src)) if _os.path.isdir(dst) else dst


def copy(src, dst):
    return copyfile(src, _within(src, dst))


def move(src, dst):
    dst = _within(src, dst)
    _os.rename(src, dst)
    return dst


def rmtree(path, ignore_errors=False):
    def attempt(remove, name):
        try:
            remove(name)
        except OSError:
            if not ignore_errors:
                raise

    if not _os.path.isdir(path) or _os.path.islink(path):  # which rmdir() refuses
        return attempt(_os.rmdir, path)
    for folder, folders, files in _os.walk(path, topdown=False):
        # What a link leads to is not in the folder.
        for f in files + [name for name in folders if _os.path.islink(_os.path.join(folder, name))]:
            attempt(_os.remove, _os.path.join(folder, f))
        attempt(_os.rmdir, folder)


def which(cmd):
    for folder in _os.environ.get("PATH", "").split(":"):
        if _os.path.isfile(_os.path.join(folder, cmd)):
            return _os.path.join(folder, cmd)
    return None
