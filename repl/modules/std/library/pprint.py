"""pprint: values with line breaks."""


def pformat(obj, indent=1, width=80, depth=None, **kwargs):
    return _format(obj, 0, width)


def _format(obj, column, width):
    text = repr(obj)
    if column + len(text) <= width or not isinstance(obj, (list, tuple, dict, set)) or not obj:
        return text
    pad = "\n" + " " * (column + 1)
    if isinstance(obj, dict):
        keys = sorted(obj, key=lambda k: (str(type(k)), k)) if all(type(k) is str for k in obj) else list(obj)
        rows = [f"{k!r}: " + _format(obj[k], column + 1 + len(repr(k)) + 2, width) for k in keys]
        return "{" + ("," + pad).join(rows) + "}"
    rows = [_format(v, column + 1, width) for v in obj]
    opening, closing = {"list": "[]", "tuple": "()"}.get(type(obj).__name__, "{}")
    return opening + ("," + pad).join(rows) + closing


def pprint(obj, stream=None, indent=1, width=80, depth=None, **kwargs):
    print(pformat(obj, indent, width, depth), file=stream)


pp = pprint
