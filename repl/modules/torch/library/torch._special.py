"""Functions of tensors that are methods too: special functions, products with sums, statistics of rows."""
import math
import torch
from torch import _elementwise, _kiln, _tape, _tensor
from torch._products import _added, _product, outer
from torch._sorting import _elements_along, _of_sorted, _quantile
from torch._tensor import _dim, _floats, _wide, gather

lazily = _kiln.lazily


# --- element by element


@lazily
def sinc(input):
    x = _wide(_floats(input)) * math.pi
    divisor = torch.where(x == 0, 1.0, x)
    return torch.where(x == 0, 1.0, divisor.sin() / divisor).to(_floats(input).dtype)


@lazily
def deg2rad(input):
    x = _floats(input)
    return (_wide(x) * (math.pi / 180)).to(x.dtype)


@lazily
def rad2deg(input):
    x = _floats(input)
    return (_wide(x) * (180 / math.pi)).to(x.dtype)


@lazily
def float_power(input, exponent):
    return (input.double() if isinstance(input, torch.Tensor) else float(input)) ** (
        exponent.double() if isinstance(exponent, torch.Tensor) else float(exponent))


@lazily
def ldexp(input, other):
    if other.is_floating_point():
        return input * other.exp2()
    x, other = _floats(input), other.int()
    half = other // 2  # in two steps: a power alone may be too large
    return (_wide(x) * half.to(_wide(x).dtype).exp2() * (other - half).to(_wide(x).dtype).exp2()).to(x.dtype)


def lgamma(input):
    return _tape.with_rule(_lgamma, (_floats(input),), lambda g, x: (g * digamma(x),))


@lazily
def _lgamma(input):
    """Lanczos' approximation in float64, which the zeros at 1 and 2 need; below 0.5 by the reflection."""
    x = input.double()
    low = x < 0.5
    z = torch.where(low, 1 - x, x) - 1
    terms = (676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
             -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)
    s = 0.99999999999980993
    for i, c in enumerate(terms):
        s = s + c / (z + (i + 1))
    t = z + 7.5
    y = (t.log() - 1) * (z + 0.5) - 7.0 + (s * math.sqrt(2 * math.pi)).log()
    r = (x - x.round()).abs()
    y = torch.where(low, math.log(math.pi) - (r * math.pi).sin().log() - y, y)
    y = torch.where(torch.isinf(x), float("inf"), y)
    return y.to(input.dtype)


def digamma(input):
    return _tape.with_rule(_digamma, (_floats(input),), lambda g, x: (g * torch.polygamma(1, x),))


@lazily
def _digamma(input):
    """The asymptotic series from 10 on; below by the recurrence, and the reflection for what is negative."""
    x = input.double()
    low = x < 0
    z = torch.where(low, 1 - x, x)
    more = z * 0
    for i in range(10):
        more = more + torch.where(z < 10, 1 / z, 0)
        z = torch.where(z < 10, z + 1, z)
    w = 1 / (z * z)
    tail = 0.0
    for c in (8.33333333333333333333e-2, -2.10927960927960927961e-2, 7.57575757575757575758e-3,
              -4.16666666666666666667e-3, 3.96825396825396825397e-3, -8.33333333333333333333e-3,
              8.33333333333333333333e-2):
        tail = (tail + c) * w
    y = z.log() - 0.5 / z - tail - more
    r = (x - x.round()) * math.pi
    y = torch.where(low, y - math.pi * r.cos() / r.sin(), y)
    y = torch.where(low & (x == x.floor()), float("nan"), y)
    y = torch.where(x == 0, torch.where(_elementwise.signbit(x), float("inf"), float("-inf")), y)
    y = torch.where(x == float("inf"), x, y)
    return y.to(input.dtype)


def erfinv(input):
    def rule(g, x):
        return (g * (erfinv(x).square().exp() * (math.sqrt(math.pi) / 2)),)

    return _tape.with_rule(_erfinv, (_floats(input),), rule)


