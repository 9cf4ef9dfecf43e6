"""collections: dicts, tuples and queues for special uses."""
import collections.abc as abc


class defaultdict(dict):
    def __init__(self, default_factory=None, *args, **kwargs):
        if default_factory is not None and not callable(default_factory):
            raise TypeError("first argument must be callable or None")
        self.default_factory = default_factory
        super().__init__(*args, **kwargs)

    def __missing__(self, key):
        if self.default_factory is None:
            raise KeyError(key)
        value = self.default_factory()
        self[key] = value
        return value

    def __repr__(self):
        return f"defaultdict({self.default_factory!r}, {super().__repr__()})"

    def copy(self):
        return defaultdict(self.default_factory, self)


class OrderedDict(dict):
    def __eq__(self, other):
        # The order counts between two OrderedDicts alone; with a plain dict they compare as dicts.
        if isinstance(other, OrderedDict):
            return list(self.items()) == list(other.items())
        return dict(self) == other

    def __ne__(self, other):
        return not self == other

    def move_to_end(self, key, last=True):
        if last:
            self[key] = self.pop(key)
            return
        # A dict has no place before its first, so all are put in again behind the key.
        items = [(key, self[key])] + [(k, v) for k, v in self.items() if k != key]
        self.clear()
        self.update(items)

    def popitem(self, last=True):
        if not self:
            raise KeyError("dictionary is empty")
        keys = list(self)
        key = keys[-1] if last else keys[0]
        return key, self.pop(key)

    def copy(self):
        return OrderedDict(self)

    def __repr__(self):
        return f"OrderedDict({list(self.items())!r})" if self else "OrderedDict()"


class Counter(dict):
    def __init__(self, iterable=None, **kwargs):
        # Without the arguments: dict's own would take an iterable for pairs.
        super().__init__()
        self.update(iterable, **kwargs)

    def __missing__(self, key):
        # The zero is not stored, so that a look-up does not make an element.
        return 0

    def _add(self, iterable, kwargs, sign):
        if iterable is not None:
            pairs = iterable.items() if isinstance(iterable, dict) else ((v, 1) for v in iterable)
            for key, n in pairs:
                self[key] = self[key] + sign * n
        for key, n in kwargs.items():
            self[key] = self[key] + sign * n

    def update(self, iterable=None, **kwargs):
        self._add(iterable, kwargs, 1)

    def subtract(self, iterable=None, **kwargs):
        self._add(iterable, kwargs, -1)

    def most_common(self, n=None):
        # sorted() keeps the order of equal counts: the first that was seen comes first, as in Python.
        items = sorted(self.items(), key=lambda kv: kv[1], reverse=True)
        return items if n is None else items[:n]

    def elements(self):
        for key, n in self.items():
            for _ in range(n):
                yield key

    def total(self):
        return sum(self.values())

    def copy(self):
        return Counter(self)

    @classmethod
    def fromkeys(cls, iterable, v=None):
        raise NotImplementedError("Counter.fromkeys() is undefined.  Use Counter(iterable) instead.")

    def __delitem__(self, key):
        # Unlike a dict's: a count that is not there is 0 already.
        if key in self:
            super().__delitem__(key)

    def _positive(self):
        # A list first, since a dict must not lose keys while it is gone through.
        for key in [k for k, n in self.items() if n <= 0]:
            del self[key]
        return self

    def __iadd__(self, other):
        self.update(other)
        return self._positive()

    def __isub__(self, other):
        self.subtract(other)
        return self._positive()

    def __ior__(self, other):
        for key, n in other.items():
            self[key] = max(self[key], n)
        return self._positive()

    def __iand__(self, other):
        for key, n in list(self.items()):
            self[key] = min(n, other[key])
        return self._positive()

    def __add__(self, other):
        return Counter(self).__iadd__(other) if isinstance(other, Counter) else NotImplemented

    def __sub__(self, other):
        return Counter(self).__isub__(other) if isinstance(other, Counter) else NotImplemented

    def __or__(self, other):
        return Counter(self).__ior__(other) if isinstance(other, Counter) else NotImplemented

    def __and__(self, other):
        return Counter(self).__iand__(other) if isinstance(other, Counter) else NotImplemented

    def __pos__(self):
        return Counter(self)._positive()

    # With what was negative alone: the others are below zero after it and fall out.
    def __neg__(self):
        return Counter({k: -n for k, n in self.items()})._positive()

    def __eq__(self, other):
        """What is not counted has the count 0."""
        if not isinstance(other, Counter):
            return dict.__eq__(self, other)
        return all(self[k] == other[k] for c in (self, other) for k in c)

    def __ne__(self, other):
        return not self == other

    def __le__(self, other):
        if not isinstance(other, Counter):
            return NotImplemented
        return all(self[k] <= other[k] for c in (self, other) for k in c)

    def __lt__(self, other):
        return self <= other and self != other if isinstance(other, Counter) else NotImplemented

    def __ge__(self, other):
        return other <= self if isinstance(other, Counter) else NotImplemented

    def __gt__(self, other):
        return other < self if isinstance(other, Counter) else NotImplemented

    def __repr__(self):
        inside = ", ".join(f"{k!r}: {n!r}" for k, n in self.most_common())
        return "Counter({" + inside + "})" if inside else "Counter()"


