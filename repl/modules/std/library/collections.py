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
    def move_to_end(self, key, last=True):
        if last:
            self[key] = self.pop(key)
            return
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
        super().__init__()
        self.update(iterable, **kwargs)

    def __missing__(self, key):
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

    def __add__(self, other):
        out = Counter(self)
        out.update(other)
        return Counter({k: n for k, n in out.items() if n > 0})

    def __sub__(self, other):
        out = Counter(self)
        out.subtract(other)
        return Counter({k: n for k, n in out.items() if n > 0})

    def __repr__(self):
        inside = ", ".join(f"{k!r}: {n!r}" for k, n in self.most_common())
        return "Counter({" + inside + "})" if inside else "Counter()"


class deque:
    """A list with a start that moves, so that both ends are cheap."""

    def __init__(self, iterable=(), maxlen=None):
        self.maxlen = maxlen
        self._items = []
        self._first = 0
        self.extend(iterable)

    def _pack(self):
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
        self._items[self._first] = None
        self._first += 1
        if self._first > 32 and 2 * self._first > len(self._items):
            self._pack()
        return x

    def extend(self, iterable):
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

    def index(self, x):
        return self._pack().index(x)

    def insert(self, i, x):
        self._pack().insert(i, x)

    def remove(self, x):
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

    def __getitem__(self, i):
        return self._pack()[i]

    def __setitem__(self, i, x):
        self._pack()[i] = x

    def __delitem__(self, i):
        del self._pack()[i]

    def __eq__(self, other):
        return isinstance(other, deque) and list(self) == list(other)

    def __repr__(self):
        return f"deque({self._pack()!r})" if self.maxlen is None else f"deque({self._pack()!r}, maxlen={self.maxlen})"


class ChainMap:
    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def __getitem__(self, key):
        for m in self.maps:
            if key in m:
                return m[key]
        raise KeyError(key)

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __contains__(self, key):
        return any(key in m for m in self.maps)

    def _merged(self):
        out = {}
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


def _named(cls, fields, defaults):
    cls._fields = tuple(fields)
    cls._field_defaults = defaults
    for i, name in enumerate(fields):
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


def namedtuple(typename, field_names, *, rename=False, defaults=None, module=None):
    if isinstance(field_names, str):
        field_names = field_names.replace(",", " ").split()
    names = list(field_names)
    defaults = list(defaults or [])
    return _named(type(typename, (_NamedTuple,), {}), names, dict(zip(names[len(names) - len(defaults):], defaults)))


class UserDict(dict):
    @property
    def data(self):
        return self
