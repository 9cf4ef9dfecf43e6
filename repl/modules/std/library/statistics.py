"""statistics: of lists of numbers."""
from math import exp as _exp, fsum as _fsum, log as _log, sqrt as _sqrt


class StatisticsError(ValueError):
    pass


def _values(data):
    values = list(data)
    if not values:
        raise StatisticsError("no data")
    return values


def fmean(data):
    values = _values(data)
    return _fsum(values) / len(values)


def mean(data):
    values = _values(data)
    if all(isinstance(v, int) for v in values):
        # Integers have an exact mean; where it is none of them Python gives a float.
        total = sum(values)
        return total // len(values) if total % len(values) == 0 else total / len(values)
    return _fsum(values) / len(values)


def geometric_mean(data):
    return _exp(fmean([_log(v) for v in data]))


def harmonic_mean(data):
    values = _values(data)
    return len(values) / _fsum(1 / v for v in values)


def median(data):
    values = sorted(_values(data))
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def median_low(data):
    values = sorted(_values(data))
    return values[(len(values) - 1) // 2]


def median_high(data):
    values = sorted(_values(data))
    return values[len(values) // 2]


def mode(data):
    counts = {}
    for v in _values(data):
        counts[v] = counts.get(v, 0) + 1
    # max() keeps the first of equal counts, as Python's mode() does.
    return max(counts, key=lambda v: counts[v])


def multimode(data):
    counts = {}
    for v in data:
        counts[v] = counts.get(v, 0) + 1
    most = max(counts.values(), default=0)
    return [v for v, n in counts.items() if n == most]


def _squares(values, center):
    # About the mean in a second pass: the difference of two large sums would lose digits.
    center = fmean(values) if center is None else center
    return _fsum((v - center) ** 2 for v in values)


def variance(data, xbar=None):
    values = list(data)
    if len(values) < 2:
        raise StatisticsError("variance requires at least two data points")
    return _squares(values, xbar) / (len(values) - 1)


def pvariance(data, mu=None):
    values = _values(data)
    return _squares(values, mu) / len(values)


def stdev(data, xbar=None):
    return _sqrt(variance(data, xbar))


def pstdev(data, mu=None):
    return _sqrt(pvariance(data, mu))


def quantiles(data, *, n=4, method="exclusive"):
    values = sorted(data)
    m = len(values) + 1 if method == "exclusive" else len(values) - 1
    out = []
    for i in range(1, n):
        if method == "exclusive":
            # Inside of the data at both ends, where the method would look beyond it.
            j = min(max(i * m // n, 1), len(values) - 1)
            delta = i * m - j * n
            out.append((values[j - 1] * (n - delta) + values[j] * delta) / n)
        else:
            j, delta = divmod(i * m, n)
            out.append((values[j] * (n - delta) + values[min(j + 1, len(values) - 1)] * delta) / n)
    return out
