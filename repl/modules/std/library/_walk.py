"""os.walk, which is a generator."""
import os as _os


def walk(top, topdown=True, onerror=None, followlinks=False):
    top = _os.fspath(top)
    try:
        names = _os.listdir(top)
    except OSError as e:
        if onerror is not None:
            onerror(e)
        return
    folders, files = [], []
    for name in names:
        (folders if _os.path.isdir(_os.path.join(top, name)) else files).append(name)
    if topdown:
        yield top, folders, files
    for name in folders:
        folder = _os.path.join(top, name)
        if followlinks or not _os.path.islink(folder):
            yield from walk(folder, topdown, onerror, followlinks)
    if not topdown:
        yield top, folders, files
