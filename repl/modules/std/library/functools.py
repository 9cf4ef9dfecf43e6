"""functools: what takes and gives functions."""

WRAPPER_ASSIGNMENTS = ("__module__", "__name__", "__qualname__", "__doc__")
WRAPPER_UPDATES = ("__dict__",)


def update_wrapper(wrapper, wrapped, assigned=WRAPPER_ASSIGNMENTS, updated=WRAPPER_UPDATES):
    for name in assigned:
        if hasattr(wrapped, name):
            setattr(wrapper, name, getattr(wrapped, name))
    for key, value in getattr(wrapped, "__dict__", {}).items():
        setattr(wrapper, key, value)
    wrapper.__wrapped__ = wrapped
    return wrapper


def wraps(wrapped, assigned=WRAPPER_ASSIGNMENTS, updated=WRAPPER_UPDATES):
    return lambda wrapper: update_wrapper(wrapper, wrapped, assigned, updated)


class partial:
    def __init__(self, func, *args, **keywords):
        if not callable(func):
            raise TypeError("the first argument must be callable")
        if isinstance(func, partial):
            # As Python: partial of a partial is one, so that a call goes through a single step.
            args = func.args + args
            keywords = {**func.keywords, **keywords}
            func = func.func
        self.func = func
        self.args = args
        self.keywords = keywords

    def __call__(self, *args, **keywords):
        return self.func(*self.args, *args, **{**self.keywords, **keywords})

    def __repr__(self):
        parts = [repr(self.func)] + [repr(a) for a in self.args]
        parts += [f"{k}={v!r}" for k, v in self.keywords.items()]
        return "functools.partial(" + ", ".join(parts) + ")"


class partialmethod:
    def __init__(self, func, *args, **keywords):
        self.func = func
        self.args = args
        self.keywords = keywords

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return partial(self.func, instance, *self.args, **self.keywords)


_missing = object()


def reduce(function, iterable, initial=_missing):
    # A mark of its own, since None may be an initial value.
    total = initial
    for item in iterable:
        total = item if total is _missing else function(total, item)
    if total is _missing:
        raise TypeError("reduce() of empty iterable with no initial value")
    return total


class CacheInfo(tuple):
    hits = property(lambda self: self[0])
    misses = property(lambda self: self[1])
    maxsize = property(lambda self: self[2])
    currsize = property(lambda self: self[3])

    def __repr__(self):
        return f"CacheInfo(hits={self[0]}, misses={self[1]}, maxsize={self[2]}, currsize={self[3]})"


def lru_cache(maxsize=128, typed=False):
    # @lru_cache without brackets: what it gets is the function.
    if callable(maxsize):
        return _cached(maxsize, 128, typed)
    return lambda function: _cached(function, maxsize, typed)


def cache(function):
    return _cached(function, None, False)


def _cached(function, maxsize, typed):
    values = {}
    hits = misses = 0

    def cached(*args, **kwargs):
        nonlocal hits, misses
        key = args
        if kwargs:
            # Python too takes keywords in the order of the call: f(a=1, b=2) and f(b=2, a=1) are two entries. No
            # argument is _missing, so none looks like what follows it.
            key += (_missing,) + tuple(kwargs.items())
        if typed:
            key += (_missing,) + tuple(type(a) for a in args) + tuple(type(a) for a in kwargs.values())
        found = values.get(key, _missing)
        if found is not _missing:
            hits += 1
            # A dict keeps the order in which keys came, so the first one is the oldest.
            if maxsize is not None:  # it becomes the latest
                del values[key]
                values[key] = found
            return found
        misses += 1
        found = function(*args, **kwargs)
        if maxsize is None or maxsize > 0:
            values[key] = found
            if maxsize is not None and len(values) > maxsize:
                del values[next(iter(values))]
        return found

    def cache_info():
        return CacheInfo((hits, misses, maxsize, len(values)))

    def cache_clear():
        nonlocal hits, misses
        values.clear()
        hits = misses = 0

    update_wrapper(cached, function)
    cached.cache_info = cache_info
    cached.cache_clear = cache_clear
    cached.cache_parameters = lambda: {"maxsize": maxsize, "typed": typed}
    return cached


