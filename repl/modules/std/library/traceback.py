"""traceback: an exception as text, with the calls that led to it."""
import sys as _sys


def format_exception_only(kind, value=None):
    value = kind if value is None else value
    text = str(value)
    return [type(value).__name__ + (": " + text if text else "") + "\n"]


def _frames(value):
    return [FrameSummary(*place) for place in _sys._places(value)] if isinstance(value, BaseException) else []


class FrameSummary:
    """A place in a script: `filename`, `lineno`, `name` of the function, `line`."""

    def __init__(self, filename, lineno, name, line=None):
        self.filename, self.lineno, self.name, self.line = filename, lineno, name, (line or "").strip()

    def __repr__(self):
        return f"<FrameSummary file {self.filename}, line {self.lineno} in {self.name}>"


def format_list(frames):
    return [f'  File "{f.filename}", line {f.lineno}, in {f.name}\n' + (f"    {f.line}\n" if f.line else "")
            for f in frames]


def format_exception(kind, value=None, tb=None, limit=None, chain=True):
    value = kind if value is None else value
    out, seen = [], []
    while value is not None:
        seen.append(value)
        frames = format_list(_frames(value))
        out = (["Traceback (most recent call last):\n"] + frames if frames else []) \
            + format_exception_only(value) + out
        cause = getattr(value, "__cause__", None)
        value = cause or getattr(value, "__context__", None) if chain else None
        suppressed = cause is None and getattr(seen[-1], "__suppress_context__", False)
        if value is None or suppressed or any(value is s for s in seen):
            break
        out.insert(0, "\nThe above exception was the direct cause of the following exception:\n\n" if cause else
                   "\nDuring handling of the above exception, another exception occurred:\n\n")
    return out


def format_exc(limit=None, chain=True):
    value = _sys.exc_info()[1]
    return "NoneType: None\n" if value is None else "".join(format_exception(value))


def print_exc(limit=None, file=None, chain=True):
    (file or _sys.stderr).write(format_exc())


def print_exception(kind, value=None, tb=None, limit=None, file=None, chain=True):
    (file or _sys.stderr).write("".join(format_exception(kind, value, tb, limit, chain)))


def format_tb(tb, limit=None):
    return []


def print_tb(tb, limit=None, file=None):
    pass


def print_stack(f=None, limit=None, file=None):
    pass


extract_tb = format_stack = extract_stack = lambda *args, **kwargs: []
