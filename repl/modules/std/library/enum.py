"""enum: classes whose instances are named constants."""


class auto:
    """A value that is known when the class is made; what the body makes of it with | & ^ ~ is known then too."""

    def __init__(self, later=None):
        # With a function for its value it stands for a combination, whose parts get theirs later.
        self._later = later

    def __or__(self, other):
        return auto(lambda: _known(self) | _known(other))

    def __and__(self, other):
        return auto(lambda: _known(self) & _known(other))

    def __xor__(self, other):
        return auto(lambda: _known(self) ^ _known(other))

    def __invert__(self):
        return auto(lambda: ~_known(self))

    __ror__ = __or__
    __rand__ = __and__
    __rxor__ = __xor__


def _known(value):
    if not isinstance(value, auto):
        return value
    return value.value if value._later is None else value._later()


class EnumMeta:
    # A mark for the class statement: metaclass=EnumMeta changes nothing here.
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
            # What is no member: names of Python and of this module, functions, and whatever binds itself.
            if name.startswith("__") or name in _private or name in ("_member_list",) or callable(value) \
                    or isinstance(value, (property, classmethod, staticmethod)) or hasattr(value, "__get__"):
                # An auto() is a member even where its name looks private.
                if not isinstance(value, auto):
                    continue
            if isinstance(value, auto):
                if value._later is None:
                    value.value = cls._generate_next_value_(name, 1, len(last), last)
                value = _known(value)
            last.append(value)
            # An equal value makes another name of the same member.
            member = next((m for m in cls._member_list if m._value_ == value), None)
            if member is None:
                member = cls._make(value)
                # Past __setattr__, which refuses some names of members.
                object.__setattr__(member, "_name_", name)
                # A __new__ of the class may have set its own value already.
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
        # From the last values and not from their number, as in Python: auto() after 10 is 11.
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
        # A member itself is a value too: Colour(Colour.RED) is RED.
        return value if isinstance(value, cls) else None

    @classmethod
    def __class_getitem__(cls, name):
        if name not in cls.__members__:
            raise KeyError(name)
        return cls.__members__[name]

    @classmethod
    def __class_repr__(cls):
        return f"<enum {cls.__name__!r}>"

    @classmethod
    def __class_iter__(cls):
        return iter(cls._member_list)

    @classmethod
    def __class_setattr__(cls, name, value):
        if name in cls.__dict__.get("__members__", {}) and cls.__members__[name] is not value:
            raise AttributeError(f"cannot reassign member {name!r}")

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
        # By the name, since a value may have no hash.
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
    # Python's rule for StrEnum: the name in lower case.
    def _generate_next_value_(name, start, count, last_values):
        return name.lower()

    def __str__(self):
        return self._value_

    def __format__(self, spec):
        return format(self._value_, spec)

    def __hash__(self):
        return hash(self._value_)


def _bits(value, n):
    # Python's picture of bits in errors: the sign, a blank, the digits.
    return f"0b{int(value < 0)} {value & ((1 << n) - 1):0{n}b}"


class Flag(Enum):
    _keeps_unknown = False

    def _generate_next_value_(name, start, count, last_values):
        # The next power of two above all so far.
        return 1 if not last_values else 1 << max(last_values).bit_length()

    @classmethod
    def _singles(cls):
        """The members of one bit; the others are names for several, or for none."""
        return [m for m in cls._member_list if m._value_ > 0 and m._value_ & (m._value_ - 1) == 0]

    @classmethod
    def __class_repr__(cls):
        return f"<flag {cls.__name__!r}>"

    @classmethod
    def __class_iter__(cls):
        return iter(cls._singles())

    @classmethod
    def __class_len__(cls):
        return len(cls._singles())

    @classmethod
    def _missing_(cls, value):
        if isinstance(value, cls):
            return value
        if not isinstance(value, int):
            raise ValueError(f"{value!r} is not a valid {cls.__qualname__}")
        known = 0
        for m in cls._member_list:
            known |= m._value_
        most = (1 << known.bit_length()) - 1
        # Outside of all members, or a bit between them that is none: IntFlag alone keeps such.
        if not cls._keeps_unknown and (not ~most <= value <= most or value & (most ^ known)):
            n = max(value.bit_length(), known.bit_length())
            raise ValueError(f"<flag '{cls.__name__}'> invalid value {value!r}\n    given {_bits(value, n)}\n"
                             f"  allowed {_bits(known, n)}")
        # ~ of a number is negative; its bits within the members' width are meant.
        if value < 0:
            value += max(most + 1, 1 << value.bit_length())
        # In each class by itself: a combination must not be shared with a derived one.
        if "_composites" not in cls.__dict__:
            cls._composites = {}
        for m in cls._member_list + list(cls._composites.values()):
            if m._value_ == value:
                return m
        return cls._composed(value)

    @classmethod
    def _composed(cls, value):
        singles = cls._singles()
        names, rest = [m._name_ for m in singles if m._value_ & value], value
        for m in singles:
            rest &= ~m._value_
        if rest:  # bits that are no member alone may be within a name for several
            for m in cls._member_list:
                if m not in singles and m._value_ and m._value_ & value == m._value_:
                    names.append(m._name_)
                    rest &= ~m._value_
        # As Python names what no member covers: by its number.
        if rest and names:
            names.append(str(rest))
        made = cls._make(value)
        object.__setattr__(made, "_name_", "|".join(names) or None)
        object.__setattr__(made, "_value_", value)
        cls._composites[value] = made
        return made

    def _with(self, other):
        """The bits of the other operand, None where it has none."""
        if isinstance(other, type(self)):
            return other._value_
        return other if isinstance(self, int) and isinstance(other, int) else None

    def __or__(self, other):
        bits = self._with(other)
        return NotImplemented if bits is None else type(self)(self._value_ | bits)

    def __and__(self, other):
        bits = self._with(other)
        return NotImplemented if bits is None else type(self)(self._value_ & bits)

    def __xor__(self, other):
        bits = self._with(other)
        return NotImplemented if bits is None else type(self)(self._value_ ^ bits)

    __ror__ = __or__
    __rand__ = __and__
    __rxor__ = __xor__

    def __invert__(self):
        if self._keeps_unknown:
            return type(self)(~self._value_)
        # Of the members alone, so that ~ twice gives the same flag.
        return type(self)(sum(m._value_ for m in type(self)._singles() if not m._value_ & self._value_))

    def __contains__(self, other):
        if not isinstance(other, type(self)):
            raise TypeError(f"unsupported operand type(s) for 'in': '{type(other).__qualname__}' and "
                            f"'{type(self).__qualname__}'")
        return other._value_ & self._value_ == other._value_

    def __iter__(self):
        return iter([m for m in type(self)._singles() if m._value_ & self._value_])

    def __len__(self):
        return self._value_.bit_count()

    def __bool__(self):
        return bool(self._value_)

    def __repr__(self):
        name = type(self).__name__ + ("" if self._name_ is None else f".{self._name_}")
        return f"<{name}: {self._value_!r}>"

    def __str__(self):
        return f"{type(self).__name__}({self._value_!r})" if self._name_ is None else super().__str__()

    def __eq__(self, other):
        return type(other) is type(self) and other._value_ == self._value_

    def __hash__(self):
        return hash(self._value_)


class IntFlag(int, Flag):
    _keeps_unknown = True

    def __str__(self):
        return str(self._value_)

    def __format__(self, spec):
        return format(self._value_, spec)

    def __eq__(self, other):
        return self._value_ == (other._value_ if isinstance(other, IntFlag) else other)

    def __hash__(self):
        return hash(self._value_)
