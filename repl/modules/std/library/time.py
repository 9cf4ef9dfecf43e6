"""time: clocks, and times as fields and texts."""
import _time
from _time import monotonic, monotonic_ns, perf_counter, perf_counter_ns, process_time, sleep, time, time_ns

_NAMES = ("tm_year", "tm_mon", "tm_mday", "tm_hour", "tm_min", "tm_sec", "tm_wday", "tm_yday", "tm_isdst")


class struct_time(tuple):
    """A time as nine ints, with its zone where that is known."""

    n_fields, n_sequence_fields, n_unnamed_fields = 11, 9, 0

    def __new__(cls, fields):
        fields = tuple(fields)
        if not 9 <= len(fields) <= 11:
            raise TypeError(f"time.struct_time() takes a 9- to 11-sequence ({len(fields)}-sequence given)")
        t = tuple.__new__(cls, fields[:9])
        t._gmtoff, t._zone = fields[9] if len(fields) > 9 else None, fields[10] if len(fields) > 10 else None
        return t

    tm_year, tm_mon, tm_mday = property(lambda t: t[0]), property(lambda t: t[1]), property(lambda t: t[2])
    tm_hour, tm_min, tm_sec = property(lambda t: t[3]), property(lambda t: t[4]), property(lambda t: t[5])
    tm_wday, tm_yday, tm_isdst = property(lambda t: t[6]), property(lambda t: t[7]), property(lambda t: t[8])
    tm_gmtoff, tm_zone = property(lambda t: t._gmtoff), property(lambda t: t._zone)

    def __repr__(self):
        return f"time.struct_time({', '.join(f'{name}={value}' for name, value in zip(_NAMES, self))})"


def _whole(seconds):
    whole = int(time() if seconds is None else seconds // 1)
    if not -(1 << 63) <= whole < 1 << 63:
        raise OverflowError("timestamp out of range for platform time_t")
    return whole


def localtime(seconds=None):
    """The fields of a time on this machine; now without an argument."""
    return struct_time(_time.fields(_whole(seconds), True))


def gmtime(seconds=None):
    """The fields of a time in UTC; now without an argument."""
    return struct_time(_time.fields(_whole(seconds), False))


def mktime(t):
    """Seconds since 1970 of the fields of a local time."""
    return float(_time.seconds(t))


def strftime(format, t=None):
    """A time as text; now without a time."""
    t = localtime() if t is None else t
    if not isinstance(t, tuple):
        raise TypeError("Tuple or struct_time argument required")
    if isinstance(t, struct_time):
        return _time.text(format, t, t.tm_zone, t.tm_gmtoff)
    return _time.text(format, t)


def asctime(t=None):
    """As 'Thu Jan  1 00:00:00 1970'; now without a time."""
    return strftime("%a %b %e %H:%M:%S %Y", t)


def ctime(seconds=None):
    """The same of seconds since 1970."""
    return asctime(localtime(seconds))


def process_time_ns():
    """Nanoseconds of CPU time."""
    return int(process_time() * 1e9)


# The zone by its rules of 2024: the clock is not read by an import.
_january, _july = localtime(1704067200), localtime(1719792000)
_standard, _summer = (_july, _january) if _january.tm_isdst > 0 else (_january, _july)
timezone, altzone = -_standard.tm_gmtoff, -_summer.tm_gmtoff
daylight = int(_summer.tm_isdst > 0)
tzname = (_standard.tm_zone, _summer.tm_zone)
