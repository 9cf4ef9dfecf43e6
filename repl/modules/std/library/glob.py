"""glob: the files that a pattern names."""
import os as _os


def fnmatch(name, pattern):
    """'*' any text, '?' one character, '[ab]' one of them."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(fnmatch(name[i:], pattern[1:]) for i in range(len(name) + 1))
    if not name:
        return False
    if pattern[0] == "[" and "]" in pattern[2:]:
        end = pattern.index("]", 2)
        chosen = pattern[1:end]
        unwanted = chosen[0] in "!^"
        return (name[0] in chosen) != unwanted and fnmatch(name[1:], pattern[end + 1:])
    return pattern[0] in (name[0], "?") and fnmatch(name[1:], pattern[1:])


def glob(pathname, *, recursive=False, root_dir=None):
    pathname = _os.fspath(pathname)
    if root_dir is not None:
        root = _os.path.join(_os.fspath(root_dir), "")
        return [found.removeprefix(root) for found in glob(root + pathname, recursive=recursive)]
    if "**" in pathname and recursive:
        start, _, rest = pathname.partition("**")
        found = []
        for folder, _, files in _os.walk(start or "."):
            found += [_os.path.join(folder, f) for f in files if fnmatch(f, rest.lstrip("/") or "*")]
        return found
    return _os.glob(pathname)


def iglob(pathname, *, recursive=False, root_dir=None):
    yield from glob(pathname, recursive=recursive, root_dir=root_dir)
