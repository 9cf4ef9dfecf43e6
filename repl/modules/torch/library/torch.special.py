"""torch.special: functions of statistics and physics."""
import math

import torch
from torch import _kiln, _tape, digamma, erf, erfc, erfinv, exp2, expm1, log1p, log_softmax, logit, logsumexp, round
from torch import sinc
from torch import softmax, xlogy
from torch import digamma as psi
from torch import lgamma as gammaln
from torch import mvlgamma as multigammaln
from torch import i0
from torch import igamma as gammainc
from torch import igammac as gammaincc
from torch import polygamma
from torch import sigmoid as expit
from torch._elementwise import _ERFCX_32, _ERFCX_64
from torch._gammas import _both, _chebyshev, _i0e, _i1, _i1e, _zeta
from torch._products import _times_log
from torch._tensor import _floats, _wide


@_kiln.lazily
def entr(input):
    """-x · ln x; 0 at 0, and -inf below."""
    x = _wide(_floats(input))
    below = torch.where(x < 0, -torch.inf, x)  # x itself where it is NaN
    above = torch.where(x > 0, x, 1.0)  # which has a logarithm, and so a gradient
    return torch.where(x > 0, -x * torch.log(above), torch.where(x == 0, 0.0, below)).to(_floats(input).dtype)


@_kiln.lazily
def ndtr(input):
    """The part of a normal distribution below x."""
    return (1 + torch.erf(_floats(input) * math.sqrt(0.5))) * 0.5


_TAIL = 0.02  # below it, erfinv(2 p - 1) loses digits of p


@_kiln.lazily
def ndtri(input):
    """The x below which that part of a normal distribution is."""
    p = _floats(input).double()
    x = torch.where((p > 0) & (p < _TAIL), _lower_tail(p), torch.erfinv(2 * p - 1) * math.sqrt(2.0))
    return x.to(_floats(input).dtype)


def _lower_tail(p):
    """The tail's expansion, made precise by Halley's steps on ndtr(x) - p: each triples the digits."""
    p = torch.where((p > 0) & (p < _TAIL), p, _TAIL)
    square = -2 * p.log()
    x = -(square - (2 * math.pi * square).log()).sqrt()
    for _ in range(3):
        density = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        step = (torch.erfc(x * -math.sqrt(0.5)) * 0.5 - p) / density
        x = x - step / (1 + x * step * 0.5)
    return x


@_kiln.lazily
def xlog1py(input, other):
    """input * log(1 + other), with zeros of `input` kept unless `other` is NaN."""
    return _times_log(input, other, torch.log1p, "xlog1py")


# --- of the normal distribution


@_kiln.lazily
def _erfcx(x):
    a = x.double().abs()
    t = (a - 4) / (a + 4)
    t = torch.where(a == math.inf, 1.0, t)
    terms = _ERFCX_64 if x.dtype is torch.float64 else _ERFCX_32
    y = terms[0] * t + terms[1]
    for c in terms[2:]:
        y = y * t + c
    near = torch.where(a < 0.5, a, 0.0)
    y = torch.where(a < 0.5, (near * near).exp() * (1 - near.erf()), y / (a + 4))
    y = torch.where(x < 0, 2 * (a * a).exp() - y, y)
    return torch.where(x.isnan(), x.double(), y).to(x.dtype)


def erfcx(input):
    """exp(x²) erfc(x), which does not vanish."""
    x = _floats(input)
    return _tape.with_rule(_erfcx, (x,), lambda g, x: (g * (2 * x * erfcx(x) - 2 / math.sqrt(math.pi)),))


@_kiln.lazily
def _log_ndtr(x):
    z = x.double() * math.sqrt(0.5)
    left = torch.where(x < -1, -z, 1.0)
    right = torch.where(x < -1, 0.0, z)
    return torch.where(x < -1, (_erfcx(left) * 0.5).log() - left * left,
                       torch.log1p(-torch.erfc(right) * 0.5)).to(x.dtype)


def log_ndtr(input):
    """The logarithm of ndtr(), also where that is 0 in floats."""
    x = _floats(input)

    def rule(g, x):
        return g * (-0.5 * x * x - log_ndtr(x)).exp() * (1 / math.sqrt(2 * math.pi)),

    return _tape.with_rule(_log_ndtr, (x,), rule)


def zeta(input, other):
    """Hurwitz' zeta function: the sum of (k + q)**-x."""
    x, q = _both(input, other, "zeta")
    if _kiln.records(x) and not _kiln.is_no_grad():
        raise NotImplementedError("the derivative for 'self' of special_zeta is not implemented")
    return _zeta(x.detach(), q)


# --- Bessel's and Airy's functions


def i0e(input):
    return _i0e(input)