@lazily
def _erfinv(x):
    """A rational approximation and two steps of Newton's method, in float64 because erf is flat near 1."""
    y = x.double()
    a = y.abs()
    z = a * a
    near = a * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) / (
        (((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1)
    z = (-((1 - a) / 2).log()).sqrt()
    far = (((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454) / (
        (1.637067800 * z + 3.543889200) * z + 1)
    r = torch.where(a <= 0.7, near, far)
    for _ in range(2):
        r = r - (r.erf() - a) / ((-r * r).exp() * (2 / math.sqrt(math.pi)))
    r = torch.where(a == 1, float("inf"), torch.where(a > 1, float("nan"), r))
    return _elementwise._odd(y, r).to(x.dtype)


@lazily
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose() takes tensors of one dtype, got {input.dtype} and {other.dtype}")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"isclose(rtol={rtol}, atol={atol}): they are 0 or more")
    close = input == other
    if equal_nan and input.is_floating_point():
        close = close | (input.isnan() & other.isnan())
    if rtol == 0 and atol == 0:
        return close
    other = _floats(other)
    allowed, apart = (other * rtol).abs() + atol, (_floats(input) - other).abs()
    return close | (torch.isfinite(apart) & (apart <= allowed))


# --- products


@lazily
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    out = outer(vec1, vec2)
    if torch.broadcast_shapes(input.shape, out.shape) != out.shape:
        raise RuntimeError(f"addr(): {tuple(input.shape)} does not broadcast to {tuple(out.shape)}")
    dtype = torch.promote_types(input.dtype, out.dtype)
    out = _wide(vec1).unsqueeze(1) * _wide(vec2)
    if alpha != 1:
        out = out * alpha
    if beta != 0:
        out = (_wide(input) if beta == 1 else _wide(input) * beta) + out
    return out.to(dtype)


@lazily
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    if batch1.ndim != 3 or batch2.ndim != 3 or batch1.shape[0] != batch2.shape[0] or (
            batch1.shape[2] != batch2.shape[1]):
        raise RuntimeError("addbmm() takes two batches of as many matrices")
    a = batch1.transpose(0, 1).reshape(batch1.shape[1], batch1.shape[0] * batch1.shape[2])
    return _added(input, a, batch2.reshape(batch2.shape[0] * batch2.shape[1], batch2.shape[2]), beta, alpha, "addbmm()")


@lazily
def cross(input, other, dim=None):
    a, b = torch.broadcast_tensors(input, other)
    if dim is None:
        threes = [d for d, n in enumerate(a.shape) if n == 3]
        if not threes:
            raise RuntimeError(f"cross() of {tuple(a.shape)}: no dimension has 3 elements")
        dim = threes[0]
    dim = _dim(dim, a.ndim)
    if a.ndim == 0 or input.ndim != other.ndim or a.shape[dim] != 3:
        raise RuntimeError(f"cross() of {tuple(input.shape)} and {tuple(other.shape)} along dimension {dim}")
    i = _kiln.iota(3, a)
    next, after = [_tensor._along((i + k) % 3, dim, a.ndim) for k in (1, 2)]
    a1, a2, b1, b2 = [_kiln.take(t, [dim], [places], True) for t in (a, b) for places in (next, after)]
    return a1 * b2 - a2 * b1


def det(input):
    return torch.linalg.det(input)


def inverse(input):
    return torch.linalg.inv(input)


def logdet(input):
    return torch.linalg.det(input).log()


# --- rows


@lazily
def renorm(input, p, dim, maxnorm):
    if input.ndim < 2 or not input.is_floating_point() or p <= 0 or maxnorm < 0:
        raise RuntimeError(f"renorm(p={p}, maxnorm={maxnorm}) of {input.dtype} {tuple(input.shape)}")
    d = _dim(dim, input.ndim)
    x = _wide(input)
    size = x.norm(p, [e for e in range(input.ndim) if e != d], True)
    return (x * torch.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)).to(input.dtype)


@lazily
def cov(input, *, correction=1, fweights=None, aweights=None):
    if input.ndim > 2 or input.dtype is torch.bool:
        raise RuntimeError(f"cov() of {input.dtype} {tuple(input.shape)}: it takes a matrix or a vector of numbers")
    x = _floats(input)
    x = x.reshape(1, -1) if x.ndim < 2 else x
    n, w = x.shape[1], None
    for weights in (fweights, aweights):
        if weights is not None:
            if weights.ndim != 1 or weights.numel() != n:
                raise RuntimeError(f"cov() of {n} observations with weights of {tuple(weights.shape)}")
            if not weights.is_cuda and bool((weights < 0).any()):  # what a GPU holds is not looked at
                raise RuntimeError("cov(): weights are not negative")
            w = weights if w is None else w * weights
    if fweights is not None and fweights.is_floating_point() or aweights is not None and (
            not aweights.is_floating_point()):
        raise RuntimeError("cov() takes fweights of integers and aweights of floats")
    if w is None:
        away = x - x.mean(1, True)
        out = _product(away, away.T) / max(n - correction, 0)
    else:
        w = w.to(x.dtype)
        total = w.sum()
        away = x - (x * w).sum(1, True) / total
        # Weights of importance leave less to correct for.
        by = correction if aweights is None else correction * (w * aweights).sum() / total
        out = _product(away * w, away.T) / (total - by).clamp(min=0)
    return (out.reshape(()) if out.numel() == 1 else out).to(x.dtype)


@lazily
def corrcoef(input):
    c = cov(input)
    if c.ndim == 0:
        return c / c
    d = torch.diagonal(c.contiguous()).sqrt()
    return (c / d.unsqueeze(1) / d).clamp(-1, 1)


def nanmedian(input, dim=None, keepdim=False):
    if input.dtype is torch.bool:
        raise NotImplementedError("nanmedian() does not apply to tensors of bool")
    if dim is None:
        if input.numel() == 0:
            return input.new_full((), float("nan"))
        return nanmedian(input.reshape(-1), 0)[0]
    dim, x, n = _elements_along(input, dim, "nanmedian")
    return _of_sorted(torch.return_types.nanmedian, input, dim, keepdim,
                      lambda x: (((x == x).sum(dim, True) - 1) // 2).clamp(min=0))


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    return _quantile(input, q, dim, keepdim, interpolation, True)
