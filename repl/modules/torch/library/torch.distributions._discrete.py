"""torch.distributions of counts, mixtures and relaxed choices, and normal ones of low rank."""
import math

import torch
import torch.nn.functional as F
from torch.distributions import (_HALF_LOG_2PI, _KL, Categorical, Distribution, Gamma, MultivariateNormal,
                                 OneHotCategorical, Poisson, _drawn_gamma, _Given, _kl_multivariate, _logits_of, _size,
                                 _together)


class _Counted(_Given):
    """Of trials with a probability, whose number is broadcast with it."""

    def __init__(self, total_count, probs, logits):
        value = self._take(probs, logits)
        self.total_count, self._value = _together(total_count, value)
        Distribution.__init__(self, self._value.shape)

    def _shown(self):
        return {"total_count": self.total_count, self._given: self._value}


class Binomial(_Counted):
    """Successes among so many trials."""

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits)

    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    mode = property(lambda self: torch.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count))

    def sample(self, sample_shape=()):
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        n, logits = self.total_count, self.logits
        value = torch.as_tensor(value, device=logits.device)
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        return value * logits - n * logits.clamp(min=0) - n * torch.log1p(torch.exp(-logits.abs())) + ways

    def enumerate_support(self, expand=True):
        n = int(self.total_count.max())
        if not self.total_count.min() == n:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + n, dtype=self._value.dtype, device=self._value.device)
        values = values.reshape([-1] + [1] * len(self._batch_shape))
        return values.expand((1 + n,) + tuple(self._batch_shape)) if expand else values

    def entropy(self):
        logs = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(logs) * logs).sum(0)


class NegativeBinomial(_Counted):
    """Successes before so many failures."""

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits)

    mean = property(lambda self: self.total_count * torch.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0))
    variance = property(lambda self: self.mean / torch.sigmoid(-self.logits))

    def sample(self, sample_shape=()):
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            rate = _drawn_gamma(self.total_count.expand(shape).contiguous()) * torch.exp(self.logits)
            return torch.poisson(rate)

    def log_prob(self, value):
        n, value = self.total_count, torch.as_tensor(value, device=self._value.device)
        logs = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = torch.lgamma(n + value) - torch.lgamma(1.0 + value) - torch.lgamma(n)
        return logs + torch.where(n + value == 0, 0.0, ways)


class Multinomial(Distribution):
    """How often each choice came in so many draws."""

    arg_constraints = {"probs": "simplex", "logits": "real_vector"}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count, self._categorical = total_count, Categorical(probs, logits)
        n = self._categorical._num_events
        super().__init__(self._categorical.batch_shape, (n,))

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def expand(self, batch_shape):
        return Multinomial(self.total_count, self.probs.expand(_size(batch_shape) + self._event_shape))

    def sample(self, sample_shape=()):
        drawn = self._categorical.sample((self.total_count,) + tuple(_size(sample_shape)))
        return F.one_hot(drawn, self._event_shape[0]).sum(0).to(self.probs.dtype)

    def log_prob(self, value):
        logits, value = torch.broadcast_tensors(self.logits, value)
        logits = torch.where((value == 0) & (logits == -math.inf), 0.0, logits)
        return (torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1) + (logits * value).sum(-1))

    def entropy(self):
        n = self.total_count
        each = Binomial(n, probs=self.probs)
        support = each.enumerate_support(False)[1:]
        weights = torch.exp(each.log_prob(support)) * torch.lgamma(support + 1)
        return n * self._categorical.entropy() - math.lgamma(n + 1) + weights.sum((0, -1))

    def __repr__(self):
        return f"Multinomial(total_count: {self.total_count}, probs: {self.probs.size()})"


