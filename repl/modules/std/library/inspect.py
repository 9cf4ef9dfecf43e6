"""inspect: what is known of functions and classes."""
import _kiln
from textwrap import dedent as _dedent


class _empty:
    # A class and no object, as in Python: it is compared by `is` and has a name of its own.
    pass


class Parameter:
    empty = _empty
    # Texts in place of Python's enum; _kiln.parameters() gives the same.
    POSITIONAL_ONLY = "POSITIONAL_ONLY"
    POSITIONAL_OR_KEYWORD = "POSITIONAL_OR_KEYWORD"
    VAR_POSITIONAL = "VAR_POSITIONAL"
    KEYWORD_ONLY = "KEYWORD_ONLY"
    VAR_KEYWORD = "VAR_KEYWORD"

    def __init__(self, name, kind, *, default=_empty, annotation=_empty):
        self.name = name
        self.kind = kind
        self.default = default
        self.annotation = annotation

    def __str__(self):
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(self.kind, "")
        out = stars + self.name
        if self.annotation is not _empty:
            out += f": {self.annotation}"
        if self.default is not _empty:
            # Python's style has blanks around `=` only behind an annotation.
            out += f" = {self.default!r}" if self.annotation is not _empty else f"={self.default!r}"
        return out

    def __repr__(self):
        return f'<Parameter "{self}">'


_BY_POSITION = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")


class BoundArguments:
    def __init__(self, signature, arguments):
        self.signature = signature
        self.arguments = arguments

    def apply_defaults(self):
        # In the order of the signature, which `arguments` need not have.
        filled = {}
        for name, p in self.signature.parameters.items():
            if name in self.arguments:
                filled[name] = self.arguments[name]
            elif p.default is not _empty:
                filled[name] = p.default
            elif p.kind == "VAR_POSITIONAL":
                filled[name] = ()
            elif p.kind == "VAR_KEYWORD":
                filled[name] = {}
        self.arguments = filled

    @property
    def args(self):
        out = []
        for name, p in self.signature.parameters.items():
            if p.kind == "VAR_POSITIONAL":
                out.extend(self.arguments.get(name, ()))
            elif p.kind in _BY_POSITION and name in self.arguments:
                out.append(self.arguments[name])
        return tuple(out)

    @property
    def kwargs(self):
        out = {}
        for name, p in self.signature.parameters.items():
            if p.kind == "VAR_KEYWORD":
                out.update(self.arguments.get(name, {}))
            elif p.kind == "KEYWORD_ONLY" and name in self.arguments:
                out[name] = self.arguments[name]
        return out


class Signature:
    empty = _empty

    def __init__(self, parameters=(), return_annotation=_empty):
        self.parameters = {p.name: p for p in parameters}
        self.return_annotation = return_annotation

    def bind(self, *args, **kwargs):
        return self._bind(args, kwargs, False)

    def bind_partial(self, *args, **kwargs):
        return self._bind(args, kwargs, True)

    def _bind(self, args, kwargs, partial):
        left, given, out = list(args), dict(kwargs), {}
        for name, p in self.parameters.items():
            if p.kind == "VAR_POSITIONAL":
                if left:
                    out[name] = tuple(left)
                left = []
            elif p.kind == "VAR_KEYWORD":
                if given:
                    out[name] = given
                given = {}
            elif p.kind in _BY_POSITION and left:
                # A name of a positional-only parameter is free to come again in **kwargs.
                if name in given and p.kind != "POSITIONAL_ONLY":
                    raise TypeError(f"multiple values for argument '{name}'")
                out[name] = left.pop(0)
            elif name in given and p.kind != "POSITIONAL_ONLY":
                out[name] = given.pop(name)
            elif p.default is _empty and not partial:
                raise TypeError(f"missing a required argument: '{name}'")
        if left:
            raise TypeError("too many positional arguments")
        if given:
            raise TypeError(f"got an unexpected keyword argument '{next(iter(given))}'")
        return BoundArguments(self, out)

    def replace(self, *, parameters=None, return_annotation=None):
        return Signature(self.parameters.values() if parameters is None else parameters,
                         self.return_annotation if return_annotation is None else return_annotation)

    def __str__(self):
        parts, star, before = [], False, None
        for p in self.parameters.values():
            if before == "POSITIONAL_ONLY" and p.kind != before:
                parts.append("/")
            before = p.kind
            if p.kind == "KEYWORD_ONLY" and not star:
                parts.append("*")
            star = star or p.kind in ("KEYWORD_ONLY", "VAR_POSITIONAL")
            parts.append(str(p))
        if before == "POSITIONAL_ONLY":
            parts.append("/")
        end = "" if self.return_annotation is _empty else f" -> {self.return_annotation}"
        return "(" + ", ".join(parts) + ")" + end

    def __repr__(self):
        return f"<Signature {self}>"


