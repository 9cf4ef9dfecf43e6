"""torch.distributions of numbers with a density."""
import math

import torch
import torch.nn.functional as F
from torch import special
from torch.distributions import (_EULER, _HALF_LOG_2PI, _KL, Distribution, ExponentialFamily, Gamma, Normal,
                                 TransformedDistribution, _drawn_gamma, _Given, _kl_normal, _kl_to_normal, _LocScale,
                                 _logits_of, _together)
from torch.distributions.transforms import StickBreakingTransform


def _uniform(d, shape, like):
    """From above 0 to below 1."""
    tiny = torch.finfo(like.dtype).tiny
    return torch.rand(d._extended_shape(shape), dtype=like.dtype, device=like.device).clamp(min=tiny)


class _Elements(Distribution):
    """Of parameters that are broadcast together, each draw an element."""

    has_rsample = True

    def _take(self, **parameters):
        values = _together(*parameters.values())
        for name, value in zip(parameters, values):
            self.__dict__[name] = value
        Distribution.__init__(self, values[0].shape)
        return values[0]


class Cauchy(_LocScale):
    mean = property(lambda self: torch.full_like(self.loc, math.nan))
    variance = property(lambda self: torch.full_like(self.loc, math.inf))

    def _draw(self, shape):
        u = torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        return torch.tan(math.pi * (u - 0.5))

    def log_prob(self, value):
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()

    def cdf(self, value):
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc


class Gumbel(_LocScale):
    mean = property(lambda self: self.loc + self.scale * _EULER)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.square())

    def _draw(self, shape):
        tiny = torch.finfo(self.loc.dtype).tiny
        u = torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device).clamp(min=tiny)
        return -torch.log(-torch.log(u))

    def log_prob(self, value):
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self):
        return self.scale.log() + (1 + _EULER)

    def cdf(self, value):
        return torch.exp(-torch.exp((self.loc - value) / self.scale))

    def icdf(self, value):
        return self.loc - self.scale * torch.log(-torch.log(value))


class _Half(_Elements):
    """The absolute values of a symmetric distribution around 0."""

    arg_constraints, of = {"scale": "positive"}, None

    def __init__(self, scale, validate_args=None):
        self._take(scale=scale)
        self.base_dist = self.of(torch.zeros_like(self.scale), self.scale)

    mode = property(lambda self: torch.zeros_like(self.scale))

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value):
        value = torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return torch.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)

    def cdf(self, value):
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        return self.base_dist.icdf((value + 1) / 2)


class HalfNormal(_Half):
    of = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.square() * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    of = Cauchy
    mean = property(lambda self: torch.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class StudentT(_Elements):
    arg_constraints = {"df": "positive", "loc": "real", "scale": "positive"}

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._take(df=df, loc=loc, scale=scale)

    mean = property(lambda self: torch.where(self.df <= 1, math.nan, self.loc))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        df = self.df
        known = self.scale.square() * df / torch.where(df > 2, df - 2, 1.0)
        return torch.where(df > 2, known, torch.where(df > 1, math.inf, math.nan))

    def rsample(self, sample_shape=()):
        if self.df.requires_grad:
            raise NotImplementedError("StudentT.rsample() has no gradient for df: sample() has none at all")
        shape = self._extended_shape(sample_shape)
        x = torch.randn(shape, dtype=self.df.dtype, device=self.df.device)
        with torch.no_grad():
            z = 2 * _drawn_gamma((0.5 * self.df).expand(shape).contiguous())
        return self.loc + self.scale * x * torch.rsqrt(z / self.df)

    def log_prob(self, value):
        y, df = (value - self.loc) / self.scale, self.df
        norm = (self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi) + torch.lgamma(0.5 * df)
                - torch.lgamma(0.5 * (df + 1)))
        return -0.5 * (df + 1) * torch.log1p(y.square() / df) - norm

    def entropy(self):
        df = self.df
        log_beta = torch.lgamma(0.5 * df) + math.lgamma(0.5) - torch.lgamma(0.5 * (df + 1))
        return (self.scale.log() + 0.5 * (df + 1) * (torch.digamma(0.5 * (df + 1)) - torch.digamma(0.5 * df))
                + 0.5 * df.log() + log_beta)


class Chi2(Gamma):
    arg_constraints = {"df": "positive"}

    def __init__(self, df, validate_args=None):
        self.df, = _together(df)
        super().__init__(0.5 * self.df, 0.5)

    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))