def i1(input):
    return _i1(input)


def i1e(input):
    return _i1e(input)


def modified_bessel_i0(input):
    return i0(input)


def modified_bessel_i1(input):
    return _i1(input)


def _tables():
    from torch import _bessel_tables
    return _bessel_tables


def _poly(x, terms):
    y = terms[0] * x + terms[1]
    for c in terms[2:]:
        y = y * x + c
    return y


_HALF_PI_ROOT = math.sqrt(2 / math.pi)


def _waves(x, PP, PQ, QP, QQ, phase):
    """(cosine's and sine's amplitudes, the angle) beyond 5."""
    w = 5 / x
    z = w * w
    q = _poly(z, QP) / _poly(z, QQ)
    return _poly(z, PP) / _poly(z, PQ), w * q, x - phase


def _j(x, order):
    t = _tables()
    a = x.abs()
    z = torch.where(a <= 5, a * a, 1.0)
    big = torch.where(a > 5, a, 6.0)
    if order == 0:
        near = (z - 5.78318596294678452118) * (z - 30.4712623436620863991) * (
            _poly(z, t.J0_RP) / _poly(z, (1.0,) + t.J0_RQ))
        p, q, angle = _waves(big, t.J0_PP, t.J0_PQ, t.J0_QP, (1.0,) + t.J0_QQ, math.pi / 4)
    else:
        near = _poly(z, t.J1_RP) / _poly(z, (1.0,) + t.J1_RQ) * a * (
            (z - 14.6819706421238932572) * (z - 49.2184563216946036703))
        p, q, angle = _waves(big, t.J1_PP, t.J1_PQ, t.J1_QP, (1.0,) + t.J1_QQ, 3 * math.pi / 4)
    y = torch.where(a <= 5, near, (p * angle.cos() - q * angle.sin()) * _HALF_PI_ROOT / big.sqrt())
    y = torch.where(a < math.inf, y, math.nan)
    return torch.where(x < 0, -y, y) if order else y


def _y(x, order):
    t = _tables()
    near = (x > 0) & (x <= 5)
    s = torch.where(near, x, 1.0)
    z, big = s * s, torch.where(x > 5, x, 6.0)
    if order == 0:
        small = _poly(z, t.Y0_YP) / _poly(z, (1.0,) + t.Y0_YQ) + 2 / math.pi * s.log() * _j(s, 0)
        p, q, angle = _waves(big, t.J0_PP, t.J0_PQ, t.J0_QP, (1.0,) + t.J0_QQ, math.pi / 4)
    else:
        small = s * (_poly(z, t.Y1_YP) / _poly(z, (1.0,) + t.Y1_YQ)) + 2 / math.pi * (_j(s, 1) * s.log() - 1 / s)
        p, q, angle = _waves(big, t.J1_PP, t.J1_PQ, t.J1_QP, (1.0,) + t.J1_QQ, 3 * math.pi / 4)
    far = (p * angle.sin() + q * angle.cos()) * _HALF_PI_ROOT / big.sqrt()
    y = torch.where(near, small, torch.where(x > 5, far, torch.where(x == 0, -math.inf, math.nan)))
    return torch.where(x == math.inf, math.nan, y)


def _k(x, order, scaled):
    t = _tables()
    near = (x > 0) & (x <= 2)
    s, big = torch.where(near, x, 1.0), torch.where(x > 2, x, 3.0)
    if order == 0:
        small = _chebyshev(s * s - 2, t.K0_NEAR) - (0.5 * s).log() * i0(s)
        far = _chebyshev(8 / big - 2, t.K0_FAR) / big.sqrt()
    else:
        small = (0.5 * s).log() * _i1(s) + _chebyshev(s * s - 2, t.K1_NEAR) / s
        far = _chebyshev(8 / big - 2, t.K1_FAR) / big.sqrt()
    if scaled:
        small = small * s.exp()
    else:
        far = far * (-big).exp()
    return torch.where(near, small, torch.where(x > 2, far, torch.where(x == 0, math.inf, math.nan)))


@_kiln.lazily
def _of_wide(function, input, *args):
    x = _floats(input)
    return function(x.double(), *args).to(x.dtype)


def bessel_j0(input):
    return _of_wide(_j, input, 0)


def bessel_j1(input):
    return _of_wide(_j, input, 1)


def bessel_y0(input):
    return _of_wide(_y, input, 0)


def bessel_y1(input):
    return _of_wide(_y, input, 1)


def modified_bessel_k0(input):
    return _of_wide(_k, input, 0, False)


def modified_bessel_k1(input):
    return _of_wide(_k, input, 1, False)


def scaled_modified_bessel_k0(x):
    return _of_wide(_k, x, 0, True)


