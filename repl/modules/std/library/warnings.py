"""warnings: each is written once to stderr, unless it is filtered."""
import sys as _sys

_seen = set()
_filters = []  # (action, pattern of the text or None, category); the first that fits counts
_records = []  # the lists of catch_warnings(record=True), the innermost last

_ACTIONS = ("default", "error", "ignore", "always", "module", "once")


class WarningMessage:
    # The place of a warning is not known.
    filename, lineno, file, line, source = "", 0, None, None, None

    def __init__(self, message, category):
        self.message, self.category = message, category

    def __str__(self):
        return f"{self.category.__name__}: {self.message}"


def warn(message, category=None, stacklevel=1, source=None):
    if isinstance(message, Warning):
        category = type(message)
    else:
        category = category or UserWarning
        message = category(message)
    action = _action(str(message), category)
    if action == "error":
        raise message
    # Once by its text, as the place of a warning is not known.
    text = f"{category.__name__}: {message}"
    if action == "ignore" or (action != "always" and text in _seen):
        return
    _seen.add(text)
    if _records:
        _records[-1].append(WarningMessage(message, category))
    else:
        _sys.stderr.write(text + "\n")


def _action(text, category):
    for action, pattern, known in _filters:
        if issubclass(category, known) and (pattern is None or pattern.match(text)):
            return action
    return "default"


def filterwarnings(action, message="", category=Warning, module="", lineno=0, append=False):
    if action not in _ACTIONS:
        raise AssertionError(f"invalid action: {action!r}")
    pattern = None
    if message:
        import re
        pattern = re.compile(message, re.IGNORECASE)
    _filters.insert(len(_filters) if append else 0, (action, pattern, category))
    _seen.clear()  # as in Python, where other filters begin anew


def simplefilter(action, category=Warning, lineno=0, append=False):
    filterwarnings(action, "", category, append=append)


def resetwarnings():
    _filters.clear()
    _seen.clear()


class catch_warnings:
    def __init__(self, *, record=False, action=None, category=Warning, **kwargs):
        self._action, self._category = action, category
        self._record = record

    def __enter__(self):
        self._saved = list(_filters)
        _seen.clear()
        if self._action:
            simplefilter(self._action, self._category)
        if not self._record:
            return None
        _records.append([])
        return _records[-1]

    def __exit__(self, *exc):
        _filters[:] = self._saved
        _seen.clear()
        if self._record:
            _records.pop()


def deprecated(message, **kwargs):
    return lambda obj: obj
