"""collections.abc: what an object can do, for isinstance and annotations, and bases that add what follows from it."""
from abc import abstractmethod


class _Ability:
    _names = ()  # methods that a class needs, to be one without deriving from it
    _types = ()  # types of the language that are

    def __class_getitem__(cls, item):
        return cls

    @classmethod
    def __class_instancecheck__(cls, obj):
        return cls.__class_subclasscheck__(type(obj))

    @classmethod
    def __class_subclasscheck__(cls, sub):
        if cls in sub.__mro__:
            return True
        # Only where the class names its own: by those of its base anything with a length would be a Sequence.
        if "_names" in cls.__dict__ and all(getattr(sub, name, None) is not None for name in cls._names):
            return True
        # A type of the language, or a registered class, as this or as what derives from this.
        for known in _kinds + list(_registered):
            if cls in known.__mro__ and any(t in sub.__mro__ for t in known.__dict__.get("_types",
                    ()) + tuple(_registered.get(known, ()))):
                return True
        return False

    @classmethod
    def register(cls, sub):
        _registered.setdefault(cls, []).append(sub)
        return sub


_kinds = []  # those that types of the language are
_registered = {}  # by what it is registered as


class Hashable(_Ability):
    _names = ("__hash__",)

    @abstractmethod
    def __hash__(self):
        return 0


class Callable(_Ability):
    _names = ("__call__",)

    @classmethod
    def __class_instancecheck__(cls, obj):
        return callable(obj)

    @abstractmethod
    def __call__(self, *args, **kwargs):
        return None


class Iterable(_Ability):
    _names = ("__iter__",)

    @abstractmethod
    def __iter__(self):
        while False:
            yield None


class Iterator(Iterable):
    _names = ("__iter__", "__next__")

    @abstractmethod
    def __next__(self):
        raise StopIteration

    def __iter__(self):
        return self


class Reversible(Iterable):
    _names = ("__reversed__", "__iter__")

    @abstractmethod
    def __reversed__(self):
        while False:
            yield None


class Generator(Iterator):
    _names = ("__iter__", "__next__", "send", "throw", "close", "gi_frame")

    @classmethod
    def __class_instancecheck__(cls, obj):
        return type(obj).__name__ == "generator" or cls in type(obj).__mro__


class Sized(_Ability):
    _names = ("__len__",)

    @abstractmethod
    def __len__(self):
        return 0


class Container(_Ability):
    _names = ("__contains__",)

    @abstractmethod
    def __contains__(self, x):
        return False


class Collection(Sized, Iterable, Container):
    _names = ("__len__", "__iter__", "__contains__")


class Sequence(Reversible, Collection):
    __sequence_pattern__ = True
    _types = (str, list, tuple, range, bytes, bytearray)

    @abstractmethod
    def __getitem__(self, index):
        raise IndexError

    def __iter__(self):
        i = 0
        while True:
            try:
                v = self[i]
            except IndexError:
                return
            yield v
            i += 1

    def __contains__(self, value):
        return any(v is value or v == value for v in self)

    def __reversed__(self):
        for i in range(len(self) - 1, -1, -1):
            yield self[i]

    def index(self, value, start=0, stop=None):
        n = len(self)
        start = max(n + start, 0) if start < 0 else start
        stop = n if stop is None else stop + n if stop < 0 else stop
        for i in range(start, min(stop, n)):
            # By identity too: a NaN is found, although it equals nothing.
            v = self[i]
            if v is value or v == value:
                return i
        raise ValueError

    def count(self, value):
        return sum(1 for v in self if v is value or v == value)


