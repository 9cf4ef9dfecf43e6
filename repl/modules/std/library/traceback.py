"""traceback: an exception as text. Kiln's own errors show the calls that led to them."""
import sys as _sys


def format_exception_only(kind, value=None):
    value = kind if value is None else value
    text = str(value)
    return [type(value).__name__ + (": " + text if text else "") + "\n"]


def format_exception(kind, value=None, tb=None, **kwargs):
    return format_exception_only(kind, value)


def format_exc(limit=None, chain=True):
    value = _sys.exc_info()[1]
    return "NoneType: None\n" if value is None else "".join(format_exception(value))


def print_exc(limit=None, file=None, chain=True):
    (file or _sys.stderr).write(format_exc())


def print_exception(kind, value=None, tb=None, **kwargs):
    _sys.stderr.write("".join(format_exception(kind, value)))


def format_tb(tb, limit=None):
    return []


def print_stack(f=None, limit=None, file=None):
    pass


extract_tb = format_stack = extract_stack = lambda *args, **kwargs: []