class deque:
    """A list with a start that moves, so that both ends are cheap."""
    __sequence_pattern__ = True

    def __init__(self, iterable=(), maxlen=None):
        if maxlen is not None and maxlen < 0:
            raise ValueError("maxlen must be non-negative")
        self.maxlen = maxlen
        self._items = []
        self._first = 0
        self.extend(iterable)

    def _pack(self):
        # Only where something was taken from the left; the cost is one for each element that was taken.
        if self._first:
            del self._items[:self._first]
            self._first = 0
        return self._items

    def append(self, x):
        self._items.append(x)
        if self.maxlen is not None and len(self) > self.maxlen:
            self.popleft()

    def appendleft(self, x):
        if self._first:
            self._first -= 1
            self._items[self._first] = x
        else:
            # The room grows with the list, so that many appendleft() cost the same each, on the average.
            room = len(self._items) // 2 + 4
            self._items[:0] = [None] * room
            self._first = room - 1
            self._items[self._first] = x
        if self.maxlen is not None and len(self) > self.maxlen:
            self.pop()

    def pop(self):
        if not self:
            raise IndexError("pop from an empty deque")
        return self._items.pop()

    def popleft(self):
        if not self:
            raise IndexError("pop from an empty deque")
        x = self._items[self._first]
        # The place behind the start must not keep the element alive.
        self._items[self._first] = None
        self._first += 1
        # More than half of the list is dead then, which pays for the move; short lists are left alone.
        if self._first > 32 and 2 * self._first > len(self._items):
            self._pack()
        return x

    def extend(self, iterable):
        # A list first: a deque may be extended by itself.
        for x in list(iterable):
            self.append(x)

    def extendleft(self, iterable):
        for x in list(iterable):
            self.appendleft(x)

    def rotate(self, n=1):
        items = self._pack()
        if items:
            n %= len(items)
            self._items = items[-n:] + items[:-n] if n else items

    def clear(self):
        self._items, self._first = [], 0

    def copy(self):
        return deque(self, self.maxlen)

    def count(self, x):
        return self._pack().count(x)

    def index(self, x, start=0, stop=None):
        items = self._pack()
        for i in range(len(items))[start:stop]:
            if items[i] == x:
                return i
        raise ValueError(f"{x!r} is not in deque")

    def insert(self, i, x):
        if self.maxlen is not None and len(self) >= self.maxlen:
            raise IndexError("deque already at its maximum size")
        self._pack().insert(i, x)

    def remove(self, x):
        if x not in self:
            raise ValueError(f"{x!r} is not in deque")
        self._pack().remove(x)

    def reverse(self):
        self._pack().reverse()

    def __len__(self):
        return len(self._items) - self._first

    def __bool__(self):
        return len(self._items) > self._first

    def __iter__(self):
        return iter(self._pack())

    def __contains__(self, x):
        return x in self._pack()

    def _place(self, i):
        if not isinstance(i, int):
            raise TypeError(f"sequence index must be integer, not '{type(i).__name__}'")
        if not -len(self) <= i < len(self):
            raise IndexError("deque index out of range")
        # The end of the list is the end of the deque, so a negative place needs no shift.
        return i if i < 0 else self._first + i

    def __getitem__(self, i):
        return self._items[self._place(i)]

    def __setitem__(self, i, x):
        self._items[self._place(i)] = x

    def __delitem__(self, i):
        del self._items[self._place(i)]

    def __reversed__(self):
        return reversed(self._pack())

    def __add__(self, other):
        if not isinstance(other, deque):
            raise TypeError(f'can only concatenate deque (not "{type(other).__name__}") to deque')
        return self.copy().__iadd__(other)

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __mul__(self, n):
        return deque(self._pack() * n, self.maxlen)

    def __rmul__(self, n):
        return self * n

    def __imul__(self, n):
        items = self._pack() * n
        self.clear()
        self.extend(items)
        return self

    def __eq__(self, other):
        # Only another deque is equal, as in Python: a list of the same elements is not.
        return list(self) == list(other) if isinstance(other, deque) else NotImplemented

    def __lt__(self, other):
        return list(self) < list(other) if isinstance(other, deque) else NotImplemented

    def __le__(self, other):
        return list(self) <= list(other) if isinstance(other, deque) else NotImplemented

    def __gt__(self, other):
        return list(self) > list(other) if isinstance(other, deque) else NotImplemented

    def __ge__(self, other):
        return list(self) >= list(other) if isinstance(other, deque) else NotImplemented

    def __repr__(self):
        return f"deque({self._pack()!r})" if self.maxlen is None else f"deque({self._pack()!r}, maxlen={self.maxlen})"


