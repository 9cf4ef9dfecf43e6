"""datetime: dates, times of the day, both together, and differences; zones are fixed offsets."""
import re as _re
import time as _time
from collections import namedtuple as _namedtuple

MINYEAR, MAXYEAR = 1, 9999
# All is counted in whole microseconds, so that sums and differences are exact.
_DAY = 86400 * 1000000  # us
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LARGEST = 999999999  # days of a timedelta


def _is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _month_length(year, month):
    return 29 if month == 2 and _is_leap(year) else _LENGTHS[month - 1]


def _days_before(year, month=1):
    """The days from 0001-01-01 to the first of a month."""
    whole = year - 1
    return whole * 365 + whole // 4 - whole // 100 + whole // 400 \
        + sum(_month_length(year, m) for m in range(1, month))


def _date_of(ordinal):
    """Year, month and day of a day, where 1 is 0001-01-01."""
    # 146097 days are 400 years of the calendar: a guess that the loops put right.
    year = (ordinal - 1) * 400 // 146097 + 1
    while _days_before(year + 1) < ordinal:
        year += 1
    while _days_before(year) >= ordinal:
        year -= 1
    month, rest = 1, ordinal - _days_before(year)
    while rest > _month_length(year, month):
        rest -= _month_length(year, month)
        month += 1
    return year, month, rest


def _check(name, value, least, most):
    if not isinstance(value, int):
        raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")
    if not least <= value <= most:
        raise ValueError("day is out of range for month" if name == "day"
                         else f"{name} {value} is out of range" if name == "year"
                         else f"{name} must be in {least}..{most}")
    return value


def _offset_text(offset, colon=":"):
    """"+01:00", or "" of None."""
    if offset is None:
        return ""
    us = offset._us
    sign, us = ("-", -us) if us < 0 else ("+", us)
    seconds, us = divmod(us, 1000000)
    out = f"{sign}{seconds // 3600:02d}{colon}{seconds // 60 % 60:02d}"
    # Offsets of whole minutes have no seconds in Python's text either.
    if seconds % 60 or us:
        out += f"{colon}{seconds % 60:02d}"
    return out + (f".{us:06d}" if us else "")


def _clock_text(hour, minute, second, us, timespec):
    if timespec == "auto":
        timespec = "microseconds" if us else "seconds"
    texts = {"hours": f"{hour:02d}", "minutes": f"{hour:02d}:{minute:02d}",
             "seconds": f"{hour:02d}:{minute:02d}:{second:02d}",
             "milliseconds": f"{hour:02d}:{minute:02d}:{second:02d}.{us // 1000:03d}",
             "microseconds": f"{hour:02d}:{minute:02d}:{second:02d}.{us:06d}"}
    if timespec not in texts:
        raise ValueError("Unknown timespec value")
    return texts[timespec]


def _format(format, fields, us, offset, zone):
    """strftime() with the parts that C's has not: %f, %z and %Z of our own zones."""
    # A % of a zone's name must pass through C's strftime() as one.
    known = {"%f": f"{us:06d}", "%z": _offset_text(offset, ""), "%Z": (zone or "").replace("%", "%%"), "%%": "%%"}
    return _time.strftime(_re.sub(r"%[fzZ%]", lambda m: known[m.group()], format), fields)


def _zone_check(tz):
    if tz is not None and not isinstance(tz, tzinfo):
        raise TypeError(f"tzinfo argument must be None or of a tzinfo subclass, not type '{type(tz).__name__}'")
    return tz


class _Compared:
    """Ordered by what _key(other) gives of both; None: they are not comparable."""

    def __eq__(self, other):
        key = self._key(other)
        return key[0] == key[1] if key else NotImplemented

    def __lt__(self, other):
        key = self._key(other)
        return key[0] < key[1] if key else NotImplemented

    def __le__(self, other):
        key = self._key(other)
        return key[0] <= key[1] if key else NotImplemented

    def __gt__(self, other):
        key = self._key(other)
        return key[0] > key[1] if key else NotImplemented

    def __ge__(self, other):
        key = self._key(other)
        return key[0] >= key[1] if key else NotImplemented


