"""dataclasses: classes that are made of their annotated fields."""
from copy import deepcopy as _deepcopy


class _Missing:
    def __repr__(self):
        return "MISSING"


MISSING = _Missing()


class KW_ONLY:
    pass


class FrozenInstanceError(AttributeError):
    pass


class InitVar:
    def __class_getitem__(cls, item):
        # InitVar[int] is InitVar: what matters is the text of the annotation, as _is() reads it.
        return cls


class Field:
    def __init__(self, default, default_factory, init, repr, hash, compare, metadata, kw_only):
        self.name = None
        self.type = None
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.hash = hash
        self.compare = compare
        self.metadata = metadata or {}
        self.kw_only = kw_only

    def __repr__(self):
        return f"Field(name={self.name!r},type={self.type!r},default={self.default!r})"


def field(*, default=MISSING, default_factory=MISSING, init=True, repr=True, hash=None, compare=True, metadata=None,
          kw_only=False):
    if default is not MISSING and default_factory is not MISSING:
        raise ValueError("cannot specify both default and default_factory")
    return Field(default, default_factory, init, repr, hash, compare, metadata, kw_only)


def _is(text, name):
    # Annotations are texts here, and may have a module before the name and a type behind it.
    return text.split("[")[0].split(".")[-1] == name


def _collect(cls, kw_only):
    """The fields with those of the bases before them, and the InitVars among the parameters."""
    fields, parameters = {}, {}
    # From the farthest base on, so that a nearer one replaces a field and the first keeps its place.
    for base in reversed(cls.__mro__[1:]):
        if "__dataclass_fields__" in base.__dict__:
            fields.update(base.__dict__["__dataclass_fields__"])
            parameters.update(base.__dict__["__dataclass_parameters__"])
    for name, text in cls.__dict__.get("__annotations__", {}).items():
        if _is(text, "ClassVar"):
            continue
        if _is(text, "KW_ONLY"):
            kw_only = True
            continue
        default = cls.__dict__.get(name, MISSING)
        f = default if isinstance(default, Field) else field(default=default)
        f.name, f.type = name, text
        f.kw_only = f.kw_only or kw_only
        # All instances would share it; Python refuses it for the same reason.
        if isinstance(f.default, (list, dict, set)):
            raise ValueError(f"mutable default {type(f.default)} for field {name} is not allowed: use default_factory")
        if f.default is not MISSING:
            setattr(cls, name, f.default)
        elif isinstance(default, Field):
            # field() without a default leaves no attribute, or the Field itself would be the class's value.
            delattr(cls, name)
        if f.init:
            parameters[name] = f
        if not _is(text, "InitVar"):
            fields[name] = f
    return fields, parameters


def _values(self, fields):
    return tuple(getattr(self, name) for name in fields)


def _make_init(cls, fields, parameters, frozen):
    names = [n for n, f in parameters.items() if not f.kw_only]
    seen = None
    for name in names:
        # Among those by position alone: a keyword may be left out anywhere.
        f = parameters[name]
        if f.default is not MISSING or f.default_factory is not MISSING:
            seen = name
        elif seen is not None:
            raise TypeError(f"non-default argument '{name}' follows default argument")
    others = [f for n, f in fields.items() if not f.init]

    # A closure over the fields; Python writes the text of a function and runs it, for the same effect.
    def __init__(self, *args, **kwargs):
        if len(args) > len(names):
            raise TypeError(f"{cls.__name__}.__init__() takes {len(names) + 1} positional arguments but {len(args) + 1} "
                            "were given")
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in parameters:
                raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument '{name}'")
            if name in given:
                raise TypeError(f"{cls.__name__}.__init__() got multiple values for argument '{name}'")
            given[name] = value
        late, missing = [], []
        for name, f in parameters.items():
            if name in given:
                value = given[name]
            elif f.default is not MISSING:
                value = f.default
            elif f.default_factory is not MISSING:
                value = f.default_factory()
            else:
                missing.append(f"'{name}'")
                continue
            if name in fields:
                # Past a frozen class's own __setattr__, which refuses.
                object.__setattr__(self, name, value)
            else:
                # An InitVar is no field: it goes to __post_init__ alone.
                late.append(value)
        if missing:
            listed = missing[0] if len(missing) == 1 else ", ".join(missing[:-1]) + " and " + missing[-1]
            raise TypeError(f"{cls.__name__}.__init__() missing {len(missing)} required positional "
                            f"argument{'s' if len(missing) > 1 else ''}: {listed}")
        for f in others:
            # One that is left out of __init__ still has its value from the factory.
            if f.default_factory is not MISSING:
                object.__setattr__(self, f.name, f.default_factory())
        after = getattr(self, "__post_init__", None)
        if after is not None:
            after(*late)

    return __init__


