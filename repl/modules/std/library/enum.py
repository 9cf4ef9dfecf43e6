"""enum: classes whose instances are named constants."""


class auto:
    pass


class EnumMeta:
    __accepted_as_metaclass__ = True


EnumType = EnumMeta
_private = ("_generate_next_value_", "_ignore_", "_missing_", "_order_")


def unique(cls):
    for name, member in cls.__members__.items():
        if member.name != name:
            raise ValueError(f"duplicate values found in {cls!r}: {name} -> {member.name}")
    return cls


class Enum:
    def __init_subclass__(cls, **kwargs):
        cls.__members__ = {}
        cls._member_list = []
        last = []
        for name, value in list(cls.__dict__.items()):
            if name.startswith("__") or name in _private or name in ("_member_list",) or callable(value) \
                    or isinstance(value, (property, classmethod, staticmethod)) or hasattr(value, "__get__"):
                if not isinstance(value, auto):
                    continue
            if isinstance(value, auto):
                value = cls._generate_next_value_(name, 1, len(last), last)
            last.append(value)
            member = next((m for m in cls._member_list if m._value_ == value), None)
            if member is None:
                member = cls._make(value)
                object.__setattr__(member, "_name_", name)
                if "_value_" not in member.__dict__:
                    object.__setattr__(member, "_value_", value)
                init = getattr(cls, "__init__", None)
                if "__init__" in cls.__dict__:
                    init(member, *(value if isinstance(value, tuple) else (value,)))
                cls._member_list.append(member)
            cls.__members__[name] = member
            setattr(cls, name, member)

    @classmethod
    def _make(cls, value):
        args = value if isinstance(value, tuple) else (value,)
        if "__new__" in cls.__dict__:
            return cls.__dict__["__new__"](cls, *args)
        return object.__new__(cls, *args)

    def _generate_next_value_(name, start, count, last_values):
        return max(last_values) + 1 if last_values else start

    @classmethod
    def __class_call__(cls, value, *more):
        if more or not cls._member_list:
            raise NotImplementedError("an Enum made by a call is not supported: write a class")
        for member in cls._member_list:
            if member._value_ == value:
                return member
        found = cls._missing_(value)
        if found is not None:
            return found
        raise ValueError(f"{value!r} is not a valid {cls.__qualname__}")

    @classmethod
    def _missing_(cls, value):
        return value if isinstance(value, cls) else None

    @classmethod
    def __class_getitem__(cls, name):
        if name not in cls.__members__:
            raise KeyError(name)
        return cls.__members__[name]

    @classmethod
    def __class_iter__(cls):
        return iter(cls._member_list)

    @classmethod
    def __class_len__(cls):
        return len(cls._member_list)

    @classmethod
    def __class_contains__(cls, item):
        return isinstance(item, cls) or any(m._value_ == item for m in cls._member_list)

    @property
    def name(self):
        return self._name_

    @property
    def value(self):
        return self._value_

    def __repr__(self):
        return f"<{type(self).__name__}.{self._name_}: {self._value_!r}>"

    def __str__(self):
        return f"{type(self).__name__}.{self._name_}"

    def __format__(self, spec):
        return format(str(self), spec)

    def __hash__(self):
        return hash(self._name_)

    def __setattr__(self, name, value):
        if name in ("name", "value"):
            raise AttributeError(f"<enum '{type(self).__name__}'> cannot set attribute '{name}'")
        object.__setattr__(self, name, value)


class IntEnum(int, Enum):
    def __str__(self):
        return str(self._value_)

    def __format__(self, spec):
        return format(self._value_, spec)

    def __hash__(self):
        return hash(self._value_)


class StrEnum(str, Enum):
    def _generate_next_value_(name, start, count, last_values):
        return name.lower()

    def __str__(self):
        return self._value_

    def __format__(self, spec):
        return format(self._value_, spec)

    def __hash__(self):
        return hash(self._value_)


class Flag(Enum):
    def _generate_next_value_(name, start, count, last_values):
        return 1 if not last_values else 1 << max(last_values).bit_length()

    @classmethod
    def _missing_(cls, value):
        names = [m for m in cls._member_list if m._value_ & value == m._value_ and m._value_]
        if sum(m._value_ for m in names) != value:
            return None
        made = cls._make(value)
        object.__setattr__(made, "_name_", "|".join(m._name_ for m in names) or None)
        object.__setattr__(made, "_value_", value)
        return made

    def __or__(self, other):
        return type(self)(self._value_ | other._value_)

    def __and__(self, other):
        return type(self)(self._value_ & other._value_)

    def __xor__(self, other):
        return type(self)(self._value_ ^ other._value_)

    def __invert__(self):
        return type(self)(sum(m._value_ for m in type(self)._member_list if not m._value_ & self._value_))

    def __contains__(self, other):
        return other._value_ & self._value_ == other._value_

    def __bool__(self):
        return bool(self._value_)

    def __eq__(self, other):
        return type(other) is type(self) and other._value_ == self._value_

    def __hash__(self):
        return hash(self._value_)


class IntFlag(int, Flag):
    def __str__(self):
        return str(self._value_)

    def __hash__(self):
        return hash(self._value_)
