"""os.walk, which is a generator."""
import os as _os


def walk(top, topdown=True, onerror=None, followlinks=False):
    top = _os.fspath(top)
    if not _os.path.isdir(top):
        return
    folders, files = [], []
    for name in _os.listdir(top):
        (folders if _os.path.isdir(_os.path.join(top, name)) else files).append(name)
    if topdown:
        yield top, folders, files
    for name in folders:
        yield from walk(_os.path.join(top, name), topdown)
    if not topdown:
        yield top, folders, files