class timedelta(_Compared):
    """A difference of two times, in microseconds."""

    def __init__(self, days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0):
        whole, parts = 0, 0.0
        # Days, seconds and so on may be floats; whole ones are kept apart, since a float of microseconds has too few
        # digits.
        for value, unit in ((days, _DAY), (seconds, 1000000), (microseconds, 1), (milliseconds, 1000),
                            (minutes, 60000000), (hours, 3600000000), (weeks, 7 * _DAY)):
            if isinstance(value, int):
                whole += value * unit
            elif isinstance(value, float):
                whole += int(value // 1) * unit
                parts += value % 1 * unit
            else:
                raise TypeError(f"unsupported type for timedelta component: {type(value).__name__}")
        whole += int(parts // 1)
        parts %= 1
        # Ties to even, as Python rounds.
        self._us = whole + (parts > 0.5 or (parts == 0.5 and whole % 2 == 1))
        if not -_LARGEST <= self.days <= _LARGEST:
            raise OverflowError(f"days={self.days}; must have magnitude <= {_LARGEST}")

    @property
    def days(self):
        # Rounded down: a negative difference is negative days and positive seconds, as in Python.
        return self._us // _DAY

    @property
    def seconds(self):
        return self._us % _DAY // 1000000

    @property
    def microseconds(self):
        return self._us % 1000000

    def total_seconds(self):
        return self._us / 1000000

    def __repr__(self):
        parts = [f"{name}={value}" for name, value in
                 (("days", self.days), ("seconds", self.seconds), ("microseconds", self.microseconds)) if value]
        return f"datetime.timedelta({', '.join(parts) or '0'})"

    def __str__(self):
        days, s, us = self.days, self.seconds, self.microseconds
        out = f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}" + (f".{us:06d}" if us else "")
        return f"{days} day{'' if abs(days) == 1 else 's'}, {out}" if days else out

    def __add__(self, other):
        return timedelta(microseconds=self._us + other._us) if isinstance(other, timedelta) else NotImplemented

    def __sub__(self, other):
        return timedelta(microseconds=self._us - other._us) if isinstance(other, timedelta) else NotImplemented

    def __mul__(self, factor):
        if isinstance(factor, int):
            return timedelta(microseconds=self._us * factor)
        if isinstance(factor, float):
            # By the exact fraction of the float, so that one rounding is all.
            up, down = factor.as_integer_ratio()
            return timedelta(microseconds=_nearest(self._us * up, down))
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, timedelta):
            return self._us / other._us
        if isinstance(other, int):
            return timedelta(microseconds=_nearest(self._us, other))
        if isinstance(other, float):
            up, down = other.as_integer_ratio()
            return timedelta(microseconds=_nearest(self._us * down, up))
        return NotImplemented

    def __floordiv__(self, other):
        if isinstance(other, timedelta):
            return self._us // other._us
        return timedelta(microseconds=self._us // other) if isinstance(other, int) else NotImplemented

    def __mod__(self, other):
        return timedelta(microseconds=self._us % other._us) if isinstance(other, timedelta) else NotImplemented

    def __divmod__(self, other):
        return (self // other, self % other) if isinstance(other, timedelta) else NotImplemented

    def __neg__(self):
        return timedelta(microseconds=-self._us)

    def __pos__(self):
        return self

    def __abs__(self):
        return timedelta(microseconds=abs(self._us))

    def __bool__(self):
        return self._us != 0

    def __hash__(self):
        return hash(self._us)

    def _key(self, other):
        return (self._us, other._us) if isinstance(other, timedelta) else None


def _nearest(a, b):
    """a / b as an int, ties to even."""
    whole, rest = divmod(a, b)
    rest, b = abs(rest), abs(b)
    return whole + (2 * rest > b or (2 * rest == b and whole % 2 == 1))


timedelta.min, timedelta.max = timedelta(-_LARGEST), timedelta(days=_LARGEST, microseconds=_DAY - 1)
timedelta.resolution = timedelta(microseconds=1)


class tzinfo:
    """A zone: classes of one's own give utcoffset(dt), dst(dt) and tzname(dt)."""

    def utcoffset(self, dt):
        raise NotImplementedError("a tzinfo subclass must implement utcoffset()")

    def dst(self, dt):
        raise NotImplementedError("a tzinfo subclass must implement dst()")

    def tzname(self, dt):
        raise NotImplementedError("a tzinfo subclass must implement tzname()")

    # For a zone of fixed offset; one with summer time gives a fromutc() of its own.
    def fromutc(self, dt):
        return dt + self.utcoffset(dt)


class timezone(tzinfo):
    """A fixed offset from UTC."""

    def __init__(self, offset, name=None):
        if not isinstance(offset, timedelta):
            raise TypeError("offset must be a timedelta")
        if not -_DAY < offset._us < _DAY:
            raise ValueError("offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24)")
        self._offset, self._name = offset, name

    def utcoffset(self, dt):
        return self._offset

    def dst(self, dt):
        # None and not zero: a fixed offset says nothing of summer time.
        return None

    def tzname(self, dt):
        return self._name if self._name is not None else "UTC" + (_offset_text(self._offset) if self._offset else "")

    def __str__(self):
        return self.tzname(None)

    def __repr__(self):
        # By identity, since an equal offset may have been made without the name.
        if self is timezone.utc:
            return "datetime.timezone.utc"
        return f"datetime.timezone({self._offset!r}{f', {self._name!r}' if self._name is not None else ''})"

    def __eq__(self, other):
        return self._offset == other._offset if isinstance(other, timezone) else NotImplemented

    def __hash__(self):
        return hash(self._offset)


UTC = timezone.utc = timezone(timedelta(0))


IsoCalendarDate = _namedtuple("IsoCalendarDate", "year week weekday")


class date(_Compared):
    def __init__(self, year, month, day):
        self._set_date(year, month, day)

    def _set_date(self, year, month, day):
        self._year = _check("year", year, MINYEAR, MAXYEAR)
        self._month = _check("month", month, 1, 12)
        self._day = _check("day", day, 1, _month_length(year, month))

    year = property(lambda self: self._year)
    month = property(lambda self: self._month)
    day = property(lambda self: self._day)

    @classmethod
    def today(cls):
        return cls.fromtimestamp(_time.time())

    @classmethod
    def fromtimestamp(cls, seconds):
        return cls(*_time.localtime(seconds)[:3])

    @classmethod
    def fromordinal(cls, ordinal):
        if not 1 <= ordinal <= _days_before(MAXYEAR + 1):
            raise ValueError("ordinal must be >= 1" if ordinal < 1 else f"ordinal {ordinal} is out of range")
        return cls(*_date_of(ordinal))

    @classmethod
    def fromisoformat(cls, text):
        found = _re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)|(\d{4})(\d\d)(\d\d)", text)
        if not found:
            raise ValueError(f"Invalid isoformat string: {text!r}")
        return cls(*(int(part) for part in found.groups() if part is not None))

    def toordinal(self):
        return _days_before(self._year, self._month) + self._day

    def weekday(self):
        # 0001-01-01 was a Monday.
        return (self.toordinal() + 6) % 7

    def isoweekday(self):
        return self.weekday() + 1

    def isocalendar(self):
        # A week belongs to the year of its Thursday.
        thursday = self.toordinal() + 3 - self.weekday()
        year = date.fromordinal(thursday).year
        return IsoCalendarDate(year, (thursday - date(year, 1, 1).toordinal()) // 7 + 1, self.weekday() + 1)

    def timetuple(self):
        # -1: whether it is summer time is to be found out, which mktime() does.
        return _time.struct_time((self._year, self._month, self._day, 0, 0, 0, self.weekday(), self._day_of_year(), -1))

    def _day_of_year(self):
        return self.toordinal() - _days_before(self._year)

    def replace(self, year=None, month=None, day=None):
        return type(self)(self._year if year is None else year, self._month if month is None else month,
                          self._day if day is None else day)

    def isoformat(self):
        return f"{self._year:04d}-{self._month:02d}-{self._day:02d}"

    def ctime(self):
        # %Y of C's library has no leading zeros for years before 1000.
        return _time.strftime("%a %b %e %H:%M:%S ", self.timetuple()) + f"{self._year:04d}"

    def strftime(self, format):
        return _format(format, self.timetuple(), 0, None, None)

    def __format__(self, spec):
        return self.strftime(spec) if spec else str(self)

    def __str__(self):
        return self.isoformat()

    def __repr__(self):
        return f"datetime.{type(self).__qualname__}({self._year}, {self._month}, {self._day})"

    def __add__(self, other):
        return type(self).fromordinal(_in_range(self.toordinal() + other.days)) if isinstance(other, timedelta) \
            else NotImplemented

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, timedelta):
            return self + timedelta(-other.days)
        # A datetime is a date, and Python refuses to mix the two.
        if isinstance(other, date) and not isinstance(other, datetime):
            return timedelta(self.toordinal() - other.toordinal())
        return NotImplemented

    def _key(self, other):
        return (self.toordinal(), other.toordinal()) if isinstance(other, date) and not isinstance(other, datetime) \
            else None

    def __hash__(self):
        return hash(self.toordinal())


def _in_range(ordinal):
    if not 1 <= ordinal <= _days_before(MAXYEAR + 1):
        raise OverflowError("date value out of range")
    return ordinal


date.min, date.max, date.resolution = date(1, 1, 1), date(9999, 12, 31), timedelta(1)


class _Clock:
    """The time of the day, of time and datetime."""

    def _set_clock(self, hour, minute, second, microsecond, tz):
        self._hour = _check("hour", hour, 0, 23)
        self._minute = _check("minute", minute, 0, 59)
        self._second = _check("second", second, 0, 59)
        self._microsecond = _check("microsecond", microsecond, 0, 999999)
        self._tz = _zone_check(tz)

    hour = property(lambda self: self._hour)
    minute = property(lambda self: self._minute)
    second = property(lambda self: self._second)
    microsecond = property(lambda self: self._microsecond)
    tzinfo = property(lambda self: self._tz)
    fold = 0

    def _us_of_day(self):
        return ((self._hour * 60 + self._minute) * 60 + self._second) * 1000000 + self._microsecond

    def utcoffset(self):
        # A zone may ask a datetime for its day; a time alone has none to give.
        return None if self._tz is None else self._tz.utcoffset(self if isinstance(self, datetime) else None)

    def dst(self):
        return None if self._tz is None else self._tz.dst(self if isinstance(self, datetime) else None)

    def tzname(self):
        return None if self._tz is None else self._tz.tzname(self if isinstance(self, datetime) else None)

    def _clock_repr(self):
        parts = [self._hour, self._minute]
        if self._second or self._microsecond:
            parts.append(self._second)
        if self._microsecond:
            parts.append(self._microsecond)
        return ", ".join(map(str, parts)) + (f", tzinfo={self._tz!r}" if self._tz is not None else "")


_CLOCK = r"(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?)?(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?"


def _clock_of(text, whole):
    """Hour, minute, second, microsecond and zone of an ISO text."""
    found = _re.fullmatch(_CLOCK, text)
    if not found:
        raise ValueError(f"Invalid isoformat string: {whole!r}")
    hour, minute, second, fraction, zone = found.groups()
    tz = None
    if zone == "Z":
        tz = timezone.utc
    elif zone:
        parts = [int(p) for p in _re.findall(r"\d\d", zone)] + [0, 0]
        offset = timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])
        tz = timezone(-offset if zone[0] == "-" else offset) if offset else timezone.utc
    # Nanoseconds are cut off, as Python does.
    return int(hour), int(minute or 0), int(second or 0), int((fraction or "0").ljust(6, "0")[:6]), tz


