"""torch.distributions: densities, moments and draws. Parameters are tensors or numbers, which are broadcast."""
import importlib
import math

import torch
import torch.nn.functional as F

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _size(shape):
    return torch.Size((shape,) if isinstance(shape, int) else shape)


def _together(*values):
    """Tensors of one shape, numbers in the dtype of the tensors."""
    like = [v for v in values if isinstance(v, torch.Tensor)]
    made = [v if isinstance(v, torch.Tensor)
            else like[0].new_tensor(float(v)) if like else torch.tensor(float(v)) for v in values]
    return torch.broadcast_tensors(*made)


def _clamped(probs):
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def _logits_of(probs, is_binary):
    p = _clamped(probs)
    return torch.log(p) - torch.log1p(-p) if is_binary else torch.log(p)


class Distribution:
    """The batch of a distribution is the shape of its parameters, an event what one draw has."""

    has_rsample, arg_constraints = False, {}

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = torch.Size(batch_shape), torch.Size(event_shape)

    batch_shape = property(lambda self: self._batch_shape)
    event_shape = property(lambda self: self._event_shape)

    def _extended_shape(self, sample_shape=()):
        return _size(sample_shape) + self._batch_shape + self._event_shape

    @property
    def support(self):
        """The set of the draws (torch.distributions.constraints)."""
        from torch.distributions import constraints
        return constraints.of_distribution(self)

    def _missing(self, what):
        raise NotImplementedError(f"{type(self).__name__} has no {what}")

    def log_prob(self, value):
        self._missing("log_prob()")

    def entropy(self):
        self._missing("entropy()")

    def cdf(self, value):
        self._missing("cdf()")

    def icdf(self, value):
        self._missing("icdf()")

    def rsample(self, sample_shape=()):
        self._missing("rsample(): its draws have no gradient for its parameters")

    mean = property(lambda self: self._missing("mean"))
    variance = property(lambda self: self._missing("variance"))
    stddev = property(lambda self: self.variance.sqrt())

    def sample(self, sample_shape=()):
        with torch.no_grad():
            return self.rsample(sample_shape).detach()

    def sample_n(self, n):
        return self.sample((n,))

    def expand(self, batch_shape):
        """The same, of parameters that are expanded to a batch."""
        shown = self._shown()
        if not shown:
            self._missing("expand()")
        events = len(self._event_shape)
        given = {}
        for name, value in shown.items():
            own = value.shape[len(value.shape) - events:] if events else ()
            given[name] = value.expand(_size(batch_shape) + torch.Size(own))
        return type(self)(**given)

    def prob(self, value):
        return torch.exp(self.log_prob(value))

    def perplexity(self):
        return torch.exp(self.entropy())

    def _shown(self):
        return {name: self.__dict__[name] for name in type(self).arg_constraints if name in self.__dict__}

    def __repr__(self):
        parts = [f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in self._shown().items()]
        return f"{type(self).__name__}({', '.join(parts)})"


class ExponentialFamily(Distribution):
    """Of densities exp(⟨t(x), θ⟩ - F(θ) + k(x))."""


class _LocScale(Distribution):
    """loc + scale · draw, of a draw with a density of its own."""

    has_rsample, arg_constraints = True, {"loc": "real", "scale": "positive"}

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = _together(loc, scale)
        super().__init__(self.loc.shape)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    def expand(self, batch_shape):
        return type(self)(self.loc.expand(batch_shape), self.scale.expand(batch_shape))

    def rsample(self, sample_shape=()):
        return self.loc + self.scale * self._draw(self._extended_shape(sample_shape))


class Normal(_LocScale, ExponentialFamily):
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.square())

    def _draw(self, shape):
        return torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)

    def log_prob(self, value):
        return -((value - self.loc) ** 2) / (2 * self.scale ** 2) - self.scale.log() - _HALF_LOG_2PI

    def entropy(self):
        return 0.5 + _HALF_LOG_2PI + self.scale.log()

    def cdf(self, value):
        return 0.5 * (1 + torch.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value):
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)