def scaled_modified_bessel_k1(x):
    return _of_wide(_k, x, 1, True)


def _sinc_of(x):
    small = x.abs() < 0.5
    s, z = torch.where(small, 1.0, x), torch.where(small, x * x, 0.0)
    near = 1 + z * (-1 / 6 + z * (1 / 120 + z * (-1 / 5040 + z * (1 / 362880 + z * (-1 / 39916800 + z / 6227020800)))))
    return torch.where(small, near, torch.where(torch.isinf(x), 0.0, s.sin() / s))


def spherical_bessel_j0(x):
    return _of_wide(_sinc_of, x)


def _airy(x):
    t = _tables()
    a = x.abs()
    # Waves below -2.09, an asymptotic series above 2.09, and powers between.
    s = torch.where(x < -2.09, a, 3.0)
    angle = 2 * s * s.sqrt() / 3
    z = 1 / angle
    w = z * z
    phase = angle + math.pi / 4
    low = 1 / math.sqrt(math.pi) / s.sqrt().sqrt() * (
        phase.sin() * (1 + w * _poly(w, t.AIRY_FN) / _poly(w, (1.0,) + t.AIRY_FD))
        - phase.cos() * (z * _poly(w, t.AIRY_GN) / _poly(w, (1.0,) + t.AIRY_GD)))
    s = torch.where(x >= 2.09, x, 3.0)
    grown = 2 * s * s.sqrt() / 3
    high = 1 / math.sqrt(math.pi) * (_poly(1 / grown, t.AIRY_N) / _poly(1 / grown, t.AIRY_D)) / (
        2 * s.sqrt().sqrt() * grown.exp())
    s = torch.where((x >= -2.09) & (x < 2.09), x, 0.0)
    cube, f, g, m, n, k = s * s * s, 1.0, s, 1.0, s, 1.0
    for _ in range(12):
        m, n = m * cube / ((k + 1) * (k + 2)), n * cube / ((k + 2) * (k + 3))
        f, g, k = f + m, g + n, k + 3
    middle = 0.355028053887817239260 * f - 0.258819403792806798405 * g
    y = torch.where(x < -2.09, low, torch.where(x >= 2.09, high, middle))
    return torch.where(torch.isinf(x), math.nan, torch.where(x > 103.892, 0.0, torch.where(x.isnan(), x, y)))


def airy_ai(x):
    return _of_wide(_airy, x)


# --- orthogonal polynomials, of degrees that are numbers or tensors


_MOST_DEGREES = {torch.float32: 128, torch.float64: 512}  # of Hermite's, which overflow


def _polynomial(input, n, kind, what):
    from torch import _special_kernels
    x, degree = _both(input, n, what)
    if _kiln.records(x) and not _kiln.is_no_grad():
        raise NotImplementedError(f"the derivative for '{what}' is not implemented")
    y = _special_kernels.polynomial(x, degree, kind)
    if kind in (4, 5):
        y = torch.where(degree > _MOST_DEGREES.get(x.dtype, 128), math.nan, y)
    return y.to(x.dtype)


def chebyshev_polynomial_t(input, n):
    return _polynomial(input, n, 0, "special_chebyshev_polynomial_t")


def chebyshev_polynomial_u(input, n):
    return _polynomial(input, n, 1, "special_chebyshev_polynomial_u")


def chebyshev_polynomial_v(input, n):
    return _polynomial(input, n, 2, "special_chebyshev_polynomial_v")


def chebyshev_polynomial_w(input, n):
    return _polynomial(input, n, 3, "special_chebyshev_polynomial_w")


def hermite_polynomial_h(input, n):
    return _polynomial(input, n, 4, "special_hermite_polynomial_h")


def hermite_polynomial_he(input, n):
    return _polynomial(input, n, 5, "special_hermite_polynomial_he")


def laguerre_polynomial_l(input, n):
    return _polynomial(input, n, 6, "special_laguerre_polynomial_l")


def legendre_polynomial_p(input, n):
    return _polynomial(input, n, 7, "special_legendre_polynomial_p")


def _shifted(x):
    """2 x - 1, of integers as floats: a narrow one would overflow."""
    if isinstance(x, torch.Tensor) and not x.is_floating_point():
        x = x.to(torch.get_default_dtype())
    return 2 * x - 1


def shifted_chebyshev_polynomial_t(input, n):
    return chebyshev_polynomial_t(_shifted(input), n)


def shifted_chebyshev_polynomial_u(input, n):
    return chebyshev_polynomial_u(_shifted(input), n)


def shifted_chebyshev_polynomial_v(input, n):
    return chebyshev_polynomial_v(_shifted(input), n)


def shifted_chebyshev_polynomial_w(input, n):
    return chebyshev_polynomial_w(_shifted(input), n)