def _process(cls, init, repr_, eq, order, unsafe_hash, frozen, kw_only, match_args):
    fields, parameters = _collect(cls, kw_only)
    cls.__dataclass_fields__ = fields
    cls.__dataclass_parameters__ = parameters
    own = cls.__dict__
    compared = [n for n, f in fields.items() if f.compare]
    hashed = [n for n, f in fields.items() if (f.compare if f.hash is None else f.hash)]
    shown = [n for n, f in fields.items() if f.repr]
    if init:
        cls.__init__ = _make_init(cls, fields, parameters, frozen)
    if repr_ and "__repr__" not in own:
        def __repr__(self):
            return type(self).__qualname__ + "(" + ", ".join(f"{n}={getattr(self, n)!r}" for n in shown) + ")"
        cls.__repr__ = __repr__
    if eq and "__eq__" not in own:
        def __eq__(self, other):
            # The same class and not only one below it: else a == b and b == a might differ.
            if type(other) is not type(self):
                return NotImplemented
            return _values(self, compared) == _values(other, compared)
        cls.__eq__ = __eq__
    if order:
        def compare(operator):
            def method(self, other):
                if type(other) is not type(self):
                    return NotImplemented
                return operator(_values(self, compared), _values(other, compared))
            return method
        cls.__lt__ = compare(lambda a, b: a < b)
        cls.__le__ = compare(lambda a, b: a <= b)
        cls.__gt__ = compare(lambda a, b: a > b)
        cls.__ge__ = compare(lambda a, b: a >= b)
    # None is what eq without a hash leaves; only a function was written by somebody.
    explicit = own.get("__hash__") is not None
    if unsafe_hash or (eq and frozen and not explicit):
        cls.__hash__ = lambda self: hash(_values(self, hashed))
    elif eq and not explicit:
        # Equal objects of one class must have one hash, and fields may change: so there is none.
        cls.__hash__ = None
    if frozen:
        def __setattr__(self, name, value):
            raise FrozenInstanceError(f"cannot assign to field '{name}'")

        def __delattr__(self, name):
            raise FrozenInstanceError(f"cannot delete field '{name}'")
        cls.__setattr__ = __setattr__
        cls.__delattr__ = __delattr__
    if match_args and "__match_args__" not in own:
        # By place a pattern takes what __init__ takes by place.
        cls.__match_args__ = tuple(n for n, f in parameters.items() if not f.kw_only)
    return cls


def dataclass(cls=None, *, init=True, repr=True, eq=True, order=False, unsafe_hash=False, frozen=False,
              match_args=True, kw_only=False, slots=False, weakref_slot=False):
    def wrap(c):
        return _process(c, init, repr, eq, order, unsafe_hash, frozen, kw_only, match_args)

    return wrap if cls is None else wrap(cls)


def is_dataclass(obj):
    return hasattr(obj, "__dataclass_fields__")


def fields(obj):
    if not is_dataclass(obj):
        raise TypeError("must be called with a dataclass type or instance")
    return tuple(obj.__dataclass_fields__.values())


def _plain(value, make):
    if is_dataclass(value) and not isinstance(value, type):
        # Instances alone: a field may hold the class itself.
        return make([(n, _plain(getattr(value, n), make)) for n in value.__dataclass_fields__])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        # A named tuple takes its elements one by one, other tuples one iterable.
        return type(value)(*[_plain(v, make) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(v, make) for v in value])
    if isinstance(value, dict):
        return {_plain(k, make): _plain(v, make) for k, v in value.items()}
    return _deepcopy(value)


def asdict(obj, *, dict_factory=dict):
    if not is_dataclass(obj) or isinstance(obj, type):
        raise TypeError("asdict() should be called on dataclass instances")
    return _plain(obj, dict_factory)


def astuple(obj, *, tuple_factory=tuple):
    if not is_dataclass(obj) or isinstance(obj, type):
        raise TypeError("astuple() should be called on dataclass instances")
    return _plain(obj, lambda pairs: tuple_factory([v for _, v in pairs]))


def replace(obj, **changes):
    given = {f.name: getattr(obj, f.name) for f in fields(obj) if f.init}
    given.update(changes)
    return type(obj)(**given)


def make_dataclass(cls_name, fields, *, bases=(), namespace=None, **options):
    members = dict(namespace or {})
    annotations = {}
    for f in fields:
        if isinstance(f, str):
            annotations[f] = "typing.Any"
            continue
        # As text, since annotations are read as texts.
        annotations[f[0]] = getattr(f[1], "__name__", str(f[1]))
        if len(f) == 3:
            members[f[0]] = f[2]
    members["__annotations__"] = annotations
    return dataclass(**options)(type(cls_name, bases, members))
