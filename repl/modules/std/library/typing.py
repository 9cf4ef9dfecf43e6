"""typing: names for annotations, which nothing evaluates; NamedTuple and TypedDict are real."""
from collections import _NamedTuple, _named
from collections.abc import (Awaitable, Callable, Collection, Container, Generator, Hashable, Iterable, Iterator,
                             Mapping, MutableMapping, MutableSequence, Sequence, Sized)

TYPE_CHECKING = False
AnyStr = Text = str


class _Form:
    def __class_getitem__(cls, item):
        # Annotations are only read by people: Any[int] is Any.
        return cls

    @classmethod
    def __class_instancecheck__(cls, obj):
        return True


class Any(_Form):
    pass


class Final(_Form):
    pass


class ClassVar(_Form):
    pass


class Literal(_Form):
    pass


class Concatenate(_Form):
    pass


class Self(_Form):
    pass


class NoReturn(_Form):
    pass


Never = NoReturn
# Names that annotations use alike; none is ever looked into.
TypeAlias = LiteralString = Unpack = Required = NotRequired = TypeGuard = Any


class Annotated(_Form):
    def __class_getitem__(cls, items):
        return items[0]


class Optional(_Form):
    # A real type gives a union, which isinstance() takes.
    def __class_getitem__(cls, item):
        return item | None if isinstance(item, type) else cls


class Union(_Form):
    def __class_getitem__(cls, items):
        if not isinstance(items, tuple):
            return items
        out = None
        for item in items:
            if item is None:
                item = type(None)
            if not isinstance(item, (type, tuple)):
                return cls
            out = item if out is None else out | item
        return out


class Generic:
    def __class_getitem__(cls, item):
        return cls


class Protocol(Generic):
    pass


class Type(_Form):
    @classmethod
    def __class_instancecheck__(cls, obj):
        return isinstance(obj, type)


List = list
Dict = dict
Tuple = tuple
Set = FrozenSet = AbstractSet = set


class _Variable:
    def __init__(self, name, *constraints, **kwargs):
        self.__name__ = name
        # P.args and P.kwargs stand in annotations of wrappers.
        self.args = self.kwargs = self

    def __repr__(self):
        return "~" + self.__name__

    def __or__(self, other):
        return self

    def __ror__(self, other):
        return self


TypeVar = ParamSpec = TypeVarTuple = _Variable


class NamedTuple(_NamedTuple):
    def __init_subclass__(cls, **kwargs):
        # A class of fields derives from it; a class below that one without annotations keeps them.
        names = list(cls.__dict__.get("__annotations__", {}))
        if names:
            _named(cls, names, {n: cls.__dict__[n] for n in names if n in cls.__dict__})


class TypedDict(dict):
    def __init_subclass__(cls, **kwargs):
        pass


def cast(kind, value):
    return value


def overload(function):
    return function


final = override = runtime_checkable = no_type_check = overload


def NewType(name, kind):
    return lambda value: value


def assert_type(value, kind):
    return value


def assert_never(value):
    raise AssertionError(f"expected code to be unreachable, but got: {value!r}")


def get_type_hints(obj, *args, **kwargs):
    return dict(obj.__annotations__)


def get_origin(kind):
    return None


def get_args(kind):
    return tuple(kind) if isinstance(kind, tuple) else ()