class ChainMap:
    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def new_child(self, m=None, **kwargs):
        return ChainMap({**(m or {}), **kwargs} if m is None or kwargs else m, *self.maps)

    @property
    def parents(self):
        # From the second on: the first is the one that is written to.
        return ChainMap(*self.maps[1:])

    def copy(self):
        return ChainMap(self.maps[0].copy(), *self.maps[1:])

    def __getitem__(self, key):
        for m in self.maps:
            if key in m:
                return m[key]
        # By the method, so that a class may give a default as defaultdict does.
        return self.__missing__(key)

    def __missing__(self, key):
        raise KeyError(key)

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        if key not in self.maps[0]:
            raise KeyError(f"Key not found in the first mapping: {key!r}")
        del self.maps[0][key]

    def pop(self, key, *default):
        if key not in self.maps[0] and not default:
            raise KeyError(f"Key not found in the first mapping: {key!r}")
        return self.maps[0].pop(key, *default)

    def update(self, *args, **kwargs):
        self.maps[0].update(*args, **kwargs)

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        self.maps[0].clear()

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __contains__(self, key):
        return any(key in m for m in self.maps)

    def _merged(self):
        out = {}
        # From the last to the first, so that the earlier map wins and keys keep Python's order.
        for m in reversed(self.maps):
            out.update(m)
        return out

    def __iter__(self):
        return iter(self._merged())

    def __len__(self):
        return len(self._merged())

    def keys(self):
        return self._merged().keys()

    def values(self):
        return self._merged().values()

    def items(self):
        return self._merged().items()

    def __bool__(self):
        return any(self.maps)

    def __eq__(self, other):
        if not isinstance(other, (ChainMap, dict)):
            return NotImplemented
        return self._merged() == (other._merged() if isinstance(other, ChainMap) else other)

    def __repr__(self):
        return f"ChainMap({', '.join(repr(m) for m in self.maps)})"


