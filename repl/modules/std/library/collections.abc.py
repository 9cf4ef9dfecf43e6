"""collections.abc: what an object can do, for isinstance and annotations."""


class _Ability:
    def __class_getitem__(cls, item):
        return cls

    @classmethod
    def __class_instancecheck__(cls, obj):
        if type(obj) is not type and cls in type(obj).__mro__:
            return True
        return cls._has(obj)


def _has_all(obj, *names):
    return not isinstance(obj, type) and all(hasattr(obj, name) for name in names)


def _iterable(obj):
    if isinstance(obj, (str, list, tuple, dict, set, frozenset, range)) or _has_all(obj, "__iter__"):
        return True
    return False


class Callable(_Ability):
    _has = staticmethod(callable)


class Iterable(_Ability):
    _has = staticmethod(_iterable)


class Iterator(_Ability):
    _has = staticmethod(lambda obj: _has_all(obj, "__next__"))


class Generator(Iterator):
    pass


class Hashable(_Ability):
    _has = staticmethod(lambda obj: not isinstance(obj, (list, dict, set)))


class Sized(_Ability):
    _has = staticmethod(lambda obj: isinstance(obj, (str, list, tuple, dict, set, frozenset, range)) or _has_all(obj, "__len__"))


class Container(_Ability):
    _has = staticmethod(lambda obj: isinstance(obj, (str, list, tuple, dict, set, frozenset, range))
                        or _has_all(obj, "__contains__"))


class Collection(_Ability):
    _has = staticmethod(lambda obj: isinstance(obj, Sized) and isinstance(obj, Iterable))


class Sequence(_Ability):
    _has = staticmethod(lambda obj: isinstance(obj, (str, list, tuple, range)))


class MutableSequence(_Ability):
    _has = staticmethod(lambda obj: isinstance(obj, list))


class Mapping(_Ability):
    _has = staticmethod(lambda obj: isinstance(obj, dict))


class MutableMapping(Mapping):
    pass


class Set(_Ability):
    _has = staticmethod(lambda obj: isinstance(obj, (set, frozenset)))


class MutableSet(Set):
    pass


class Awaitable(_Ability):
    _has = staticmethod(lambda obj: False)
