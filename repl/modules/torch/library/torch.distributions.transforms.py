"""torch.distributions.transforms: functions of elements or of whole events, with inverses and slopes."""
import math

import torch
import torch.nn.functional as F


def _sum_rightmost(x, count):
    return x.sum(tuple(range(-count, 0))) if count > 0 else x


class Transform:
    """An event of the domain has domain_event_dim dimensions, what is made of it codomain_event_dim."""

    bijective, domain_event_dim, codomain_event_dim = True, 0, 0

    def __init__(self, cache_size=0):
        self._cache_size = cache_size

    def __call__(self, x):
        return self._call(x)

    @property
    def inv(self):
        return _Inverse(self)

    def forward_shape(self, shape):
        return tuple(shape)

    def inverse_shape(self, shape):
        return tuple(shape)

    def with_cache(self, cache_size=1):
        return self

    def _call(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no _call()")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x, y):
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian()")

    def __repr__(self):
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, transform):
        super().__init__()
        self._inv = transform

    inv = property(lambda self: self._inv)
    domain_event_dim = property(lambda self: self._inv.codomain_event_dim)
    codomain_event_dim = property(lambda self: self._inv.domain_event_dim)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)

    def _call(self, x):
        return self._inv._inverse(x)

    def _inverse(self, y):
        return self._inv._call(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)

    def __repr__(self):
        return f"_InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """One after the other."""

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = list(parts)

    bijective = property(lambda self: all(p.bijective for p in self.parts))

    @property
    def domain_event_dim(self):
        dims = self.parts[-1].codomain_event_dim if self.parts else 0
        for part in reversed(self.parts):
            dims = max(dims + part.domain_event_dim - part.codomain_event_dim, part.domain_event_dim)
        return dims

    @property
    def codomain_event_dim(self):
        dims = self.parts[0].domain_event_dim if self.parts else 0
        for part in self.parts:
            dims = max(dims + part.codomain_event_dim - part.domain_event_dim, part.codomain_event_dim)
        return dims

    @property
    def sign(self):
        out = 1
        for p in self.parts:
            out = out * p.sign
        return out

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return torch.zeros_like(x)
        total, dims = None, self.domain_event_dim
        for part in self.parts:
            after = part(x)
            slope = _sum_rightmost(part.log_abs_det_jacobian(x, after), dims - part.domain_event_dim)
            total = slope if total is None else total + slope
            dims += part.codomain_event_dim - part.domain_event_dim
            x = after
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self):
        return "ComposeTransform(\n    " + ",\n    ".join([repr(p) for p in self.parts]) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """The last dimensions as one event."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims

    domain_event_dim = property(lambda self: self.base_transform.domain_event_dim + self.reinterpreted_batch_ndims)
    codomain_event_dim = property(lambda self: self.base_transform.codomain_event_dim + self.reinterpreted_batch_ndims)
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    def __init__(self, in_shape, out_shape, cache_size=0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = torch.Size(in_shape), torch.Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")

    domain_event_dim = property(lambda self: len(self.in_shape))
    codomain_event_dim = property(lambda self: len(self.out_shape))

    def _lead(self, shape, own):
        n = len(shape) - len(own)
        if n < 0 or list(shape[n:]) != list(own):
            raise ValueError(f"Shape mismatch: expected {tuple(own)} at the end of {tuple(shape)}")
        return tuple(shape[:n])

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(self._lead(x.shape, self.in_shape))

    def forward_shape(self, shape):
        return self._lead(shape, self.in_shape) + tuple(self.out_shape)

    def inverse_shape(self, shape):
        return self._lead(shape, self.out_shape) + tuple(self.in_shape)


# --- of elements


class ExpTransform(Transform):
    sign = 1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, torch.Tensor) else torch.tensor(float(exponent))

    sign = property(lambda self: self.exponent.sign())

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()


class AbsTransform(Transform):
    bijective = False

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class SigmoidTransform(Transform):
    sign = 1

    def _call(self, x):
        eps = torch.finfo(x.dtype)
        return torch.sigmoid(x).clamp(eps.tiny, 1 - eps.eps)

    def _inverse(self, y):
        eps = torch.finfo(y.dtype)
        y = y.clamp(eps.tiny, 1 - eps.eps)
        return y.log() - torch.log1p(-y)

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(Transform):
    sign = 1

    def _call(self, x):
        return F.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x)


class TanhTransform(Transform):
    sign = 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2 * (math.log(2) - x - F.softplus(-2 * x))  # log(1 - tanh(x)^2)


