"""torch.distributions.constraints: sets that parameters and draws are in. check() says of each event whether it is."""
import torch


class Constraint:
    is_discrete, event_dim = False, 0

    def check(self, value):
        raise NotImplementedError(f"{type(self).__name__} has no check()")

    def __repr__(self):
        return type(self).__name__.lstrip("_") + "()"


class _Dependent(Constraint):
    """A set that depends on other values."""

    def __init__(self, *, is_discrete=False, event_dim=0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")


class _Real(Constraint):
    def check(self, value):
        return value == value  # false of NaN


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Between(Constraint):
    """What bounds the set; None is no bound."""

    lower_belongs = upper_belongs = True

    def __init__(self, lower=None, upper=None):
        self.lower_bound, self.upper_bound = lower, upper

    def check(self, value):
        inside = value == value
        if self.is_discrete:
            inside = value % 1 == 0
        if self.lower_bound is not None:
            inside = inside & (value >= self.lower_bound if self.lower_belongs else value > self.lower_bound)
        if self.upper_bound is not None:
            inside = inside & (value <= self.upper_bound if self.upper_belongs else value < self.upper_bound)
        return inside

    def __repr__(self):
        parts = [f"{name}={x}" for name, x in (("lower_bound", self.lower_bound), ("upper_bound", self.upper_bound))
                 if x is not None]
        return f"{type(self).__name__.lstrip('_')}({', '.join(parts)})"


class interval(_Between):
    pass


class half_open_interval(_Between):
    upper_belongs = False


class integer_interval(_Between):
    is_discrete = True


class greater_than_eq(_Between):
    pass


class greater_than(_Between):
    lower_belongs = False


class integer_greater_than(_Between):
    is_discrete = True


class less_than(_Between):
    upper_belongs = False

    def __init__(self, upper_bound):
        super().__init__(None, upper_bound)


class multinomial(Constraint):
    """Counts that add up to `upper_bound`."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        return torch.full(value.shape[:-2], value.shape[-1] == value.shape[-2], dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        square = super().check(value)
        if value.shape[-1] != value.shape[-2]:
            return square
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return (torch.linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return torch.linalg.cholesky_ex(value).info == 0


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1) & (torch.diagonal(value, 0, -2, -1) > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        tolerance = torch.finfo(value.dtype).eps * value.shape[-1] * 10
        unit = (torch.linalg.norm(value.detach(), dim=-1) - 1).abs() <= tolerance
        return _LowerCholesky().check(value) & unit.all(-1)


class independent(Constraint):
    """The last dimensions as one event."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value):
        inside = self.base_constraint.check(value)
        if inside.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return inside.reshape(list(inside.shape[:inside.ndim - self.reinterpreted_batch_ndims]) + [-1]).all(-1)


def is_dependent(constraint):
    return isinstance(constraint, _Dependent)


dependent, boolean, one_hot, real = _Dependent(), _Boolean(), _OneHot(), _Real()
nonnegative_integer, positive_integer = integer_greater_than(0), integer_greater_than(1)
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
real_vector, simplex, square, symmetric = independent(real, 1), _Simplex(), _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()


# What the draws of distributions are, by their names.
_SUPPORTS = {
    real: "Normal Laplace Cauchy Gumbel StudentT",
    positive: "LogNormal Exponential Gamma Chi2 InverseGamma FisherSnedecor Weibull",
    nonnegative: "HalfNormal HalfCauchy",
    unit_interval: "Beta Kumaraswamy ContinuousBernoulli RelaxedBernoulli",
    boolean: "Bernoulli",
    nonnegative_integer: "Poisson Geometric NegativeBinomial",
    simplex: "Dirichlet LogisticNormal RelaxedOneHotCategorical",
    one_hot: "OneHotCategorical OneHotCategoricalStraightThrough",
    real_vector: "MultivariateNormal LowRankMultivariateNormal",
    positive_definite: "Wishart",
    corr_cholesky: "LKJCholesky",
}


def of_distribution(d):
    name = type(d).__name__
    for constraint, names in _SUPPORTS.items():
        if name in names.split():
            return constraint
    if name == "Uniform":
        return interval(d.low, d.high)
    if name == "Pareto":
        return greater_than_eq(d.scale)
    if name == "VonMises":
        return real
    if name == "Categorical":
        return integer_interval(0, d.logits.shape[-1] - 1)
    if name == "Binomial":
        return integer_interval(0, d.total_count)
    if name == "Multinomial":
        return multinomial(d.total_count)
    if name == "Independent":
        return independent(d.base_dist.support, d.reinterpreted_batch_ndims)
    if name == "MixtureSameFamily":
        return d.component_distribution.support
    raise NotImplementedError(f"{name} has no support")
