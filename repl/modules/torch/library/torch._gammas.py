"""Special functions that are methods of tensors too: relatives of the gamma function, and Bessel's i0."""
import math

import torch
from torch import _kiln, _tape
from torch._tensor import _floats


def _both(input, other, what):
    """Tensors of the floats that both become."""
    if not isinstance(input, torch.Tensor) and not isinstance(other, torch.Tensor):
        raise TypeError(f"{what}() takes a tensor")
    dtype = torch.result_type(input, other)
    dtype = dtype if dtype.is_floating_point else torch.float32
    like = input if isinstance(input, torch.Tensor) else other
    return [t.to(dtype) if isinstance(t, torch.Tensor) else torch.full((), t, dtype=dtype, device=like.device)
            for t in (input, other)]


def _summed(gradient, x):
    return gradient.sum_to_size(x.shape)


def _incomplete(input, other, upper, what):
    if not torch.result_type(input, other).is_floating_point:
        raise NotImplementedError(f"{what}() does not apply to tensors of {torch.result_type(input, other)}")
    a, x = _both(input, other, what)

    def compute(a, x):
        from torch import _special_kernels
        return _special_kernels.gammas(a, x, upper).to(a.dtype)

    def rule(g, x):
        slope = (torch.xlogy(a - 1, x) - x - torch.lgamma(a)).exp()
        return _summed(-g * slope if upper else g * slope, x),

    if _kiln.records(a) and not _kiln.is_no_grad():
        raise NotImplementedError(f"the derivative for 'self' of {what} is not implemented")
    return _tape.with_rule(lambda x: compute(a.detach(), x), (x,), rule)


def igamma(input, other):
    """The regularised lower incomplete gamma function of `input` up to `other`."""
    return _incomplete(input, other, False, "igamma")


def igammac(input, other):
    return _incomplete(input, other, True, "igammac")


def _zeta(x, q):
    """Hurwitz' function: the sum of (k + q)**-x."""
    def compute(q):
        from torch import _special_kernels
        return _special_kernels.zeta(x, q).to(q.dtype)

    return _tape.with_rule(compute, (q,), lambda g, q: (_summed(-g * x * _zeta(x + 1, q), q),))


def mvlgamma(input, p):
    """The logarithm of the gamma function of p dimensions."""
    if p < 1:
        raise RuntimeError(f"mvlgamma() of {p} dimensions")
    if input.dtype is torch.bool:
        raise RuntimeError("mvlgamma() does not apply to tensors of bool")
    x = _floats(input)
    return sum(torch.lgamma(x - 0.5 * j) for j in range(p)) + p * (p - 1) / 4 * math.log(math.pi)


def polygamma(input, other):
    """The derivative of that order of digamma(): polygamma(n, x), or x.polygamma(n)."""
    n, x = (other, input) if isinstance(input, torch.Tensor) else (input, other)  # the method's order, too
    if not isinstance(n, int) or n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got {n}")
    x = _floats(x)

    def compute(x):
        from torch import _special_kernels
        if n == 0:
            return torch.digamma(x)
        wide = x.double()
        sign = 1.0 if n % 2 else -1.0
        order = torch.full((), n + 1.0, dtype=torch.float64, device=x.device)
        return (_special_kernels.zeta(order, wide) * (sign * math.factorial(n))).to(x.dtype)

    return _tape.with_rule(compute, (x,), lambda g, x: (g * polygamma(n + 1, x),))


# --- Bessel's functions of an imaginary argument


def _chebyshev(x, terms):
    """Of a series in Cephes' order (Clenshaw's recurrence)."""
    a, b, c = terms[0], 0.0, 0.0
    for term in terms[1:]:
        a, b, c = x * a - b + term, a, b
    return (a - c) * 0.5


def _scaled(x, near, far):
    """exp(-|x|) i(|x|), up to 8 and beyond."""
    a = x.double().abs()
    big = torch.where(a > 8, a, 8.0)
    return torch.where(a <= 8, _chebyshev(a * 0.5 - 2, near), _chebyshev(32 / big - 2, far) / big.sqrt())


@_kiln.lazily
def _i0e_of(x):
    from torch import _bessel_tables as t
    y = _scaled(x, t.I0_NEAR, t.I0_FAR)
    return torch.where(x.isnan(), x.double(), y).to(x.dtype)


@_kiln.lazily
def _i1e_of(x):
    from torch import _bessel_tables as t
    a = x.double().abs()
    y = _scaled(x, t.I1_NEAR, t.I1_FAR)
    y = torch.where(a <= 8, y * a, y)
    return torch.where(x.isnan(), x.double(), torch.where(x < 0, -y, y)).to(x.dtype)


@_kiln.lazily
def _grown(y, x):
    """In two factors, since exp(|x|) may be too large alone."""
    half = (x.double().abs() * 0.5).exp()
    return (y.double() * half * half).to(x.dtype)


def _i0e(x):
    x = _floats(x)
    return _tape.with_rule(_i0e_of, (x,), lambda g, x: (g * (_i1e(x) - x.sign() * _i0e(x)),))


def _i1e(x):
    x = _floats(x)

    def rule(g, x):
        safe = torch.where(x == 0, 1.0, x)
        return g * torch.where(x == 0, 0.5, _i0e(x) - _i1e(x) * (x.sign() + 1 / safe)),

    return _tape.with_rule(_i1e_of, (x,), rule)


def _i1(x):
    x = _floats(x)

    def rule(g, x):
        safe = torch.where(x == 0, 1.0, x)
        return g * torch.where(x == 0, 0.5, i0(x) - _i1(x) / safe),

    return _tape.with_rule(lambda x: _grown(_i1e_of(x.double()), x), (x,), rule)


def i0(input):
    """Bessel's function of the first kind and order 0 of an imaginary argument."""
    x = _floats(input)
    return _tape.with_rule(lambda x: _grown(_i0e_of(x.double()), x), (x,), lambda g, x: (g * _i1(x),))