def _function(obj):
    while True:
        # functools.wraps leaves __wrapped__; a kernel and an autotuner around it have their function as `fn`.
        inner = getattr(obj, "__wrapped__", None) or getattr(obj, "fn", None)
        if inner is None:
            return obj
        obj = inner


def signature(obj, **kwargs):
    skip = False
    obj = _function(obj)
    if isinstance(obj, type):
        # The first parameter is the instance, which a caller does not give.
        obj, skip = obj.__init__, True
    elif ismethod(obj):
        obj, skip = obj.__func__, True
    elif not isfunction(obj) and hasattr(type(obj), "__call__"):
        obj, skip = type(obj).__call__, True
    parameters = [Parameter(name, kind, default=default[0] if default else _empty,
                            annotation=_empty if annotation is None else annotation)
                  for name, kind, default, annotation in _kiln.parameters(obj)]
    returns = getattr(obj, "__annotations__", {}).get("return", _empty)
    return Signature(parameters[1:] if skip else parameters, returns)


class FullArgSpec:
    def __init__(self, args, varargs, varkw, defaults, kwonlyargs):
        self.args, self.varargs, self.varkw = args, varargs, varkw
        self.defaults, self.kwonlyargs = defaults, kwonlyargs


def getfullargspec(obj):
    ps = _kiln.parameters(_function(obj))
    named = lambda kind: [p[0] for p in ps if p[1] == kind]
    first = lambda names: names[0] if names else None
    defaults = tuple(p[2][0] for p in ps if p[2] and p[1] == "POSITIONAL_OR_KEYWORD")
    return FullArgSpec(named("POSITIONAL_OR_KEYWORD"), first(named("VAR_POSITIONAL")), first(named("VAR_KEYWORD")),
                       defaults or None, named("KEYWORD_ONLY"))


def isfunction(obj):
    return type(obj).__name__ == "function"


def ismethod(obj):
    return type(obj).__name__ == "method"


def isbuiltin(obj):
    return type(obj).__name__ == "builtin_function_or_method"


def isclass(obj):
    return isinstance(obj, type)


def ismodule(obj):
    return type(obj).__name__ == "module"


def isgenerator(obj):
    return repr(obj).startswith("<generator object ")


def isroutine(obj):
    return isfunction(obj) or ismethod(obj) or isbuiltin(obj)


def isgeneratorfunction(obj):
    return isfunction(obj) and _kiln.yields(obj)


def iscoroutinefunction(obj):
    return False  # 'async' is not in the language


def getdoc(obj):
    doc = getattr(obj, "__doc__", None)
    if doc is None:
        return None
    # Alone, since the first line of a docstring has no indentation and the others have their text's.
    first, _, rest = doc.partition("\n")
    return (first.strip() + ("\n" + _dedent(rest) if rest else "")).strip()


def getsource(obj):
    return _kiln.source(_function(obj))[0]


def getsourcelines(obj):
    text, _, line = _kiln.source(_function(obj))
    return text.splitlines(True), line


def getfile(obj):
    return obj.__file__ if ismodule(obj) else _kiln.source(_function(obj))[1]


getsourcefile = getfile


def getmembers(obj, predicate=None):
    out = []
    for name in dir(obj):
        # The default covers properties that fail: a list of members must not.
        value = getattr(obj, name, None)
        if predicate is None or predicate(value):
            out.append((name, value))
    return out


def getmodule(obj):
    # None is what Python gives where it does not know the module.
    return None


def unwrap(obj):
    return _function(obj)


def cleandoc(doc):
    return _dedent(doc).strip()


def currentframe():
    raise NotImplementedError("frames are not supported: errors show the calls that led to them")


stack = currentframe
