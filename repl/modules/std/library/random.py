"""random: the numbers of CPython's generator, and what is drawn from them in the same way."""
import _random
from bisect import bisect as _bisect
from itertools import accumulate as _accumulate
from math import ceil as _ceil, cos as _cos, e as _e, exp as _exp, floor as _floor, log as _log, pi as _pi
from math import sin as _sin, sqrt as _sqrt

_TWO_PI = 2.0 * _pi
# CPython's constants, computed as it does: equal seeds must give equal numbers.
_NORMAL = 4 * _exp(-0.5) / _sqrt(2.0)
_LOG4 = _log(4.0)
_GAMMA = 1.0 + _log(4.5)


class Random:
    """A generator of its own."""

    def __init__(self, x=None):
        self._random, self._bits, self._seed, self._state, self._set_state = _random.generator(x)
        self.gauss_next = None

    def seed(self, a=None, version=2):
        self._seed(a)
        self.gauss_next = None

    def getstate(self):
        # 3: the version of the state in CPython.
        return (3, self._state(), self.gauss_next)

    def setstate(self, state):
        self._set_state(state[1])
        self.gauss_next = state[2]

    def random(self):
        return self._random()

    def getrandbits(self, k):
        return self._bits(k)

    def randbytes(self, n):
        out = bytearray()
        # In words of 32 bits with the low byte first, as CPython takes them from the generator.
        for i in range(n // 4):
            out += self.getrandbits(32).to_bytes(4, "little")
        if n % 4:
            out += self.getrandbits(n % 4 * 8).to_bytes(n % 4, "little")
        return bytes(out)

    def _below(self, n):
        k = n.bit_length()
        # Bits are drawn again until they are below n: a remainder would prefer small numbers.
        r = self.getrandbits(k)
        while r >= n:
            r = self.getrandbits(k)
        return r

    def randrange(self, start, stop=None, step=1):
        if stop is None:
            start, stop = 0, start
        if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)):
            raise TypeError("randrange() takes ints")
        if step == 0:
            raise ValueError("zero step for randrange()")
        width = stop - start
        n = (width + step - (1 if step > 0 else -1)) // step
        if n <= 0:
            raise ValueError(f"empty range in randrange({start}, {stop}, {step})")
        return start + step * self._below(n)

    def randint(self, a, b):
        return self.randrange(a, b + 1)

    def choice(self, seq):
        if not len(seq):
            raise IndexError("Cannot choose from an empty sequence")
        return seq[self._below(len(seq))]

    def shuffle(self, x):
        # From the end on: CPython's order, and so the same permutation of a seed.
        for i in range(len(x) - 1, 0, -1):
            j = self._below(i + 1)
            x[i], x[j] = x[j], x[i]

    def choices(self, population, weights=None, *, cum_weights=None, k=1):
        n = len(population)
        if cum_weights is None:
            if weights is None:
                if n == 0:
                    raise IndexError("Cannot choose from an empty population")
                return [population[int(self.random() * n)] for _ in range(k)]
            cum_weights = list(_accumulate(weights))
        elif weights is not None:
            raise TypeError("Cannot specify both weights and cumulative weights")
        if len(cum_weights) != n:
            raise ValueError("The number of weights does not match the population")
        total = cum_weights[-1] + 0.0
        if total <= 0.0:
            raise ValueError("Total of weights must be greater than zero")
        # `n - 1` keeps a rounded product with the total from leading past the end.
        return [population[_bisect(cum_weights, self.random() * total, 0, n - 1)] for _ in range(k)]

    def sample(self, population, k, *, counts=None):
        if counts is not None:
            ends = list(_accumulate(counts))
            return [population[_bisect(ends, s)] for s in self.sample(range(ends[-1]), k)]
        if isinstance(population, (set, frozenset, dict)):
            raise TypeError("Population must be a sequence.  For dicts or sets, use sorted(d).")
        n = len(population)
        if not 0 <= k <= n:
            raise ValueError("Sample larger than population or is negative")
        # Few out of many are remembered, many out of few are taken out of a copy.
        limit = 21
        # CPython's estimate of where a set becomes smaller than a list; it decides which numbers are drawn.
        if k > 5:
            limit += 4 ** _ceil(_log(k * 3, 4))
        out = []
        if n <= limit:
            pool = list(population)
            for i in range(k):
                j = self._below(n - i)
                out.append(pool[j])
                pool[j] = pool[n - i - 1]
            return out
        taken = set()
        for i in range(k):
            j = self._below(n)
            while j in taken:
                j = self._below(n)
            taken.add(j)
            out.append(population[j])
        return out

    def uniform(self, a, b):
        return a + (b - a) * self.random()

    def triangular(self, low=0.0, high=1.0, mode=None):
        u = self.random()
        if high == low:
            return low
        c = 0.5 if mode is None else (mode - low) / (high - low)
        if u > c:
            u, c, low, high = 1.0 - u, 1.0 - c, high, low
        return low + (high - low) * _sqrt(u * c)

    def normalvariate(self, mu=0.0, sigma=1.0):
        while True:
            u, v = self.random(), 1.0 - self.random()
            # By the ratio of two uniform numbers.
            z = _NORMAL * (u - 0.5) / v
            if z * z / 4.0 <= -_log(v):
                return mu + z * sigma

    def gauss(self, mu=0.0, sigma=1.0):
        # Two numbers are made at a time; the other one waits for the next call.
        z, self.gauss_next = self.gauss_next, None
        if z is None:
            angle = self.random() * _TWO_PI
            radius = _sqrt(-2.0 * _log(1.0 - self.random()))
            z, self.gauss_next = _cos(angle) * radius, _sin(angle) * radius
        return mu + z * sigma

    def lognormvariate(self, mu=0.0, sigma=1.0):
        return _exp(self.normalvariate(mu, sigma))

    def expovariate(self, lambd=1.0):
        # 1 - u, since random() may be 0 and never 1.
        return -_log(1.0 - self.random()) / lambd

    def gammavariate(self, alpha, beta):
        if alpha <= 0.0 or beta <= 0.0:
            raise ValueError("gammavariate: alpha and beta must be > 0.0")
        if alpha > 1.0:
            a = _sqrt(2.0 * alpha - 1.0)
            b, c = alpha - _LOG4, alpha + a
            while True:
                u = self.random()
                # u at an end would make the logarithm below useless.
                if not 1e-7 < u < 0.9999999:
                    continue
                w = 1.0 - self.random()
                v = _log(u / (1.0 - u)) / a
                x = alpha * _exp(v)
                z, r = u * u * w, b + c * v - x
                if r + _GAMMA - 4.5 * z >= 0.0 or r >= _log(z):
                    return x * beta
        if alpha == 1.0:
            return -_log(1.0 - self.random()) * beta
        b = (_e + alpha) / _e
        while True:
            p = b * self.random()
            x = p ** (1.0 / alpha) if p <= 1.0 else -_log((b - p) / alpha)
            u = self.random()
            if u <= (x ** (alpha - 1.0) if p > 1.0 else _exp(-x)):
                return x * beta

    def betavariate(self, alpha, beta):
        y = self.gammavariate(alpha, 1.0)
        return y / (y + self.gammavariate(beta, 1.0)) if y else 0.0

    def paretovariate(self, alpha):
        return (1.0 - self.random()) ** (-1.0 / alpha)

    def weibullvariate(self, alpha, beta):
        return alpha * (-_log(1.0 - self.random())) ** (1.0 / beta)


class SystemRandom(Random):
    """Seeded by the system; seed() has no effect."""

    def seed(self, a=None, version=2):
        pass


_shared = Random()
seed = _shared.seed
getstate = _shared.getstate
setstate = _shared.setstate
random = _shared._random
getrandbits = _shared._bits
randbytes = _shared.randbytes
randrange = _shared.randrange
randint = _shared.randint
choice = _shared.choice
shuffle = _shared.shuffle
choices = _shared.choices
sample = _shared.sample
uniform = _shared.uniform
triangular = _shared.triangular
normalvariate = _shared.normalvariate
gauss = _shared.gauss
lognormvariate = _shared.lognormvariate
expovariate = _shared.expovariate
gammavariate = _shared.gammavariate
betavariate = _shared.betavariate
paretovariate = _shared.paretovariate
weibullvariate = _shared.weibullvariate
