"""Special functions whose series end when they are precise enough: elementwise kernels in float64."""
import torch
import triton
import triton.language as tl
from torch import _kiln
from triton.language.extra import libdevice

_MOST_TERMS = 20000
# From here on the series and the fraction would need many terms (about nine roots of a), and exp() of a difference of
# large numbers, which is what they are multiplied by, has lost digits.
_LARGE = tl.constexpr(1e5)


@triton.jit
def _large_gammas(a, x, UPPER: tl.constexpr):
    """Temme's expansion for large a (Digital Library of Mathematical Functions, 8.12): where x is not near a, the
    result is 0 or 1."""
    mu = (x - a) / a
    near = tl.abs(mu) < 0.2
    mu = tl.where(near, mu, 0.0)
    # (mu - log(1 + mu)) / mu ** 2, without a difference
    s = tl.full(mu.shape, 1 / 25, tl.float64)
    for k in tl.static_range(24, 1, -1):
        s = 1 / k - mu * s
    eta = mu * tl.sqrt(2 * s)
    c0 = -1 / 3 + eta * (1 / 12 + eta * (-1.4814814814814815e-2 + eta * (1.1574074074074074e-3 + eta * (
        3.527336860670194e-4 + eta * (-1.7875514403292181e-4 + eta * (
            3.9192631785224378e-5 - eta * 2.1854485106799922e-6))))))
    c1 = -1.8518518518518519e-3 + eta * (-3.4722222222222222e-3 + eta * (2.6455026455026455e-3
                                                                        - eta * 9.9022633744855967e-4))
    z = a * mu * mu * s
    rest = tl.exp(-z) / tl.sqrt(6.283185307179586 * a) * (c0 + (c1 + 4.1335978835978836e-3 / a) / a)
    root = tl.where(mu < 0, -tl.sqrt(z), tl.sqrt(z))
    if UPPER:
        return tl.where(near, 0.5 * libdevice.erfc(root) + rest, tl.where(x < a, 1.0, 0.0))
    return tl.where(near, 0.5 * libdevice.erfc(-root) - rest, tl.where(x < a, 0.0, 1.0))


@triton.jit
def _gammas_kernel(a_ptr, x_ptr, log_gamma_ptr, out_ptr, elements, MOST: tl.constexpr, UPPER: tl.constexpr,
                   BLOCK: tl.constexpr):
    """The regularised incomplete gamma functions: the series of the lower one up to x = a + 1, beyond the continued
    fraction of the upper one (Abramowitz and Stegun, 6.5.29 and 6.5.31)."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < elements, other=1.0)
    x = tl.load(x_ptr + at, mask=at < elements, other=0.0)
    log_gamma = tl.load(log_gamma_ptr + at, mask=at < elements, other=0.0)
    plain = (a > 0) & (x > 0) & (a < float("inf")) & (x < float("inf"))
    large = plain & (a > _LARGE)
    b, y = tl.where(plain & (a <= _LARGE), a, 1.0), tl.where(plain & (a <= _LARGE), x, 1.0)
    by_series = y <= b + 1
    factor = tl.exp(b * tl.log(y) - y - log_gamma)
    term, total, n, going = 1 / b, 1 / b, b, 1
    k = 0
    while (going > 0) & (k < MOST):
        n += 1
        term *= tl.where(by_series, y / n, 0.0)
        total += term
        going = tl.max((term > total * 1e-17).to(tl.int32), 0)
        k += 1
    lower = total * factor
    # Lentz's method
    tiny = 1e-300
    c = y + 1 - b
    c = tl.where(c == 0, tiny, c)
    d = 1 / c
    e, h = tl.full((BLOCK,), 1 / tiny, tl.float64), d
    k, going = 1, 1
    while (going > 0) & (k < MOST):
        w = -k * (k - b)
        c += 2
        d = w * d + c
        d = 1 / tl.where(tl.abs(d) < tiny, tiny, d)
        e = c + w / e
        e = tl.where(tl.abs(e) < tiny, tiny, e)
        step = d * e
        h *= tl.where(by_series, 1.0, step)
        going = tl.max(((tl.abs(step - 1) > 1e-16) & (by_series == 0)).to(tl.int32), 0)
        k += 1
    upper = h * factor
    lower = tl.where(by_series, lower, 1 - upper)
    upper = tl.where(by_series, 1 - lower, upper)
    # At the ends; NaN where there is no value.
    nan = float("nan")
    zero = (x == 0) & (a > 0) | (a == float("inf")) & (x >= 0) & (x < float("inf"))
    one = (a == 0) & (x > 0) | (x == float("inf")) & (a >= 0) & (a < float("inf"))
    lower = tl.where(plain, lower, tl.where(zero, 0.0, tl.where(one, 1.0, nan)))
    upper = tl.where(plain, upper, tl.where(zero, 1.0, tl.where(one, 0.0, nan)))
    if UPPER:
        lower = upper
    if tl.max(large.to(tl.int32), 0) > 0:
        lower = tl.where(large, _large_gammas(tl.where(large, a, 1.0), tl.where(large, x, 1.0), UPPER), lower)
    tl.store(out_ptr + at, lower, mask=at < elements)


@triton.jit
def _power(q, x):
    """q to the power -x, where q may be negative and x a whole number."""
    size = tl.exp(-x * tl.log(tl.abs(q)))
    odd = (x - 2 * tl.floor(x * 0.5)) == 1
    return tl.where((q < 0) & odd, -size, size)


# Bernoulli's numbers over factorials: (2 k)! / B(2 k).
_ZETA_TERMS = tl.constexpr((12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
                            -2.950130727918164224e12))


@triton.jit
def _zeta_kernel(x_ptr, q_ptr, out_ptr, elements, BLOCK: tl.constexpr):
    """Hurwitz' function by the sum of Euler and Maclaurin, whose first terms reach beyond 9."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < elements, other=2.0)
    q = tl.load(q_ptr + at, mask=at < elements, other=1.0)
    whole = q == tl.floor(q)
    plain = (x > 1) & ((q > 0) | ~whole & (x == tl.floor(x))) & (tl.abs(q) < float("inf"))
    y, a = tl.where(plain, x, 2.0), tl.where(plain, q, 1.0)
    b = _power(a, y)
    s, k, going = b, 0, 1
    while going > 0:
        more = (k < 9) | (a <= 9)
        a = tl.where(more, a + 1, a)
        b = tl.where(more, _power(a, y), b)
        s = tl.where(more, s + b, s)
        k += 1
        going = tl.max(((k < 9) | (a <= 9)).to(tl.int32), 0)
    s += b * a / (y - 1) - 0.5 * b
    factor, w = y, a
    b = b / w
    s += factor * b / _ZETA_TERMS[0]
    for i in tl.static_range(1, 8):
        factor *= (y + (2 * i - 1)) * (y + 2 * i)
        b = b / (w * w)
        s += factor * b / _ZETA_TERMS[i]
    nan, inf = float("nan"), float("inf")
    other = tl.where((x == 1) | (x > 1) & (q <= 0) & whole, inf, nan)
    other = tl.where((x > 1) & (q == inf), 0.0, other)
    tl.store(out_ptr + at, tl.where(plain, s, other), mask=at < elements)


