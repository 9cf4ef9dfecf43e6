"""warnings: each is written once to stderr, unless it is filtered."""
import sys as _sys

_seen = set()
_ignored = []
_errors = []


def warn(message, category=None, stacklevel=1, source=None):
    if isinstance(message, Warning):
        category = type(message)
    category = category or UserWarning
    # An error comes before all else: "error" wins over "ignore" here.
    if any(issubclass(category, c) for c in _errors):
        raise message if isinstance(message, Warning) else category(message)
    text = f"{category.__name__}: {message}"
    # Once by its text, as the place of a warning is not known.
    if text in _seen or any(issubclass(category, c) for c in _ignored):
        return
    _seen.add(text)
    _sys.stderr.write(text + "\n")


def filterwarnings(action, message="", category=Warning, module="", lineno=0, append=False):
    if action == "ignore" and not message:
        _ignored.append(category)
    elif action == "error":
        _errors.append(category)


def simplefilter(action, category=Warning, lineno=0, append=False):
    filterwarnings(action, "", category)


def resetwarnings():
    _ignored.clear()
    _errors.clear()


class catch_warnings:
    def __init__(self, *, record=False, action=None, category=Warning, **kwargs):
        self._action, self._category = action, category
        self._record = record

    def __enter__(self):
        self._saved = list(_ignored), list(_errors)
        if self._action:
            simplefilter(self._action, self._category)
        return [] if self._record else None

    def __exit__(self, *exc):
        _ignored[:], _errors[:] = self._saved


def deprecated(message, **kwargs):
    return lambda obj: obj