class MutableSequence(Sequence):
    _types = (list, bytearray)

    @abstractmethod
    def __setitem__(self, index, value):
        raise IndexError

    @abstractmethod
    def __delitem__(self, index):
        raise IndexError

    @abstractmethod
    def insert(self, index, value):
        raise IndexError

    def append(self, value):
        self.insert(len(self), value)

    def clear(self):
        # One by one, since only a class's own methods are known here.
        while len(self):
            self.pop()

    def reverse(self):
        n = len(self)
        for i in range(n // 2):
            self[i], self[n - i - 1] = self[n - i - 1], self[i]

    def extend(self, values):
        # A list first: a container may be extended by itself.
        for v in list(values):
            self.append(v)

    def pop(self, index=-1):
        v = self[index]
        del self[index]
        return v

    def remove(self, value):
        del self[self.index(value)]

    def __iadd__(self, values):
        self.extend(values)
        return self


class Set(Collection):
    _types = (set, frozenset)

    @classmethod
    def _from_iterable(cls, it):
        return cls(it)

    def __le__(self, other):
        if not isinstance(other, Set):
            return NotImplemented
        return len(self) <= len(other) and all(v in other for v in self)

    def __lt__(self, other):
        return len(self) < len(other) and self.__le__(other) if isinstance(other, Set) else NotImplemented

    def __ge__(self, other):
        if not isinstance(other, Set):
            return NotImplemented
        return len(self) >= len(other) and all(v in self for v in other)

    def __gt__(self, other):
        return len(self) > len(other) and self.__ge__(other) if isinstance(other, Set) else NotImplemented

    def __eq__(self, other):
        return len(self) == len(other) and self.__le__(other) if isinstance(other, Set) else NotImplemented

    def __and__(self, other):
        if not isinstance(other, Iterable):
            return NotImplemented
        return self._from_iterable(v for v in other if v in self)

    __rand__ = __and__

    def __or__(self, other):
        if not isinstance(other, Iterable):
            return NotImplemented
        return self._from_iterable(v for s in (self, other) for v in s)

    __ror__ = __or__

    def __sub__(self, other):
        if not isinstance(other, Iterable):
            return NotImplemented
        # Gone through once for each element, which an iterator would not allow.
        other = list(other)
        return self._from_iterable(v for v in self if v not in other)

    def __rsub__(self, other):
        if not isinstance(other, Iterable):
            return NotImplemented
        return self._from_iterable(v for v in other if v not in self)

    def __xor__(self, other):
        if not isinstance(other, Iterable):
            return NotImplemented
        other = self._from_iterable(other)
        return (self - other) | (other - self)

    __rxor__ = __xor__

    def isdisjoint(self, other):
        return not any(v in self for v in other)


class MutableSet(Set):
    _types = (set,)

    @abstractmethod
    def add(self, value):
        raise NotImplementedError

    @abstractmethod
    def discard(self, value):
        raise NotImplementedError

    def remove(self, value):
        if value not in self:
            raise KeyError(value)
        self.discard(value)

    def pop(self):
        for v in self:
            self.discard(v)
            return v
        raise KeyError

    def clear(self):
        # A copy, since elements go while the loop runs.
        for v in list(self):
            self.discard(v)

    def __ior__(self, it):
        for v in it:
            self.add(v)
        return self

    def __iand__(self, it):
        for v in self - it:
            self.discard(v)
        return self

    def __isub__(self, it):
        for v in list(it):
            self.discard(v)
        return self


class Mapping(Collection):
    __mapping_pattern__ = True
    _types = (dict,)

    @abstractmethod
    def __getitem__(self, key):
        raise KeyError

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key):
        try:
            self[key]
        except KeyError:
            return False
        return True

    def keys(self):
        # By a dict, so that the result can do what a dict's keys can.
        return {k: None for k in self}.keys()

    def values(self):
        return {k: self[k] for k in self}.values()

    def items(self):
        return {k: self[k] for k in self}.items()

    def __eq__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    # None says that a mapping has no reversed(), whatever its bases have.
    __reversed__ = None


class MutableMapping(Mapping):
    _types = (dict,)

    @abstractmethod
    def __setitem__(self, key, value):
        raise KeyError

    @abstractmethod
    def __delitem__(self, key):
        raise KeyError

    def pop(self, key, *default):
        try:
            value = self[key]
        except KeyError:
            if default:
                return default[0]
            raise
        del self[key]
        return value

    def popitem(self):
        for key in self:
            value = self[key]
            del self[key]
            return key, value
        raise KeyError

    def clear(self):
        while len(self):
            self.popitem()

    def update(self, other=(), /, **named):
        if isinstance(other, Mapping) or hasattr(other, "keys"):
            for key in other.keys():
                self[key] = other[key]
        else:
            for key, value in other:
                self[key] = value
        for key, value in named.items():
            self[key] = value

    def setdefault(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            self[key] = default
        return default


class Awaitable(_Ability):
    _names = ("__await__",)


_kinds = [Sequence, MutableSequence, Set, MutableSet, Mapping, MutableMapping]
