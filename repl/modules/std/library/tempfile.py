"""tempfile: files and folders with names that nothing else has, which only this user reads."""
import os as _os
import shutil as _shutil
import time as _time
from _kiln import create_private as _create_private

__all__ = ["NamedTemporaryFile", "TemporaryDirectory", "gettempdir", "mkdtemp", "tempdir", "template"]

tempdir = None
template = "tmp"
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"
_made = 0


def gettempdir():
    if tempdir is not None:
        return tempdir
    for name in ("TMPDIR", "TEMP", "TMP"):
        folder = _os.environ.get(name)
        if folder and _os.path.isdir(folder):
            return _os.path.abspath(folder)
    return "/tmp"


def _names(suffix, prefix, folder):
    # Names need not be secret: whatever stands there already is refused, and another one is tried.
    global _made
    folder = _os.path.abspath(gettempdir() if folder is None else _os.fspath(folder))
    for _ in range(10000):
        _made += 1
        number, letters = _time.time_ns() * 1000003 + _os.getpid() * 7919 + _made, ""
        for _ in range(8):
            number, digit = divmod(number ^ (number >> 7), len(_LETTERS))
            letters += _LETTERS[digit]
        yield _os.path.join(folder, (template if prefix is None else prefix) + letters + (suffix or ""))
    raise FileExistsError("No usable temporary file name found")


def mkdtemp(suffix=None, prefix=None, dir=None):
    for name in _names(suffix, prefix, dir):
        try:
            _os.mkdir(name, 0o700)
            return name
        except FileExistsError:
            pass


class TemporaryDirectory:
    def __init__(self, suffix=None, prefix=None, dir=None, ignore_cleanup_errors=False):
        self._ignore = ignore_cleanup_errors
        self.name = mkdtemp(suffix, prefix, dir)

    def __repr__(self):
        return f"<TemporaryDirectory {self.name!r}>"

    def __enter__(self):
        return self.name

    def __exit__(self, *exception):
        self.cleanup()

    def cleanup(self):
        if _os.path.isdir(self.name):
            _shutil.rmtree(self.name, ignore_errors=self._ignore)


class _TemporaryFile:
    def __init__(self, file, name, delete):
        self.file, self.name, self.delete = file, name, delete

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __iter__(self):
        return iter(self.file)

    def close(self):
        if self.file.closed:
            return
        self.file.close()
        if self.delete and _os.path.exists(self.name):
            _os.remove(self.name)


def NamedTemporaryFile(mode="w+b", buffering=-1, encoding=None, newline=None, suffix=None, prefix=None, dir=None,
                       delete=True, *, errors=None):
    if "x" in mode:
        raise ValueError(f"the file is made before it is opened: its mode has no x, got {mode!r}")
    for name in _names(suffix, prefix, dir):
        try:
            _create_private(name)
        except FileExistsError:
            continue
        return _TemporaryFile(open(name, mode, buffering, encoding, errors, newline), name, delete)
