"""datetime: the time now, as text; and differences."""
import time as _time


class timedelta:
    def __init__(self, days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0):
        self._seconds = (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds \
            + milliseconds / 1000 + microseconds / 1000000

    def total_seconds(self):
        return float(self._seconds)

    @property
    def days(self):
        return int(self._seconds // 86400)

    @property
    def seconds(self):
        return int(self._seconds % 86400)

    def __str__(self):
        days, rest = divmod(self._seconds, 86400)
        whole = int(rest)
        out = f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
        micro = round((rest - whole) * 1000000)
        out += f".{micro:06d}" if micro else ""
        return f"{int(days)} day{'s' if abs(days) != 1 else ''}, {out}" if days else out


class timezone:
    utc = None


class datetime:
    def __init__(self, seconds):
        self._seconds = seconds

    @classmethod
    def now(cls, tz=None):
        return cls(_time.time())

    today = utcnow = now

    @classmethod
    def fromtimestamp(cls, seconds, tz=None):
        return cls(seconds)

    def timestamp(self):
        return self._seconds

    def strftime(self, format):
        return _time.strftime(format.replace("%f", f"{int(self._seconds % 1 * 1000000):06d}"), int(self._seconds))

    def isoformat(self, sep="T", timespec="auto"):
        if timespec == "seconds":
            return self.strftime(f"%Y-%m-%d{sep}%H:%M:%S")
        return self.strftime(f"%Y-%m-%d{sep}%H:%M:%S.%f")

    def __str__(self):
        return self.isoformat(" ")

    def __format__(self, spec):
        return self.strftime(spec) if spec else str(self)

    def __sub__(self, other):
        if isinstance(other, datetime):
            return timedelta(seconds=self._seconds - other._seconds)
        return datetime(self._seconds - other.total_seconds())

    def __add__(self, other):
        return datetime(self._seconds + other.total_seconds())

    def __getattr__(self, name):
        codes = {"year": "%Y", "month": "%m", "day": "%d", "hour": "%H", "minute": "%M", "second": "%S"}
        if name not in codes:
            raise AttributeError(f"'datetime' object has no attribute '{name}'")
        return int(self.strftime(codes[name]))


date = datetime
