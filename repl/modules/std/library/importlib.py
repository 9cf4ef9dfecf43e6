"""importlib: imports by a name that is computed."""
from _kiln import import_module as _import_module
from _kiln import reload as _reload

__all__ = ["import_module", "reload"]


def reload(module):
    """Runs the module's file again; names that it no longer has keep their values."""
    return _reload(module)


def import_module(name, package=None):
    level = len(name) - len(name.lstrip("."))
    if level == 0:
        return _import_module(name)
    if not package:
        raise TypeError(f"the 'package' argument is required to perform a relative import for {name!r}")
    parts = package.split(".")
    if level > len(parts):
        raise ImportError("attempted relative import beyond top-level package")
    return _import_module(".".join(parts[:len(parts) - level + 1] + [name[level:]]))