class Laplace(_LocScale):
    variance = property(lambda self: 2 * self.scale.square())

    def _draw(self, shape):
        u = torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device) - 0.5
        return -u.sign() * torch.log1p(-(2 * u.abs()).clamp(max=1 - torch.finfo(u.dtype).eps))

    def log_prob(self, value):
        return -torch.log(2 * self.scale) - (value - self.loc).abs() / self.scale

    def entropy(self):
        return 1 + torch.log(2 * self.scale)

    def cdf(self, value):
        d = value - self.loc
        return 0.5 - 0.5 * d.sign() * torch.expm1(-d.abs() / self.scale)


class Uniform(Distribution):
    has_rsample, arg_constraints = True, {"low": "dependent", "high": "dependent"}

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = _together(low, high)
        super().__init__(self.low.shape)

    mean = property(lambda self: (self.low + self.high) / 2)
    variance = property(lambda self: (self.high - self.low).square() / 12)

    def rsample(self, sample_shape=()):
        u = torch.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value):
        inside = (value >= self.low) & (value < self.high)
        return torch.where(inside, -torch.log(self.high - self.low), -math.inf)

    def entropy(self):
        return torch.log(self.high - self.low)

    def cdf(self, value):
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return self.low + value * (self.high - self.low)


class Exponential(ExponentialFamily):
    has_rsample, arg_constraints = True, {"rate": "positive"}

    def __init__(self, rate, validate_args=None):
        self.rate, = _together(rate)
        super().__init__(self.rate.shape)

    mean = property(lambda self: self.rate.reciprocal())
    variance = property(lambda self: self.rate.square().reciprocal())

    def rsample(self, sample_shape=()):
        u = torch.rand(self._extended_shape(sample_shape), dtype=self.rate.dtype, device=self.rate.device)
        return -torch.log1p(-u) / self.rate

    def log_prob(self, value):
        return self.rate.log() - self.rate * value

    def entropy(self):
        return 1 - self.rate.log()

    def cdf(self, value):
        return -torch.expm1(-self.rate * value)


class _Given(Distribution):
    """Of probabilities or of logits, of which the other is computed when it is asked for."""

    arg_constraints = {"probs": "unit_interval", "logits": "real"}
    is_binary, takes = True, ("probs", "logits")

    def _take(self, probs, logits):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "probs" if logits is None else "logits"
        value, = _together(probs if logits is None else logits)
        return value

    @property
    def probs(self):
        if self._given == "probs":
            return self._value
        return torch.sigmoid(self._value) if self.is_binary else F.softmax(self._value, -1)

    @property
    def logits(self):
        return self._value if self._given == "logits" else _logits_of(self._value, self.is_binary)

    def _shown(self):
        return {self._given: self._value}