def _named(cls, fields, defaults):
    cls._fields = cls.__match_args__ = tuple(fields)
    cls._field_defaults = defaults
    if cls.__dict__.get("__doc__") is None:
        cls.__doc__ = f"{cls.__name__}({', '.join(fields)})"
    for i, name in enumerate(fields):
        # `i=i` keeps this turn's number: the lambda would see the last one.
        setattr(cls, name, property(lambda self, i=i: self[i]))
    return cls


class _NamedTuple(tuple):
    def __new__(cls, *args, **kwargs):
        fields = cls._fields
        values = list(args)
        if len(values) > len(fields):
            raise TypeError(f"{cls.__name__}.__new__() takes {len(fields) + 1} positional arguments but "
                            f"{len(values) + 1} were given")
        missing = []
        for name in fields[len(values):]:
            if name in kwargs:
                values.append(kwargs.pop(name))
            elif name in cls._field_defaults:
                values.append(cls._field_defaults[name])
            else:
                missing.append(f"'{name}'")
        if kwargs:
            raise TypeError(f"{cls.__name__}.__new__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if missing:
            listed = missing[0] if len(missing) == 1 else ", ".join(missing[:-1]) + " and " + missing[-1]
            raise TypeError(f"{cls.__name__}.__new__() missing {len(missing)} required positional "
                            f"argument{'s' if len(missing) > 1 else ''}: {listed}")
        # Past tuple's own constructor, which takes one iterable: __new__ is the place, since a tuple cannot be filled
        # later.
        return object.__new__(cls, values)

    @classmethod
    def _make(cls, iterable):
        return cls(*iterable)

    def _asdict(self):
        return dict(zip(self._fields, self))

    def _replace(self, **kwargs):
        values = {**self._asdict(), **kwargs}
        if len(values) > len(self._fields):
            raise ValueError(f"Got unexpected field names: {list(values)[len(self._fields):]!r}")
        return type(self)(**values)

    def __repr__(self):
        return type(self).__name__ + "(" + ", ".join(f"{n}={v!r}" for n, v in zip(self._fields, self)) + ")"


_KEYWORDS = ("False None True and as assert async await break class continue def del elif else except finally for from "
             "global if import in is lambda nonlocal not or pass raise return try while with yield").split()


def _renamed(names):
    """With its number for each name that cannot be one."""
    out = []
    for i, name in enumerate(names):
        # Each test is one of namedtuple()'s own errors below.
        fits = name.isidentifier() and name not in _KEYWORDS and not name.startswith("_") and name not in out
        out.append(name if fits else f"_{i}")
    return out


def namedtuple(typename, field_names, *, rename=False, defaults=None, module=None):
    if isinstance(field_names, str):
        field_names = field_names.replace(",", " ").split()
    names = _renamed(field_names) if rename else list(field_names)
    for name in [typename] + names:
        if not name.isidentifier():
            raise ValueError(f"Type names and field names must be valid identifiers: {name!r}")
        if name in _KEYWORDS:
            raise ValueError(f"Type names and field names cannot be a keyword: {name!r}")
    for i, name in enumerate(names):
        if name.startswith("_") and not rename:
            raise ValueError(f"Field names cannot start with an underscore: {name!r}")
        if name in names[:i]:
            raise ValueError(f"Encountered duplicate field name: {name!r}")
    defaults = list(defaults or [])
    if len(defaults) > len(names):
        raise TypeError("Got more default values than field names")
    # The module of the caller is not known here: there are no frames to look at.
    cls = type(typename, (_NamedTuple,), {"__module__": module or "__main__"})
    # The defaults belong to the last fields, as those of a function's parameters.
    return _named(cls, names, dict(zip(names[len(names) - len(defaults):], defaults)))


class UserDict(dict):
    # Itself: here the class is a dict and needs no second one inside.
    @property
    def data(self):
        return self
