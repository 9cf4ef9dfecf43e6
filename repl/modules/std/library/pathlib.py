"""pathlib: paths as objects."""
import glob as _glob
import os as _os


class PurePath:
    def __init__(self, *parts):
        # A later part that begins at the root replaces all before it.
        text = _os.path.join(*parts) if parts else ""
        absolute = text.startswith("/")
        # '..' stays: behind a link it leads elsewhere than one step up.
        names = [p for p in text.split("/") if p and p != "."]
        self._parts = (["/"] if absolute else []) + names

    def __fspath__(self):
        return str(self)

    def __str__(self):
        if self._parts[:1] == ["/"]:
            return "/" + "/".join(self._parts[1:])
        return "/".join(self._parts) or "."

    def __repr__(self):
        return f"PosixPath({str(self)!r})"

    def __truediv__(self, other):
        return type(self)(str(self), other)

    def __rtruediv__(self, other):
        return type(self)(other, str(self))

    def __eq__(self, other):
        return isinstance(other, PurePath) and str(self) == str(other)

    def __lt__(self, other):
        # By names: as texts 'a-b' would come before 'a/b'.
        return self._parts < other._parts

    def __hash__(self):
        return hash(str(self))

    @property
    def parts(self):
        return tuple(self._parts)

    @property
    def name(self):
        return self._parts[-1] if self._parts and self._parts[-1] != "/" else ""

    @property
    def suffix(self):
        return _os.path.splitext(self.name)[1]

    @property
    def suffixes(self):
        # The dot that begins a hidden file's name is no suffix.
        return ["." + s for s in self.name.lstrip(".").split(".")[1:]]

    @property
    def stem(self):
        return _os.path.splitext(self.name)[0]

    @property
    def parent(self):
        if self._parts in ([], ["/"]):
            return self
        # Filled by hand: the names need no second parse.
        made = type(self)()
        made._parts = self._parts[:-1]
        return made

    @property
    def parents(self):
        out, path = [], self
        while path.parent != path:
            path = path.parent
            out.append(path)
        return out

    def is_absolute(self):
        return self._parts[:1] == ["/"]

    def as_posix(self):
        return str(self)

    def joinpath(self, *others):
        return type(self)(str(self), *others)

    def with_name(self, name):
        return self.parent / name

    def with_suffix(self, suffix):
        return self.parent / (self.stem + suffix)

    def with_stem(self, stem):
        return self.parent / (stem + self.suffix)

    def relative_to(self, other):
        base = type(self)(other)._parts
        if self._parts[:len(base)] != base:
            raise ValueError(f"{str(self)!r} is not in the subpath of {str(other)!r}")
        made = type(self)()
        made._parts = self._parts[len(base):]
        return made

    def is_relative_to(self, other):
        base = type(self)(other)._parts
        return self._parts[:len(base)] == base

    def match(self, pattern):
        return _glob.fnmatch(self.name, pattern)


class Path(PurePath):
    @classmethod
    def cwd(cls):
        return cls(_os.getcwd())

    @classmethod
    def home(cls):
        return cls(_os.path.expanduser("~"))

    def exists(self):
        return _os.path.exists(str(self))

    def is_file(self):
        return _os.path.isfile(str(self))

    def is_dir(self):
        return _os.path.isdir(str(self))

    def is_symlink(self):
        return _os.path.islink(str(self))

    def resolve(self, strict=False):
        return Path(_os.path.realpath(str(self)))

    def absolute(self):
        return Path(_os.path.abspath(str(self)))

    def expanduser(self):
        return Path(_os.path.expanduser(str(self)))

    def open(self, mode="r", *args, **kwargs):
        return open(str(self), mode, *args, **kwargs)

    def read_text(self, encoding=None, errors=None):
        with open(str(self), encoding=encoding, errors=errors) as f:
            return f.read()

    def write_text(self, data, encoding=None, errors=None, newline=None):
        with open(str(self), "w", encoding=encoding, errors=errors, newline=newline) as f:
            return f.write(data)

    def read_bytes(self):
        with open(str(self), "rb") as f:
            return f.read()

    def write_bytes(self, data):
        with open(str(self), "wb") as f:
            return f.write(data)

    def mkdir(self, mode=511, parents=False, exist_ok=False):
        if parents:
            _os.makedirs(str(self), mode, exist_ok=exist_ok)
        elif not (exist_ok and self.is_dir()):
            _os.mkdir(str(self), mode)

    def iterdir(self):
        for name in _os.listdir(str(self)):
            yield self / name

    def glob(self, pattern):
        if "**" in pattern:
            return self.rglob(pattern.replace("**/", ""))
        return [Path(p) for p in _glob.glob(str(self / pattern))]

    def rglob(self, pattern):
        found = []
        for folder, _, files in _os.walk(str(self)):
            found += [Path(folder, f) for f in files if _glob.fnmatch(f, pattern)]
        return found

    def unlink(self, missing_ok=False):
        if not missing_ok or self.exists():
            _os.remove(str(self))

    def rmdir(self):
        _os.rmdir(str(self))

    def rename(self, target):
        _os.rename(str(self), str(target))
        return Path(target)

    replace = rename

    def touch(self, mode=438, exist_ok=True):
        with open(str(self), "a" if exist_ok else "x"):
            pass

    def stat(self):
        return _os.stat(str(self))


PosixPath, PurePosixPath = Path, PurePath
