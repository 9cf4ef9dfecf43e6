# Functions of libdevice that are made of others.
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def fast_expf(x):
    return tl.exp(x)


@triton.jit
def fast_logf(x):
    return tl.log(x)


@triton.jit
def fast_dividef(x, y):
    return tl.fdiv(x, y)


@triton.jit
def exp10(x):
    return tl.exp2(x * 3.321928094887362)


@triton.jit
def log10(x):
    return tl.log2(x) * 0.3010299956639812


@triton.jit
def tan(x):
    return tl.sin(x) / tl.cos(x)


@triton.jit
def sinh(x):
    # With e = exp(|x|) - 1, sinh = (e + e / (e + 1)) / 2 keeps its digits near 0; half of exp is taken before it overflows.
    a = tl.abs(x)
    e = libdevice.expm1(tl.minimum(a, 40.0))
    h = tl.exp(0.5 * a)
    size = tl.where(a < 40.0, 0.5 * (e + e / (e + 1.0)), 0.5 * h * h)
    return tl.where(x < 0.0, -size, size)


@triton.jit
def cosh(x):
    h = tl.exp(0.5 * tl.abs(x))
    return 0.5 * h * h + 0.5 / h / h


@triton.jit
def asinh(x):
    a = tl.abs(x)
    r = libdevice.log1p(a + a * a / (1.0 + tl.sqrt(a * a + 1.0)))
    big = tl.where(a > 1.0e18, tl.log(a) + 0.6931471805599453, r)
    return tl.where(x < 0.0, -big, big)


@triton.jit
def acosh(x):
    t = x - 1.0
    r = libdevice.log1p(t + tl.sqrt(t * t + 2.0 * t))
    return tl.where(x > 1.0e18, tl.log(x) + 0.6931471805599453, r)


@triton.jit
def atanh(x):
    return 0.5 * libdevice.log1p(2.0 * x / (1.0 - x))


@triton.jit
def erfc(x):
    return 1.0 - tl.erf(x)


@triton.jit
def round(x):
    # To nearest, ties away from zero.
    t = libdevice.trunc(x)
    return tl.where(tl.abs(x - t) >= 0.5, t + tl.where(x < 0.0, -1.0, 1.0), t)


@triton.jit
def llrint(x):
    return libdevice.rint(x).to(tl.int64)


@triton.jit
def fmax(x, y):
    return tl.maximum(x, y)


@triton.jit
def fmin(x, y):
    return tl.minimum(x, y)


@triton.jit
def isnan(x):
    return (x != x).to(tl.int32)


@triton.jit
def isinf(x):
    return (tl.abs(x) == float("inf")).to(tl.int32)


@triton.jit
def finitef(x):
    return (tl.abs(x) < float("inf")).to(tl.int32)


@triton.jit
def isfinited(x):
    return (tl.abs(x) < float("inf")).to(tl.int32)


@triton.jit
def signbit(x):
    if x.dtype.primitive_bitwidth == 64:
        return (x.to(tl.int64, bitcast=True) < 0).to(tl.int32)
    else:
        return (x.to(tl.int32, bitcast=True) < 0).to(tl.int32)


@triton.jit
def copysign(x, y):
    return tl.where(signbit(y) != 0, -tl.abs(x), tl.abs(x))


@triton.jit
def hypot(x, y):
    a = tl.maximum(tl.abs(x), tl.abs(y))
    b = tl.minimum(tl.abs(x), tl.abs(y))
    r = b / tl.where(a == 0.0, 1.0, a)
    return a * tl.sqrt(1.0 + r * r)


@triton.jit
def cbrt(x):
    size = tl.exp2(tl.log2(tl.abs(x)) * 0.3333333333333333)
    return tl.where(x == 0.0, x, tl.where(x < 0.0, -size, size))