class FisherSnedecor(_Elements):
    has_rsample = False
    arg_constraints = {"df1": "positive", "df2": "positive"}

    def __init__(self, df1, df2, validate_args=None):
        self._take(df1=df1, df2=df2)

    @property
    def mean(self):
        return torch.where(self.df2 > 2, self.df2 / torch.where(self.df2 > 2, self.df2 - 2, 1.0), math.nan)

    @property
    def mode(self):
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 <= 2, math.nan, found)

    @property
    def variance(self):
        a, b = self.df1, torch.where(self.df2 > 4, self.df2, 5.0)
        known = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return torch.where(self.df2 > 4, known, math.nan)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            parts = [_drawn_gamma((0.5 * df).expand(shape).contiguous()) / (0.5 * df) for df in (self.df1, self.df2)]
            return (parts[0] / parts[1]).clamp(min=torch.finfo(self.df1.dtype).tiny)

    def log_prob(self, value):
        a, b, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        return (torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b) + a * ratio.log() + (a - 1) * torch.log(value)
                - (a + b) * torch.log1p(ratio * value))


class Pareto(_Elements):
    arg_constraints = {"scale": "positive", "alpha": "positive"}

    def __init__(self, scale, alpha, validate_args=None):
        self._take(scale=scale, alpha=alpha)

    mode = property(lambda self: self.scale)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def rsample(self, sample_shape=()):
        return self.icdf(_uniform(self, sample_shape, self.scale))

    def log_prob(self, value):
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * torch.log(value)

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())

    def cdf(self, value):
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value):
        return self.scale * torch.exp(-torch.log1p(-value) / self.alpha)


class Weibull(_Elements):
    arg_constraints = {"scale": "positive", "concentration": "positive"}

    def __init__(self, scale, concentration, validate_args=None):
        self._take(scale=scale, concentration=concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()

    mean = property(lambda self: self.scale * torch.exp(torch.lgamma(1 + self.concentration_reciprocal)))

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self):
        k = self.concentration_reciprocal
        return self.scale.square() * (torch.exp(torch.lgamma(1 + 2 * k)) - torch.exp(2 * torch.lgamma(1 + k)))

    def rsample(self, sample_shape=()):
        return self.icdf(_uniform(self, sample_shape, self.scale))

    def log_prob(self, value):
        k, ratio = self.concentration, value / self.scale
        return (k / self.scale).log() + (k - 1) * ratio.log() - ratio ** k

    def entropy(self):
        k = self.concentration_reciprocal
        return _EULER * (1 - k) + torch.log(self.scale * k) + 1

    def cdf(self, value):
        return -torch.expm1(-((value / self.scale) ** self.concentration))

    def icdf(self, value):
        return self.scale * (-torch.log1p(-value)) ** self.concentration_reciprocal


class InverseGamma(_Elements):
    has_rsample = False
    arg_constraints = {"concentration": "positive", "rate": "positive"}

    def __init__(self, concentration, rate, validate_args=None):
        self._take(concentration=concentration, rate=rate)

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self):
        a = self.concentration
        return torch.where(a > 1, self.rate / torch.where(a > 1, a - 1, 1.0), math.inf)

    @property
    def variance(self):
        a = torch.where(self.concentration > 2, self.concentration, 3.0)
        known = self.rate.square() / ((a - 1).square() * (a - 2))
        return torch.where(self.concentration > 2, known, math.inf)

    def sample(self, sample_shape=()):
        return Gamma(self.concentration, self.rate).sample(sample_shape).reciprocal()

    def log_prob(self, value):
        a, b = self.concentration, self.rate
        return torch.xlogy(a, b) - torch.lgamma(a) - (a + 1) * torch.log(value) - b / value

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + torch.lgamma(a) - (1 + a) * torch.digamma(a)


class Kumaraswamy(_Elements):
    arg_constraints = {"concentration1": "positive", "concentration0": "positive"}

    def __init__(self, concentration1, concentration0, validate_args=None):
        self._take(concentration1=concentration1, concentration0=concentration0)

    def _moment(self, n):
        a, b = 1 + n / self.concentration1, self.concentration0
        return torch.exp(b.log() + torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b))

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).square())

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        found = (torch.log1p(-a.reciprocal()) - torch.log(b - a.reciprocal())) / a
        return torch.where((a < 1) | (b < 1), math.nan, found.exp())

    def rsample(self, sample_shape=()):
        return self.icdf(_uniform(self, sample_shape, self.concentration1))

    def log_prob(self, value):
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * torch.log(value) + (b - 1) * torch.log1p(-(value ** a))

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * (torch.digamma(b + 1) + _EULER) - a.log() - b.log()

    def cdf(self, value):
        return 1 - (1 - value ** self.concentration1) ** self.concentration0

    def icdf(self, value):
        return (1 - (1 - value) ** self.concentration0.reciprocal()) ** self.concentration1.reciprocal()


class LogisticNormal(TransformedDistribution):
    """Parts of 1 whose shares are normal before the logistic function."""

    arg_constraints = {"loc": "real", "scale": "positive"}

    def __init__(self, loc, scale, validate_args=None):
        self._normal = Normal(loc, scale)
        base = self._normal if self._normal.batch_shape else self._normal.expand((1,))
        super().__init__(base, StickBreakingTransform())

    loc = property(lambda self: self._normal.loc)
    scale = property(lambda self: self._normal.scale)