class time(_Clock):
    def __init__(self, hour=0, minute=0, second=0, microsecond=0, tzinfo=None):
        self._set_clock(hour, minute, second, microsecond, tzinfo)

    @classmethod
    def fromisoformat(cls, text):
        return cls(*_clock_of(text.removeprefix("T"), text))

    def replace(self, hour=None, minute=None, second=None, microsecond=None, tzinfo=True):
        return type(self)(self._hour if hour is None else hour, self._minute if minute is None else minute,
                          self._second if second is None else second,
                          self._microsecond if microsecond is None else microsecond,
                          self._tz if tzinfo is True else tzinfo)

    def isoformat(self, timespec="auto"):
        return _clock_text(self._hour, self._minute, self._second, self._microsecond, timespec) \
            + _offset_text(self.utcoffset())

    def strftime(self, format):
        # The day that Python shows for a time without a date.
        fields = (1900, 1, 1, self._hour, self._minute, self._second, 0, 1, -1)
        return _format(format, fields, self._microsecond, self.utcoffset(), self.tzname())

    def __format__(self, spec):
        return self.strftime(spec) if spec else str(self)

    def __str__(self):
        return self.isoformat()

    def __repr__(self):
        return f"datetime.{type(self).__qualname__}({self._clock_repr()})"

    def _key(self):
        offset = self.utcoffset()
        # With a zone the time in UTC counts, and without one it compares with its like only.
        return (offset is None, self._us_of_day() - (offset._us if offset is not None else 0))

    def __hash__(self):
        return hash(self._key())

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, time) else NotImplemented

    def __lt__(self, other):
        if not isinstance(other, time):
            return NotImplemented
        if self._key()[0] != other._key()[0]:
            raise TypeError("can't compare offset-naive and offset-aware times")
        return self._key() < other._key()

    def __gt__(self, other):
        return other < self if isinstance(other, time) else NotImplemented

    def __le__(self, other):
        return not other < self if isinstance(other, time) else NotImplemented

    def __ge__(self, other):
        return not self < other if isinstance(other, time) else NotImplemented


