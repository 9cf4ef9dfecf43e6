"""json: values as texts. The functions are Kiln's own; encoders of one's own derive from JSONEncoder."""
from _json import dump, dumps, load, loads, JSONDecodeError

__all__ = ["dump", "dumps", "load", "loads", "JSONEncoder", "JSONDecodeError"]


class JSONEncoder:
    """Has default(), which makes a value of JSON of one that is none."""

    def __init__(self, *, skipkeys=False, ensure_ascii=True, allow_nan=True, sort_keys=False, indent=None,
                 separators=None, default=None):
        self.ensure_ascii, self.sort_keys, self.indent, self.separators = ensure_ascii, sort_keys, indent, separators
        self.skipkeys, self.allow_nan = skipkeys, allow_nan
        if default is not None:
            self.default = default

    def default(self, o):
        raise TypeError(f"Object of type {type(o).__name__} is not JSON serializable")

    def encode(self, o):
        return dumps(o, indent=self.indent, sort_keys=self.sort_keys, default=self.default,
                     ensure_ascii=self.ensure_ascii, separators=self.separators, skipkeys=self.skipkeys,
                     allow_nan=self.allow_nan)

    def iterencode(self, o):
        yield self.encode(o)