class VonMises(_Elements):
    """Of angles."""

    has_rsample = False
    arg_constraints = {"loc": "real", "concentration": "positive"}

    def __init__(self, loc, concentration, validate_args=None):
        self._take(loc=loc, concentration=concentration)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: 1 - special.i1e(self.concentration) / special.i0e(self.concentration))

    def log_prob(self, value):
        k = self.concentration
        return k * torch.cos(value - self.loc) - math.log(2 * math.pi) - (special.i0e(k).log() + k)

    def sample(self, sample_shape=()):
        """Best and Fisher's rejection, a batch of attempts at a time until each place has an angle."""
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            k = self.concentration.detach().expand(shape).double()
            tau = 1 + (1 + 4 * k * k).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = torch.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))
            out, missing = torch.zeros_like(k), torch.ones_like(k, dtype=torch.bool)
            while missing.any():
                u1, u2, u3 = [torch.rand(shape, dtype=torch.float64, device=k.device) for _ in range(3)]
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                taken = missing & ((c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0))
                out = torch.where(taken, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), out)
                missing = missing & ~taken
            angle = (out + math.pi + self.loc.detach().double()) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)


_NEAR_HALF = 0.499, 0.501  # probabilities between them make quotients of small numbers


class ContinuousBernoulli(_Given, ExponentialFamily):
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=_NEAR_HALF, validate_args=None):
        self._value, self._lims = self._take(probs, logits), lims
        Distribution.__init__(self, self._value.shape)

    def _cut(self):
        """(the probability, or one away from the half; which is away)"""
        p = self.probs
        p = p.clamp(torch.finfo(p.dtype).eps, 1 - torch.finfo(p.dtype).eps)
        away = (p <= self._lims[0]) | (p > self._lims[1])
        return torch.where(away, p, self._lims[0]), away, p - 0.5

    def _log_norm(self):
        p, away, x = self._cut()
        below = torch.where(p <= 0.5, p, 0.0)
        above = torch.where(p >= 0.5, p, 1.0)
        found = (torch.log1p(-p) - p.log()).abs().log() - torch.where(p <= 0.5, torch.log1p(-2 * below),
                                                                       torch.log(2 * above - 1))
        return torch.where(away, found, math.log(2.0) + (4 / 3 + 104 / 45 * x * x) * x * x)

    @property
    def mean(self):
        p, away, x = self._cut()
        return torch.where(away, p / (2 * p - 1) + 1 / (torch.log1p(-p) - p.log()), 0.5 + (1 / 3 + 16 / 45 * x * x) * x)

    @property
    def variance(self):
        p, away, x = self._cut()
        found = p * (p - 1) / (1 - 2 * p).square() + 1 / (torch.log1p(-p) - p.log()).square()
        return torch.where(away, found, 1 / 12 - (1 / 15 - 128 / 945 * x * x) * x * x)

    def log_prob(self, value):
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_norm()

    def cdf(self, value):
        p, away, _ = self._cut()
        found = (p ** value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        found = torch.where(away, found, value)
        return torch.where(value <= 0, 0.0, torch.where(value >= 1, 1.0, found))

    def icdf(self, value):
        p, away, _ = self._cut()
        found = (torch.log1p(-p + value * (2 * p - 1)) - torch.log1p(-p)) / (p.log() - torch.log1p(-p))
        return torch.where(away, found, value)

    def rsample(self, sample_shape=()):
        return self.icdf(_uniform(self, sample_shape, self._value))

    def entropy(self):
        p = self.probs
        low, high = torch.log1p(-p), p.log()
        return self.mean * (low - high) - self._log_norm() - low


# --- Kullback-Leibler divergences


def _kl_cauchy(p, q):
    return ((p.scale + q.scale).square() + (p.loc - q.loc).square()).log() - (4 * p.scale * q.scale).log()


def _kl_gumbel(p, q):
    ratio, d = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - d + ratio * _EULER + torch.exp(d + torch.lgamma(1 + ratio)) - (1 + _EULER)


def _kl_pareto(p, q):
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return torch.where(p.scale < q.scale, math.inf, found)


def _kl_normal_gumbel(p, q):
    d, square = (p.loc - q.loc) / q.scale, (p.scale / q.scale).square()
    return d + torch.exp(-d + 0.5 * square) - 0.5 * square.log() - 0.5 - _HALF_LOG_2PI


def _kl_continuous_bernoulli(p, q):
    return (p.mean * (p.logits - q.logits) + p._log_norm() + torch.log1p(-p.probs) - q._log_norm()
            - torch.log1p(-q.probs))


_KL.update({(Cauchy, Cauchy): _kl_cauchy, (Gumbel, Gumbel): _kl_gumbel, (Pareto, Pareto): _kl_pareto,
            (HalfNormal, HalfNormal): lambda p, q: _kl_normal(p.base_dist, q.base_dist),
            (Gumbel, Normal): _kl_to_normal, (Normal, Gumbel): _kl_normal_gumbel,
            (ContinuousBernoulli, ContinuousBernoulli): _kl_continuous_bernoulli})