class MixtureSameFamily(Distribution):
    """A choice of one of the last dimension of a batch of distributions."""

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        shape = component_distribution.batch_shape
        if mixture_distribution._num_events != shape[-1]:
            raise ValueError(f"`mixture_distribution component` ({mixture_distribution._num_events}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({shape[-1]})")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        self._events = len(component_distribution.event_shape)
        super().__init__(shape[:-1], component_distribution.event_shape)

    def _weights(self):
        p = self.mixture_distribution.probs
        return p.reshape(tuple(p.shape) + (1,) * self._events)

    def _with_components(self, x):
        return x.unsqueeze(-1 - self._events)

    @property
    def mean(self):
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._events)

    @property
    def variance(self):
        own = (self._weights() * self.component_distribution.variance).sum(-1 - self._events)
        apart = self.component_distribution.mean - self._with_components(self.mean)
        return own + (self._weights() * apart.square()).sum(-1 - self._events)

    def cdf(self, x):
        return (self.component_distribution.cdf(self._with_components(x)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        logs = self.component_distribution.log_prob(self._with_components(x))
        return torch.logsumexp(logs + F.log_softmax(self.mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            drawn = self.component_distribution.sample(sample_shape)
            dim = drawn.ndim - 1 - self._events
            chosen = self.mixture_distribution.sample(sample_shape)
            at = chosen.reshape(tuple(chosen.shape) + (1,) * (self._events + 1))
            at = at.expand([1 if d == dim else n for d, n in enumerate(drawn.shape)])
            return drawn.gather(dim, at).squeeze(dim)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Whose draws have the gradient of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


def _clamped(u):
    eps = torch.finfo(u.dtype).eps
    return u.clamp(eps, 1 - eps)


class RelaxedBernoulli(_Given):
    """The logistic function of a logit that noise has moved (Maddison and others, 2017)."""

    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature if isinstance(temperature, torch.Tensor) else torch.tensor(float(temperature))
        self._value = self._take(probs, logits)
        super().__init__(self._value.shape)

    def expand(self, batch_shape):
        return RelaxedBernoulli(self.temperature, **{self._given: self._value.expand(batch_shape)})

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = _clamped(torch.rand(shape, dtype=self._value.dtype, device=self._value.device))
        noise = u.log() - torch.log1p(-u)
        return _clamped(torch.sigmoid((noise + self.logits) / self.temperature))

    def log_prob(self, value):
        x = value.log() - torch.log1p(-value)
        d = self.logits - x * self.temperature
        return self.temperature.log() + d - 2 * F.softplus(d) + F.softplus(-x) + F.softplus(x)


class RelaxedOneHotCategorical(Distribution):
    """The softmax of logits that noise has moved (Jang and others, 2017)."""

    has_rsample, arg_constraints = True, {"probs": "simplex", "logits": "real_vector"}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature if isinstance(temperature, torch.Tensor) else torch.tensor(float(temperature))
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, (self._categorical._num_events,))

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)

    def expand(self, batch_shape):
        return RelaxedOneHotCategorical(self.temperature,
                                        logits=self.logits.expand(_size(batch_shape) + self._event_shape))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = _clamped(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        return F.softmax((self.logits - torch.log(-torch.log(u))) / self.temperature, -1)

    def log_prob(self, value):
        n, x = self._event_shape[0], torch.log(value)
        score = self.logits - x * self.temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + math.lgamma(n) + (n - 1) * self.temperature.log() - x.sum(-1)


class LowRankMultivariateNormal(Distribution):
    """Whose covariance is that of few factors, and a diagonal."""

    has_rsample = True
    arg_constraints = {"loc": "real_vector", "cov_factor": "real", "cov_diag": "positive"}

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        n = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m, and cov_diag have {n} "
                             "elements")
        batch = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(batch + (n,))
        self.cov_factor = cov_factor.expand(batch + tuple(cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand(batch + (n,))
        super().__init__(batch, (n,))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self.cov_factor.square().sum(-1) + self.cov_diag)
    covariance_matrix = property(lambda self: self.cov_factor @ self.cov_factor.mT + torch.diag_embed(self.cov_diag))
    scale_tril = property(lambda self: torch.linalg.cholesky(self.covariance_matrix))
    precision_matrix = property(lambda self: torch.linalg.inv(self.covariance_matrix))

    def expand(self, batch_shape):
        batch = _size(batch_shape)
        return LowRankMultivariateNormal(self.loc.expand(batch + self._event_shape),
                                         self.cov_factor.expand(batch + tuple(self.cov_factor.shape[-2:])),
                                         self.cov_diag.expand(batch + self._event_shape))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        options = dict(dtype=self.loc.dtype, device=self.loc.device)
        of_factors = torch.randn(tuple(shape[:-1]) + (self.cov_factor.shape[-1],), **options)
        return (self.loc + (self.cov_factor @ of_factors.unsqueeze(-1)).squeeze(-1)
                + self.cov_diag.sqrt() * torch.randn(shape, **options))

    def _capacitance(self):
        """The factor of 1 + Wᵀ D⁻¹ W, by which few rows are solved instead of many."""
        W, rank = self.cov_factor, self.cov_factor.shape[-1]
        inner = W.mT @ (W / self.cov_diag.unsqueeze(-1))
        return torch.linalg.cholesky(inner + torch.eye(rank, dtype=W.dtype, device=W.device))

    def _half_log_det(self, L=None):
        L = self._capacitance() if L is None else L
        return torch.diagonal(L, 0, -2, -1).log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)

    def log_prob(self, value):
        L, d = self._capacitance(), value - self.loc
        inner = (self.cov_factor.mT @ (d / self.cov_diag).unsqueeze(-1))
        inner = torch.linalg.solve_triangular(L, inner, upper=False).squeeze(-1)
        square = (d.square() / self.cov_diag).sum(-1) - inner.square().sum(-1)
        return -0.5 * square - self._half_log_det(L) - self._event_shape[0] * _HALF_LOG_2PI

    def entropy(self):
        return self._event_shape[0] * (0.5 + _HALF_LOG_2PI) + self._half_log_det()


# --- Kullback-Leibler divergences


def _kl_binomial(p, q):
    if not p.total_count.is_cuda and bool((p.total_count < q.total_count).any()):  # what a GPU holds is not looked at
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * (p.probs * (p.logits - q.logits) + torch.log1p(-p.probs) - torch.log1p(-q.probs))
    return torch.where(p.total_count > q.total_count, math.inf, found)


_KL.update({(Binomial, Binomial): _kl_binomial,
            (LowRankMultivariateNormal, LowRankMultivariateNormal): _kl_multivariate,
            (LowRankMultivariateNormal, MultivariateNormal): _kl_multivariate,
            (MultivariateNormal, LowRankMultivariateNormal): _kl_multivariate})