@triton.jit
def _polynomial_kernel(x_ptr, n_ptr, out_ptr, elements, KIND: tl.constexpr, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    """By the recurrence of three terms. KIND: 0 to 3 Chebyshev's T, U, V, W, which have closed forms inside of -1 to 1,
    4 and 5 Hermite's H, He, which are NaN where torch's are, 6 Laguerre's, 7 Legendre's."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < elements, other=0.0)
    n = tl.load(n_ptr + at, mask=at < elements, other=0.0)
    n = tl.where(n < 0, tl.ceil(n), tl.floor(n))
    p, q = tl.full((BLOCK,), 1.0, tl.float64), x
    if (KIND == 1) | (KIND == 4):
        q = x + x
    elif KIND == 2:
        q = x + x - 1
    elif KIND == 3:
        q = x + x + 1
    elif KIND == 6:
        q = 1 - x
    out = tl.where(n == 0, p, q)
    odd = (x < 0) & (n - 2 * tl.floor(n * 0.5) == 1)
    sign, at_end = tl.where(odd, -1.0, 1.0), tl.abs(x) == 1
    if KIND < 4:
        closed = (n > 6) & (tl.abs(x) <= 1)
        angle = libdevice.acos(tl.where(tl.abs(x) < 1, x, 0.0))
        if KIND == 0:
            form, end = tl.cos(n * angle), sign
        elif KIND == 1:
            form, end = tl.sin((n + 1) * angle) / tl.sin(angle), sign * (n + 1)
        elif KIND == 2:
            form, end = tl.cos((n + 0.5) * angle) / tl.cos(angle * 0.5), tl.where(x > 0, 1.0, sign * (2 * n + 1))
        else:
            form, end = tl.sin((n + 0.5) * angle) / tl.sin(angle * 0.5), tl.where(x > 0, 2 * n + 1, sign)
        form = tl.where(at_end, end, form)
    elif KIND < 6:
        closed, form = n > LIMIT, tl.full((BLOCK,), float("nan"), tl.float64)
    elif KIND == 6:
        closed, form = (n > 6) & (x == 0), tl.full((BLOCK,), 1.0, tl.float64)
    else:
        closed, form = (n > 6) & at_end, sign
    out = tl.where(closed, form, out)
    most, k = tl.max(tl.where(closed, 0.0, n), 0), 1.0
    while k < most:
        if KIND < 4:
            r = (x + x) * q - p
        elif KIND == 4:
            r = (x + x) * q - 2 * k * p
        elif KIND == 5:
            r = x * q - k * p
        elif KIND == 6:
            r = ((2 * k + 1 - x) * q - k * p) / (k + 1)
        else:
            r = ((2 * k + 1) * x * q - k * p) / (k + 1)
        p, q = q, r
        k += 1
        out = tl.where((n == k) & (closed == 0), q, out)
    tl.store(out_ptr + at, tl.where(n < 0, 0.0, out), mask=at < elements)


def _wide(*tensors):
    return [t.detach().double().contiguous() for t in torch.broadcast_tensors(*tensors)]


def _run(kernel, operands, **options):
    _kiln.runs_kernels(operands[0])
    out = torch.empty_like(operands[0])
    if out.numel() > 0:
        kernel[(triton.cdiv(out.numel(), 128),)](*operands, out, out.numel(), BLOCK=128, **options)
    return out


def gammas(a, x, upper):
    a, x = _wide(a, x)
    log_gamma = torch.lgamma(torch.where(a > 0, a, 1.0)).contiguous().run()
    return _run(_gammas_kernel, [a, x, log_gamma], MOST=_MOST_TERMS, UPPER=upper)


def zeta(x, q):
    return _run(_zeta_kernel, _wide(x, q))


def polynomial(x, n, kind):
    return _run(_polynomial_kernel, _wide(x, n), KIND=kind, LIMIT=512 if x.dtype == torch.float64 else 128)