class cached_property:
    def __init__(self, func):
        self.func = func
        self.name = None

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = self.func(instance)
        # Into the fields, where the next look-up finds it before this descriptor.
        instance.__dict__[self.name or self.func.__name__] = value
        return value


def cmp_to_key(compare):
    class K:
        def __init__(self, obj):
            self.obj = obj

        def __lt__(self, other):
            return compare(self.obj, other.obj) < 0

        def __gt__(self, other):
            return compare(self.obj, other.obj) > 0

        def __le__(self, other):
            return compare(self.obj, other.obj) <= 0

        def __ge__(self, other):
            return compare(self.obj, other.obj) >= 0

        def __eq__(self, other):
            return compare(self.obj, other.obj) == 0

    return K


def total_ordering(cls):
    has = [name for name in ("__lt__", "__le__", "__gt__", "__ge__") if name in cls.__dict__]
    if not has:
        raise ValueError("must define at least one ordering operation: < > <= >=")
    if "__lt__" in has:
        others = {
            # Each by the given one and ==, as in Python.
            "__gt__": lambda a, b: not (a < b) and a != b,
            "__le__": lambda a, b: a < b or a == b,
            "__ge__": lambda a, b: not a < b,
        }
    elif "__le__" in has:
        others = {
            "__lt__": lambda a, b: a <= b and a != b,
            "__ge__": lambda a, b: not a <= b or a == b,
            "__gt__": lambda a, b: not a <= b,
        }
    elif "__gt__" in has:
        others = {
            "__lt__": lambda a, b: not (a > b) and a != b,
            "__ge__": lambda a, b: a > b or a == b,
            "__le__": lambda a, b: not a > b,
        }
    else:
        others = {
            "__gt__": lambda a, b: a >= b and a != b,
            "__le__": lambda a, b: not a >= b or a == b,
            "__lt__": lambda a, b: not a >= b,
        }
    for name, method in others.items():
        if name not in has:
            setattr(cls, name, method)
    return cls


def singledispatch(function):
    registry = {object: function}

    def chosen(cls, is_a):
        for base in cls.__mro__[:-1]:  # the last is object
            if base in registry:
                return registry[base]
        # Abstract classes say themselves what is one of theirs.
        best = object
        for known in registry:
            if is_a(known) and issubclass(known, best):
                best = known
        return registry[best]

    def dispatch(cls):
        return chosen(cls, lambda known: issubclass(cls, known))

    def register(cls, method=None):
        if method is None and not isinstance(cls, type):
            # @f.register above a function whose first parameter is annotated: the name of a type that there is.
            method, names = cls, list(cls.__annotations__.values())
            cls = _type_named(names[0] if names else "", method)
        if method is None:
            return lambda f: register(cls, f)
        registry[cls] = method
        return method

    def wrapper(*args, **kwargs):
        return chosen(type(args[0]), lambda known: isinstance(args[0], known))(*args, **kwargs)

    update_wrapper(wrapper, function)
    wrapper.register = register
    wrapper.dispatch = dispatch
    wrapper.registry = registry
    return wrapper


class singledispatchmethod:
    """singledispatch for a method: by the type of the first argument behind self."""

    def __init__(self, function):
        self.dispatcher, self.func = singledispatch(function), function

    def register(self, cls, method=None):
        return self.dispatcher.register(cls, method)

    def __get__(self, obj, cls=None):
        def method(*args, **kwargs):
            found = self.dispatcher.dispatch(type(args[0]))
            bind = getattr(found, "__get__", None)
            return bind(obj, cls)(*args, **kwargs) if bind else found(obj, *args, **kwargs)

        method.register = self.register
        return method


def _type_named(name, method):
    # Annotations are texts, so only the names of known types can be found.
    for known in (int, float, str, bool, list, dict, tuple, set):
        if known.__name__ == name:
            return known
    raise TypeError(f"register() cannot find the type '{name}': write @f.register({name or 'type'})")