class Bernoulli(_Given, ExponentialFamily):
    def __init__(self, probs=None, logits=None, validate_args=None):
        self._value = self._take(probs, logits)
        super().__init__(self._value.shape)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: (self.probs >= 0.5).to(self._value.dtype))

    def sample(self, sample_shape=()):
        with torch.no_grad():
            return torch.bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value.to(logits.dtype), reduction="none")

    def entropy(self):
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Geometric(_Given):
    """Failures before the first success."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._value = self._take(probs, logits)
        super().__init__(self._value.shape)

    mean = property(lambda self: 1 / self.probs - 1)
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            p = self.probs.detach().expand(self._extended_shape(sample_shape))
            u = torch.rand(p.shape, dtype=p.dtype, device=p.device)
            return (torch.log1p(-u) / torch.log1p(-p)).floor()

    def log_prob(self, value):
        return value * torch.log1p(-self.probs) + self.probs.log()

    def entropy(self):
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Categorical(_Given):
    is_binary = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        value = self._take(probs, logits)
        if value.ndim < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        # Both are kept so that they are normalised, as torch's are.
        self._value = (value / value.sum(-1, keepdim=True) if self._given == "probs"
                       else value - value.logsumexp(-1, keepdim=True))
        self._num_events = value.shape[-1]
        super().__init__(value.shape[:-1])

    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape=()):
        with torch.no_grad():
            n = math.prod(_size(sample_shape))
            rows = self.probs.detach().reshape(-1, self._num_events)
            drawn = torch.multinomial(rows, n, replacement=True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = self.logits.clamp(min=torch.finfo(self._value.dtype).min)
        return -(logits * self.probs).sum(-1)


class OneHotCategorical(Categorical):
    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(probs, logits)
        self._event_shape = torch.Size((self._num_events,))

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: F.one_hot(self.probs.argmax(-1), self._num_events).to(self._value.dtype))

    def sample(self, sample_shape=()):
        places = Categorical(probs=self.probs).sample(sample_shape)
        return F.one_hot(places, self._num_events).to(self._value.dtype)

    def log_prob(self, value):
        return Categorical(logits=self.logits).log_prob(value.argmax(-1))


def _drawn_gamma(shape):
    """Marsaglia and Tsang's draws, a batch of attempts at a time until each place has one. Shapes below 1 draw from
    shape + 1 and scale by u^(1/shape)."""
    wanted = torch.where(shape < 1, shape + 1, shape)
    d = wanted - 1 / 3
    c = 1 / (9 * d).sqrt()
    out, missing = torch.zeros_like(shape), torch.ones_like(shape, dtype=torch.bool)
    while missing.any():
        x, u = torch.randn_like(shape), torch.rand_like(shape)
        v = (1 + c * x) ** 3
        taken = missing & (v > 0) & (u.log() < 0.5 * x * x + d - d * v + d * v.clamp(min=1e-38).log())
        out, missing = torch.where(taken, d * v, out), missing & ~taken
    return torch.where(shape < 1, out * (1 - torch.rand_like(shape)) ** (1 / shape), out)


class Gamma(ExponentialFamily):
    arg_constraints = {"concentration": "positive", "rate": "positive"}

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = _together(concentration, rate)
        super().__init__(self.rate.shape)

    mean = property(lambda self: self.concentration / self.rate)
    variance = property(lambda self: self.concentration / self.rate.square())

    def sample(self, sample_shape=()):
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            return _drawn_gamma(self.concentration.detach().expand(shape).contiguous()) / self.rate.detach()

    def log_prob(self, value):
        a, value = self.concentration, torch.as_tensor(value)
        return torch.xlogy(a, self.rate) + torch.xlogy(a - 1, value) - self.rate * value - torch.lgamma(a)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + torch.lgamma(a) + (1 - a) * torch.digamma(a)


class Dirichlet(ExponentialFamily):
    arg_constraints = {"concentration": "positive"}

    def __init__(self, concentration, validate_args=None):
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:])

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, keepdim=True))

    @property
    def variance(self):
        total, mean = self.concentration.sum(-1, keepdim=True), self.mean
        return mean * (1 - mean) / (total + 1)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            drawn = _drawn_gamma(self.concentration.detach().expand(self._extended_shape(sample_shape)).contiguous())
            return drawn / drawn.sum(-1, keepdim=True)

    def log_prob(self, value):
        a = self.concentration
        return (torch.xlogy(a - 1, value).sum(-1) + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1))

    def entropy(self):
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (torch.lgamma(a).sum(-1) - torch.lgamma(total) - (k - total) * torch.digamma(total)
                - ((a - 1) * torch.digamma(a)).sum(-1))


class Beta(ExponentialFamily):
    arg_constraints = {"concentration1": "positive", "concentration0": "positive"}

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = _together(concentration1, concentration0)
        self._both = Dirichlet(torch.stack([self.concentration1, self.concentration0], -1))
        super().__init__(self.concentration1.shape)

    mean = property(lambda self: self._both.mean[..., 0])
    variance = property(lambda self: self._both.variance[..., 0])

    def sample(self, sample_shape=()):
        return self._both.sample(sample_shape)[..., 0]

    def log_prob(self, value):
        return self._both.log_prob(torch.stack([value, 1 - value], -1))

    def entropy(self):
        return self._both.entropy()


class Poisson(ExponentialFamily):
    arg_constraints = {"rate": "nonnegative"}

    def __init__(self, rate, validate_args=None):
        self.rate, = _together(rate)
        super().__init__(self.rate.shape)

    mean = property(lambda self: self.rate)
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape=()):
        """Arrivals of an exponential clock within `rate`, all places at once."""
        with torch.no_grad():
            left = self.rate.detach().expand(self._extended_shape(sample_shape)).contiguous()
            count = torch.zeros_like(left)
            while True:
                left = left + torch.log1p(-torch.rand_like(left))
                arrived = left > 0
                if not arrived.any():
                    return count
                count = count + arrived.to(count.dtype)

    def log_prob(self, value):
        value = torch.as_tensor(value)
        return torch.xlogy(value, self.rate) - self.rate - torch.lgamma(value + 1)


class MultivariateNormal(Distribution):
    has_rsample, arg_constraints = True, {"loc": "real_vector", "covariance_matrix": "positive_definite"}

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if sum(m is not None for m in (covariance_matrix, precision_matrix, scale_tril)) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if precision_matrix is not None:
            covariance_matrix = torch.linalg.inv(precision_matrix)
        self.scale_tril = torch.linalg.cholesky(covariance_matrix) if scale_tril is None else scale_tril
        n = self.scale_tril.shape[-1]
        batch = torch.broadcast_shapes(self.scale_tril.shape[:-2], loc.shape[:-1])
        self.loc, self.scale_tril = loc.expand(batch + (n,)), self.scale_tril.expand(batch + (n, n))
        super().__init__(batch, (n,))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: torch.linalg.inv(self.covariance_matrix))
    variance = property(lambda self: self.scale_tril.square().sum(-1))

    def rsample(self, sample_shape=()):
        eps = torch.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ eps.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self):
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        d = (value - self.loc).unsqueeze(-1)
        white = torch.linalg.solve(self.scale_tril.expand(d.shape[:-2] + self.scale_tril.shape[-2:]), d).squeeze(-1)
        return -0.5 * white.square().sum(-1) - self._half_log_det() - self._event_shape[0] * _HALF_LOG_2PI

    def entropy(self):
        return self._event_shape[0] * (0.5 + _HALF_LOG_2PI) + self._half_log_det()


class Independent(Distribution):
    """The last dimensions of the batch as one event."""

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        base, n = base_distribution, reinterpreted_batch_ndims
        if n > len(base.batch_shape):
            raise ValueError(f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {n} vs "
                             f"{len(base.batch_shape)}")
        self.base_dist, self.reinterpreted_batch_ndims = base, n
        shape, at = base.batch_shape + base.event_shape, len(base.batch_shape) - n
        super().__init__(shape[:at], shape[at:])

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def _summed(self, x):
        n = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-n, 0))) if n else x

    def log_prob(self, value):
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self):
        return self._summed(self.base_dist.entropy())

    def __repr__(self):
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """What transforms (torch.distributions.transforms) make of the draws of another distribution."""

    def __init__(self, base_distribution, transforms, validate_args=None):
        from torch.distributions.transforms import ComposeTransform
        self.transforms = list(transforms) if isinstance(transforms, (list, tuple)) else [transforms]
        base, whole = base_distribution, ComposeTransform(self.transforms)
        more = whole.domain_event_dim - len(base.event_shape)
        if more > len(base.batch_shape):
            raise ValueError(f"base_distribution needs to have shape with size at least {whole.domain_event_dim}, but "
                             f"got {base.batch_shape + base.event_shape}.")
        if more > 0:
            base = Independent(base, more)
        self.base_dist = base
        shape = whole.forward_shape(base.batch_shape + base.event_shape)
        events = whole.codomain_event_dim + max(len(base.event_shape) - whole.domain_event_dim, 0)
        at = len(shape) - events
        super().__init__(shape[:at], shape[at:])

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def _through(self, x):
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape=()):
        with torch.no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        total, events = 0.0, len(self._event_shape)
        for t in reversed(self.transforms):
            before = t.inv(value)
            slope = t.log_abs_det_jacobian(before, value)
            events = events + t.domain_event_dim - t.codomain_event_dim
            over = events - t.domain_event_dim
            total = total - (slope.sum(tuple(range(-over, 0))) if over > 0 else slope)
            value = before
        density, over = self.base_dist.log_prob(value), events - len(self.base_dist.event_shape)
        return total + (density.sum(tuple(range(-over, 0))) if over > 0 else density)

    def _falls(self):
        """Whether larger draws become smaller ones, as a factor."""
        sign = 1
        for t in self.transforms:
            sign = sign * t.sign
        return sign

    def cdf(self, value):
        for t in reversed(self.transforms):
            value = t.inv(value)
        sign = self._falls()
        below = self.base_dist.cdf(value)
        return below if isinstance(sign, int) and sign == 1 else sign * (below - 0.5) + 0.5

    def icdf(self, value):
        sign = self._falls()
        value = value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5
        return self._through(self.base_dist.icdf(value))

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"


class LogNormal(Distribution):
    has_rsample, arg_constraints = True, {"loc": "real", "scale": "positive"}

    def __init__(self, loc, scale, validate_args=None):
        self.base_dist = Normal(loc, scale)
        super().__init__(self.base_dist.batch_shape)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.square() / 2).exp())
    variance = property(lambda self: torch.expm1(self.scale.square()) * (2 * self.loc + self.scale.square()).exp())

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape).exp()

    def log_prob(self, value):
        return self.base_dist.log_prob(value.log()) - value.log()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


# --- Kullback-Leibler divergences: (p, q) by their classes


def _kl_normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


def _kl_bernoulli(p, q):
    at, other = p.probs, q.logits
    # Σ p (log p - log q), with logarithms of probabilities from logits: none of them overflows.
    return (at * (F.logsigmoid(p.logits) - F.logsigmoid(other))
            + (1 - at) * (F.logsigmoid(-p.logits) - F.logsigmoid(-other)))


def _kl_categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t = torch.where((q.probs == 0).expand_as(t), math.inf, t)
    return torch.where((p.probs == 0).expand_as(t), 0.0, t).sum(-1)


def _kl_uniform(p, q):
    inside = (q.low <= p.low) & (q.high >= p.high)
    return torch.where(inside, torch.log((q.high - q.low) / (p.high - p.low)), math.inf)


def _kl_exponential(p, q):
    return q.rate / p.rate - torch.log(q.rate / p.rate) - 1


def _kl_gamma(p, q):
    a, b = p.concentration, q.concentration
    return (b * torch.log(p.rate / q.rate) + torch.lgamma(b) - torch.lgamma(a) + (a - b) * torch.digamma(a)
            + (q.rate - p.rate) * (a / p.rate))


def _kl_dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1, keepdim=True)
    return (torch.lgamma(total.squeeze(-1)) - torch.lgamma(b.sum(-1)) - (torch.lgamma(a) - torch.lgamma(b)).sum(-1)
            + ((a - b) * (torch.digamma(a) - torch.digamma(total))).sum(-1))


def _kl_laplace(p, q):
    d, ratio = (p.loc - q.loc).abs(), p.scale / q.scale
    return -ratio.log() + d / q.scale + ratio * torch.exp(-d / p.scale) - 1


def _kl_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


def _kl_multivariate(p, q):
    n = p.event_shape[0]
    white = torch.linalg.solve(q.scale_tril, p.scale_tril)
    d = torch.linalg.solve(q.scale_tril, (q.loc - p.loc).unsqueeze(-1)).squeeze(-1)
    return (q._half_log_det() - p._half_log_det()
            + 0.5 * (white.square().sum((-2, -1)) + d.square().sum(-1) - n))


def _kl_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence() of Independent distributions with events of different ranks")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


_KL = {(Normal, Normal): _kl_normal, (Bernoulli, Bernoulli): _kl_bernoulli, (Categorical, Categorical): _kl_categorical,
       (OneHotCategorical, OneHotCategorical): _kl_categorical, (Uniform, Uniform): _kl_uniform,
       (Exponential, Exponential): _kl_exponential, (Gamma, Gamma): _kl_gamma, (Dirichlet, Dirichlet): _kl_dirichlet,
       (Beta, Beta): lambda p, q: _kl_dirichlet(p._both, q._both), (Laplace, Laplace): _kl_laplace,
       (Poisson, Poisson): _kl_poisson, (MultivariateNormal, MultivariateNormal): _kl_multivariate,
       (LogNormal, LogNormal): lambda p, q: _kl_normal(p.base_dist, q.base_dist),
       (Independent, Independent): _kl_independent}


_EULER = 0.5772156649015329


def _kl_geometric(p, q):
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


def _kl_exponential_gamma(p, q):
    ratio, b = q.rate / p.rate, q.concentration
    return -b * torch.log(ratio) + ratio + torch.lgamma(b) + b * _EULER - (1 + _EULER)


def _kl_gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


def _kl_to_normal(p, q):
    """By the first two moments of p and its entropy."""
    square = p.variance + (p.mean - q.loc).square()
    return -p.entropy() + _HALF_LOG_2PI + q.scale.log() + 0.5 * square / q.scale.square()


def _kl_normal_laplace(p, q):
    d = p.loc - q.loc
    far = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * (d / p.scale) ** 2) + d * torch.erf(
        math.sqrt(0.5) * d / p.scale)
    return -torch.log(p.scale / q.scale) + far / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _kl_uniform_exponential(p, q):
    far = q.rate * (p.high + p.low) / 2 - torch.log((p.high - p.low) * q.rate)
    return torch.where(p.low < 0, math.inf, far)


_KL.update({(Geometric, Geometric): _kl_geometric, (Exponential, Gamma): _kl_exponential_gamma,
            (Gamma, Exponential): _kl_gamma_exponential, (Exponential, Normal): _kl_to_normal,
            (Gamma, Normal): _kl_to_normal, (Laplace, Normal): _kl_to_normal, (Uniform, Normal): _kl_to_normal,
            (Beta, Normal): _kl_to_normal, (Normal, Laplace): _kl_normal_laplace,
            (Bernoulli, Poisson): _kl_bernoulli_poisson, (Uniform, Exponential): _kl_uniform_exponential})


def register_kl(type_p, type_q):
    """A decorator for a function of (p, q)."""
    def decorated(f):
        _KL[type_p, type_q] = f
        return f
    return decorated


def kl_divergence(p, q):
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _KL:
                return _KL[a, b](p, q)
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
                              f"{type(q).__name__}")


# Imported when they are asked for: programs that take a normal distribution need none of them.
_LATER = {
    "torch.distributions._families": (
        "Cauchy", "Chi2", "ContinuousBernoulli", "FisherSnedecor", "Gumbel", "HalfCauchy", "HalfNormal",
        "InverseGamma", "Kumaraswamy", "LogisticNormal", "Pareto", "StudentT", "VonMises", "Weibull"),
    "torch.distributions._discrete": (
        "Binomial", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial", "NegativeBinomial",
        "OneHotCategoricalStraightThrough", "RelaxedBernoulli", "RelaxedOneHotCategorical"),
    "torch.distributions._matrices": ("LKJCholesky", "Wishart"),
    "torch.distributions.transforms": (
        "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
        "CumulativeDistributionTransform",
        "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
        "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform",
        "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform")}
__all__ = ["Bernoulli", "Beta", "Categorical", "Dirichlet", "Distribution", "Exponential", "ExponentialFamily", "Gamma",
           "Geometric", "Independent", "Laplace", "LogNormal", "MultivariateNormal", "Normal", "OneHotCategorical",
           "Poisson", "TransformedDistribution", "Uniform", "kl_divergence", "register_kl"]
__all__ += [name for names in _LATER.values() for name in names]


def __getattr__(name):
    if name in ("constraint_registry", "constraints", "transforms"):
        return importlib.import_module("torch.distributions." + name)
    if name in ("biject_to", "transform_to"):
        return getattr(importlib.import_module("torch.distributions.constraint_registry"), name)
    for module, names in _LATER.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'torch.distributions' has no attribute '{name}'")