time.min, time.max, time.resolution = time(0), time(23, 59, 59, 999999), timedelta(microseconds=1)
_EPOCH = _days_before(1970) + 1  # the ordinal of 1970-01-01
# Under other names, since datetime has methods date() and time().
_date, _clock_time = date, time


class datetime(_Clock, date):
    def __init__(self, year, month, day, hour=0, minute=0, second=0, microsecond=0, tzinfo=None):
        self._set_date(year, month, day)
        self._set_clock(hour, minute, second, microsecond, tzinfo)

    @classmethod
    def _of(cls, ordinal, us, tz=None):
        """A day and the microseconds since its midnight, which may be more than a day has."""
        # More than a day's microseconds, or fewer than none, move the day.
        year, month, day = _date_of(_in_range(ordinal + us // _DAY))
        us %= _DAY
        seconds = us // 1000000
        return cls(year, month, day, seconds // 3600, seconds // 60 % 60, seconds % 60, us % 1000000, tz)

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(_time.time(), tz)

    @classmethod
    def today(cls):
        return cls.now()

    @classmethod
    def utcnow(cls):
        return cls.utcfromtimestamp(_time.time())

    @classmethod
    def utcfromtimestamp(cls, seconds):
        return cls._of(_EPOCH, _us_of(seconds))

    @classmethod
    def fromtimestamp(cls, seconds, tz=None):
        us = _us_of(seconds)
        if _zone_check(tz) is not None:
            return tz.fromutc(cls._of(_EPOCH, us, tz))
        return cls(*_time.localtime(us // 1000000)[:6], us % 1000000)

    @classmethod
    def combine(cls, day, clock, tzinfo=True):
        return cls(day.year, day.month, day.day, clock.hour, clock.minute, clock.second, clock.microsecond,
                   clock.tzinfo if tzinfo is True else tzinfo)

    @classmethod
    def fromordinal(cls, ordinal):
        return cls(*_date.fromordinal(ordinal).timetuple()[:3])

    @classmethod
    def fromisoformat(cls, text):
        found = _re.match(r"\d{4}-\d\d-\d\d|\d{8}", text)
        # A date with a separator and nothing behind it.
        if not found or len(text) == found.end() + 1:
            raise ValueError(f"Invalid isoformat string: {text!r}")
        day = _date.fromisoformat(found.group())
        clock = _clock_of(text[found.end() + 1:], text) if found.end() < len(text) else ()
        return cls(day.year, day.month, day.day, *clock)

    @classmethod
    def strptime(cls, text, format):
        return _parse(cls, text, format)

    def date(self):
        return _date(self._year, self._month, self._day)

    def time(self):
        return _clock_time(self._hour, self._minute, self._second, self._microsecond)

    def timetz(self):
        return self.time().replace(tzinfo=self._tz)

    def timetuple(self):
        dst = self.dst()
        return _time.struct_time((self._year, self._month, self._day, self._hour, self._minute, self._second,
                                  self.weekday(), self._day_of_year(), -1 if dst is None else int(bool(dst))))

    def utctimetuple(self):
        offset = self.utcoffset() or timedelta(0)
        return _time.struct_time((*(self.replace(tzinfo=None) - offset).timetuple()[:8], 0))

    def timestamp(self):
        if self._tz is None:
            # mktime() knows whether it was summer time on that day.
            return _time.mktime(self.timetuple()) + self._microsecond / 1000000
        return (self._us() - (_EPOCH * _DAY)) / 1000000

    def replace(self, year=None, month=None, day=None, hour=None, minute=None, second=None, microsecond=None,
                tzinfo=True):
        given = (year, month, day, hour, minute, second, microsecond)
        own = (self._year, self._month, self._day, self._hour, self._minute, self._second, self._microsecond)
        return type(self)(*(o if g is None else g for g, o in zip(given, own)), self._tz if tzinfo is True else tzinfo)

    def astimezone(self, tz=None):
        seconds = self.timestamp()
        if tz is None:
            local = _time.localtime(seconds)
            tz = timezone(timedelta(seconds=local.tm_gmtoff), local.tm_zone)
        elif tz is self._tz:
            return self
        offset = self.utcoffset()
        if offset is None:
            # Without a zone of its own the time counts as local.
            offset = timedelta(seconds=_time.localtime(seconds).tm_gmtoff)
        return tz.fromutc((self.replace(tzinfo=None) - offset).replace(tzinfo=tz))

    def isoformat(self, sep="T", timespec="auto"):
        clock = _clock_text(self._hour, self._minute, self._second, self._microsecond, timespec)
        return f"{self._year:04d}-{self._month:02d}-{self._day:02d}{sep}{clock}{_offset_text(self.utcoffset())}"

    def strftime(self, format):
        return _format(format, self.timetuple(), self._microsecond, self.utcoffset(), self.tzname())

    def __str__(self):
        return self.isoformat(" ")

    def __repr__(self):
        return f"datetime.{type(self).__qualname__}({self._year}, {self._month}, {self._day}, {self._clock_repr()})"

    def _us(self):
        """Microseconds since the day before 0001-01-01, in UTC where a zone is known."""
        offset = self.utcoffset()
        return self.toordinal() * _DAY + self._us_of_day() - (offset._us if offset is not None else 0)

    def __add__(self, other):
        if not isinstance(other, timedelta):
            return NotImplemented
        return type(self)._of(self.toordinal(), self._us_of_day() + other._us, self._tz)

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, timedelta):
            return self + -other
        if not isinstance(other, datetime):
            return NotImplemented
        if (self.utcoffset() is None) != (other.utcoffset() is None):
            raise TypeError("can't subtract offset-naive and offset-aware datetimes")
        return timedelta(microseconds=self._us() - other._us())

    def _key(self, other):
        if not isinstance(other, datetime):
            if isinstance(other, date):
                raise TypeError(f"can't compare datetime.datetime to datetime.{type(other).__name__}")
            return None
        if (self.utcoffset() is None) != (other.utcoffset() is None):
            raise TypeError("can't compare offset-naive and offset-aware datetimes")
        return self._us(), other._us()

    def __hash__(self):
        return hash(self._us())

    def __eq__(self, other):
        if not isinstance(other, datetime):
            # Never equal, where an order of the two is an error.
            return False if isinstance(other, date) else NotImplemented
        return (self.utcoffset() is None) == (other.utcoffset() is None) and self._us() == other._us()


datetime.min, datetime.max = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)
datetime.resolution = timedelta(microseconds=1)


def _us_of(seconds):
    """Whole microseconds, ties to even."""
    whole = int(seconds // 1)
    return whole * 1000000 + round(seconds % 1 * 1000000)


# Of the locale in which the process runs, as strptime() has them in C.
_MONTHS = [_time.strftime("%b", (1900, m, 1, 0, 0, 0, 0, 1, -1)).lower() for m in range(1, 13)]
_LONG_MONTHS = [_time.strftime("%B", (1900, m, 1, 0, 0, 0, 0, 1, -1)).lower() for m in range(1, 13)]
_DAYS = [_time.strftime("%a", (1900, 1, 1, 0, 0, 0, d, 1, -1)).lower() for d in range(7)]
_LONG_DAYS = [_time.strftime("%A", (1900, 1, 1, 0, 0, 0, d, 1, -1)).lower() for d in range(7)]
_PARTS = {"Y": r"\d{4}", "m": r"1[0-2]|0?[1-9]", "d": r"3[01]|[12]\d|0?[1-9]", "H": r"2[0-3]|[01]\d|\d",
          "I": r"1[0-2]|0?[1-9]", "M": r"[0-5]\d|\d", "S": r"6[01]|[0-5]\d|\d", "f": r"\d{1,6}", "y": r"\d\d",
          "z": r"Z|[+-]\d\d:?[0-5]\d(?::?[0-5]\d)?", "p": r"am|pm", "j": r"\d{1,3}", "b": "|".join(_MONTHS),
          "B": "|".join(_LONG_MONTHS), "a": "|".join(_DAYS), "A": "|".join(_LONG_DAYS)}
# Spelled out first, so that the table above has no entries of more than one part.
_SHORT = {"%T": "%H:%M:%S", "%R": "%H:%M", "%F": "%Y-%m-%d", "%D": "%m/%d/%y"}


def _parse(cls, text, format):
    names, pattern, at = [], "", 0
    for short, long in _SHORT.items():
        format = format.replace(short, long)
    while at < len(format):
        c = format[at]
        at += 1
        if c.isspace():
            # Any space fits any number of them, as in C.
            pattern += r"\s+"
        elif c != "%":
            pattern += _re.escape(c)
        else:
            code = format[at:at + 1]
            at += 1
            if code != "%" and code not in _PARTS:
                raise ValueError(f"'{code}' is a bad directive in format '{format}'" if code
                                 else f"stray % in format '{format}'")
            if code == "%":
                pattern += "%"
            else:
                names.append(code)
                pattern += f"({_PARTS[code]})"
    found = _re.match(pattern, text, _re.IGNORECASE)
    if not found:
        raise ValueError(f"time data {text!r} does not match format {format!r}")
    if found.end() != len(text):
        raise ValueError(f"unconverted data remains: {text[found.end():]}")
    values = {name: value.lower() for name, value in zip(names, found.groups())}
    year = int(values.get("Y", 1900))
    if "y" in values:
        # POSIX: 69 to 99 are of the last century.
        year = int(values["y"]) + (2000 if int(values["y"]) < 69 else 1900)
    month, day = int(values.get("m", 1)), int(values.get("d", 1))
    for code, known in (("b", _MONTHS), ("B", _LONG_MONTHS)):
        if code in values:
            month = known.index(values[code]) + 1
    if "j" in values:
        year, month, day = _date_of(_days_before(year) + int(values["j"]))
    hour = int(values.get("H", 0))
    if "I" in values:
        # 12 is the first hour of its half of the day.
        hour = int(values["I"]) % 12 + (12 if values.get("p") == "pm" else 0)
    tz = _clock_of("00" + values["z"].upper(), text)[4] if "z" in values else None
    return cls(year, month, day, hour, int(values.get("M", 0)), int(values.get("S", 0)),
               int(values.get("f", "0").ljust(6, "0")), tz)
