# Dates, times, differences and zones. Nothing here depends on the machine's own zone.
import datetime
import time
from datetime import date, datetime as dt, timedelta, timezone


def error(f):
    try:
        return f()
    except Exception as e:
        return type(e).__name__


print(date(2020, 2, 29), repr(date(2020, 2, 29)), date(2020, 2, 29).isoformat(), str(date.min), repr(date.max))
for bad in (lambda: date(2021, 2, 29), lambda: date(2020, 13, 1), lambda: date(0, 1, 1), lambda: date(2020, 1, 1.5),
            lambda: date.max + timedelta(1), lambda: date.fromisoformat("2020-1-1"), lambda: date.fromordinal(0)):
    print(error(bad))
for year, month, day in ((1, 1, 1), (1900, 3, 1), (1999, 12, 31), (2000, 2, 29), (2024, 12, 31), (9999, 12, 31)):
    d = date(year, month, day)
    print(d.toordinal(), date.fromordinal(d.toordinal()) == d, d.weekday(), d.isoweekday(), d.timetuple().tm_yday,
          d.strftime("%a %d %b %Y, day %j, %U"), d.ctime(), f"{d:%d/%m/%y}")
print(date(2024, 3, 1) - date(2024, 2, 1), date(2024, 1, 31) + timedelta(days=30, hours=23), date(2020, 1, 1) - timedelta(1))
print(date(2020, 1, 1) < date(2020, 1, 2), date(2020, 1, 1) == date(2020, 1, 1), len({date(2020, 1, 1), date(2020, 1, 1)}))
print(date(2020, 5, 6).replace(day=1), date.fromisoformat("20200203"), sorted([date(2021, 1, 1), date(2020, 1, 1)]))
print(date.today() <= date.today(), error(lambda: date(2020, 1, 1) < 3), date(2020, 1, 1) == 3, date(2020, 1, 1) != dt(2020, 1, 1))

for t in (timedelta(), timedelta(1), timedelta(seconds=-1), timedelta(hours=25, microseconds=7), timedelta(weeks=2, minutes=1.5),
          timedelta(milliseconds=0.0005), timedelta(microseconds=0.5), timedelta(microseconds=1.5), timedelta(days=0.1),
          timedelta.max, timedelta.min):
    print(repr(t), str(t), t.days, t.seconds, t.microseconds, t.total_seconds(), bool(t), -t if t < timedelta.max else "")