class AffineTransform(Transform):
    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    domain_event_dim = codomain_event_dim = property(lambda self: self.event_dim)

    @property
    def sign(self):
        return self.scale.sign() if isinstance(self.scale, torch.Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale if isinstance(self.scale, torch.Tensor) else torch.as_tensor(float(self.scale))
        return _sum_rightmost(torch.zeros_like(x) + scale.abs().log(), self.event_dim)


class CumulativeDistributionTransform(Transform):
    """Of draws of a distribution the parts that are below them."""

    sign = 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


# --- of events


class SoftmaxTransform(Transform):
    bijective, domain_event_dim, codomain_event_dim = False, 1, 1

    def _call(self, x):
        return F.softmax(x, -1)

    def _inverse(self, y):
        return y.log()


class StickBreakingTransform(Transform):
    """Parts of a stick: each takes a share of what those before have left."""

    domain_event_dim = codomain_event_dim = 1

    def _offset(self, x):
        return x.shape[-1] - torch.arange(x.shape[-1], dtype=x.dtype, device=x.device)

    def _call(self, x):
        z = torch.sigmoid(x - self._offset(x).log())
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y):
        cropped = y[..., :-1]
        left = (1 - cropped.cumsum(-1)).clamp(min=torch.finfo(y.dtype).tiny)
        return cropped.log() - left.log() + self._offset(cropped).log()

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        return tuple(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        return tuple(shape[:-1]) + (shape[-1] - 1,)


class CorrCholeskyTransform(Transform):
    """Numbers as the Cholesky factor of a matrix of correlations: the rows of a lower triangle have length 1."""

    domain_event_dim, codomain_event_dim = 1, 2

    def _call(self, x):
        eps = torch.finfo(x.dtype).eps
        x = torch.tanh(x).clamp(min=-1 + eps, max=1 - eps)
        n = self.forward_shape(x.shape)[-1]
        below = torch.tril_indices(n, n, -1, device=x.device)
        places = torch.zeros(n, n, dtype=torch.int64, device=x.device)
        places[below[0], below[1]] = torch.arange(x.shape[-1], device=x.device)
        r = x[..., places.reshape(-1)].reshape(list(x.shape[:-1]) + [n, n]).tril(-1)
        left = (1 - r.square()).sqrt().cumprod(-1)  # what is left of a row's length
        return (r + torch.eye(n, dtype=x.dtype, device=x.device)) * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = 1 - (y * y).cumsum(-1)
        n = y.shape[-1]
        below = torch.tril_indices(n, n, -1, device=y.device)
        taken = y[..., below[0], below[1]]
        size = F.pad(left[..., :-1], [1, 0], value=1).tril(-1)[..., below[0], below[1]].sqrt()
        t = taken / size
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x, y):
        left = 1 - (y * y).cumsum(-1)
        below = torch.tril_indices(y.shape[-1], y.shape[-1], -2, device=y.device)
        stick = 0.5 * left[..., below[0], below[1]].log().sum(-1)
        return stick - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape):
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return tuple(shape[:-1]) + (n, n)

    def inverse_shape(self, shape):
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError("Input is not square")
        return tuple(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


class LowerCholeskyTransform(Transform):
    """A matrix as a lower triangle with a positive diagonal."""

    domain_event_dim = codomain_event_dim = 2

    def _call(self, x):
        return x.tril(-1) + torch.diag_embed(torch.diagonal(x, 0, -2, -1).exp())

    def _inverse(self, y):
        return y.tril(-1) + torch.diag_embed(torch.diagonal(y, 0, -2, -1).log())


class PositiveDefiniteTransform(Transform):
    domain_event_dim = codomain_event_dim = 2

    def _call(self, x):
        L = LowerCholeskyTransform()(x)
        return L @ L.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


# --- several beside each other


class CatTransform(Transform):
    """Parts of a dimension, each by a transform of its own."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    domain_event_dim = property(lambda self: max(t.domain_event_dim for t in self.transforms))
    codomain_event_dim = property(lambda self: max(t.codomain_event_dim for t in self.transforms))

    def _parts(self, x):
        if x.shape[self.dim] != sum(self.lengths):
            raise ValueError(f"CatTransform of {sum(self.lengths)} elements got {x.shape[self.dim]}")
        return torch.split(x, self.lengths, self.dim)

    def _call(self, x):
        return torch.cat([t(p) for t, p in zip(self.transforms, self._parts(x))], self.dim)

    def _inverse(self, y):
        return torch.cat([t.inv(p) for t, p in zip(self.transforms, self._parts(y))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        dims = self.domain_event_dim
        slopes = [_sum_rightmost(t.log_abs_det_jacobian(p, q), dims - t.domain_event_dim)
                  for t, p, q in zip(self.transforms, self._parts(x), self._parts(y))]
        dim = (self.dim if self.dim < 0 else self.dim - x.ndim) + dims
        return torch.cat(slopes, dim) if dim < 0 else sum(slopes)


class StackTransform(Transform):
    """Each place of a dimension by a transform of its own."""

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim

    def _stacked(self, make, *tensors):
        if any(t.shape[self.dim] != len(self.transforms) for t in tensors):
            raise ValueError(f"StackTransform of {len(self.transforms)} places got {tensors[0].shape[self.dim]}")
        rows = [torch.unbind(t, self.dim) for t in tensors]
        return torch.stack([make(t, *[r[i] for r in rows]) for i, t in enumerate(self.transforms)], self.dim)

    def _call(self, x):
        return self._stacked(lambda t, p: t(p), x)

    def _inverse(self, y):
        return self._stacked(lambda t, p: t.inv(p), y)

    def log_abs_det_jacobian(self, x, y):
        return self._stacked(lambda t, p, q: t.log_abs_det_jacobian(p, q), x, y)