a, b = timedelta(minutes=7), timedelta(seconds=100)
print(a + b, a - b, a * 3, 3 * a, a / b, a // b, a % b, divmod(a, b), a / 4, a // 4, a * 0.3, a / 0.7, abs(b - a), +a)
print(a > b, a >= a, a == timedelta(seconds=420), hash(a) == hash(timedelta(seconds=420)), sum([a, b], timedelta()))
print(error(lambda: timedelta("1")), error(lambda: timedelta(10**10)), error(lambda: a + 1), error(lambda: a < 1), error(lambda: a / 0))

x = dt(2024, 2, 28, 23, 59, 58, 1500)
print(x, repr(x), x.isoformat(), x.isoformat(" ", "minutes"), x.isoformat(timespec="milliseconds"), dt(2024, 1, 1))
print(repr(dt(2024, 1, 1)), repr(dt(2024, 1, 1, 5, 6, 7)), x.date(), x.time(), x.weekday(), x.year, x.hour, x.microsecond)
print(x + timedelta(seconds=2), x - timedelta(days=59), x - dt(2024, 1, 1), (x - dt(2025, 1, 1)).days, x.replace(year=2023, microsecond=0))
print(x.strftime("%Y-%m-%d %H:%M:%S.%f|%z|%Z|%%f|%I %p"), f"{x:%H:%M}", f"{x}", format(x, ""), x.ctime())
print(x < dt(2024, 3, 1), x == dt(2024, 2, 28, 23, 59, 58, 1500), max(x, dt(2030, 1, 1)), error(lambda: x < date(2024, 1, 1)), x == date(2024, 2, 28))
print(isinstance(x, date), issubclass(dt, date), hash(x) == hash(x.replace()), dt.combine(date(2020, 1, 2), datetime.time(3, 4)))
print(dt.utcfromtimestamp(0), dt.utcfromtimestamp(1e9 + 0.25), dt.utcfromtimestamp(-0.5), dt.fromtimestamp(86400).timestamp())
print(dt.now() - dt.now() < timedelta(0), abs(dt.now().timestamp() - time.time()) < 60, dt.today().date() in (date.today(), date.today() - timedelta(1)))
for text in ("2020-01-02", "2020-01-02T03:04", "2020-01-02 03:04:05.678", "20200102T030405", "2020-01-02T03:04:05+05:30", "2020-01-02T03Z",
             "2020-01-02T", "2020-01-02T3", "x"):
    print(error(lambda: repr(dt.fromisoformat(text))))
for text, form in (("2020-01-02 03:04:05", "%Y-%m-%d %H:%M:%S"), ("1 Feb 99, 11PM", "%d %b %y, %I%p"), ("Dec 5 2021", "%b %d %Y"),
                   ("12:00:01.25 +0100", "%H:%M:%S.%f %z"), ("60%", "%j%%"), ("2020", "%m"), ("2020-01-02x", "%Y-%m-%d"), ("a", "%Q")):
    print(error(lambda: repr(dt.strptime(text, form))))

utc, east = timezone.utc, timezone(timedelta(hours=5, minutes=30))
print(utc, repr(utc), east, repr(east), timezone(timedelta(hours=-1), "HERE"), repr(timezone(-timedelta(minutes=90), "HERE")), utc == timezone(timedelta(0)))
y = dt(2020, 6, 1, 12, tzinfo=utc)
print(y, repr(y), y.timestamp(), y.astimezone(east), y == y.astimezone(east), hash(y) == hash(y.astimezone(east)), y.utcoffset(), y.tzname())
print(y.astimezone(east).strftime("%H:%M %z %Z"), y - y.astimezone(east), error(lambda: y - dt(2020, 1, 1)), y == dt(2020, 6, 1, 12), error(lambda: y < dt(2020, 1, 1)))
print(dt.fromtimestamp(0, utc), dt.fromtimestamp(1.5, east), repr(dt.fromtimestamp(0, tz=utc)), error(lambda: timezone(timedelta(1))), y.astimezone().timestamp())
print(datetime.time(1, 2, 3), repr(datetime.time(1, 2)), datetime.time(23, 59, 59, 5).isoformat(), datetime.time(1, tzinfo=utc), datetime.time(1) < datetime.time(2), error(lambda: datetime.time(24)))
print(datetime.time.fromisoformat("04:05:06.5"), datetime.time(9).strftime("%H-%M"), datetime.time.max, datetime.UTC is utc)


class Cold(datetime.tzinfo):
    def utcoffset(self, at): return timedelta(hours=-3)
    def dst(self, at): return timedelta(0)
    def tzname(self, at): return "COLD"


z = dt(2020, 1, 1, tzinfo=Cold())
print(z, z.tzname(), z.astimezone(utc), utc.tzname(None), y.astimezone(Cold()).strftime("%c %Z"))

g = time.gmtime(1e9)
print(g, g.tm_year, g[0], len(g), g[:3], isinstance(g, tuple), g == time.gmtime(1000000000), time.asctime(g))
print(time.strftime("%Y-%m-%d %H:%M:%S", g), time.strftime("%j %p", (2020, 2, 1, 13, 0, 0, 5, 32, -1)), repr(time.strftime("", g)), len(time.strftime("%500Y", g)))
print(time.mktime(time.localtime(1e9)), time.mktime((2001, 9, 9, 0, 0, 0, 0, 0, -1)) % 60, time.localtime().tm_year >= 2024, len(time.ctime(0)))
for bad in (lambda: time.strftime("%Y", 5), lambda: time.strftime("%Y", (1, 2)), lambda: time.strftime("%m", (2020, 13, 1, 0, 0, 0, 0, 1, 0)),
            lambda: time.gmtime(1e20), lambda: time.localtime("1"), lambda: time.strftime(3)):
    print(error(bad))
