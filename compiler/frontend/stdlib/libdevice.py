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
def fast_fdividef(x, y):
    return tl.fdiv(x, y)


@triton.jit
def fast_exp10f(x):
    return tl.exp2(x * 3.321928094887362)


@triton.jit
def fast_log2f(x):
    return tl.log2(x)


@triton.jit
def fast_log10f(x):
    return log10(x)


@triton.jit
def fast_sinf(x):
    return tl.sin(x)


@triton.jit
def fast_cosf(x):
    return tl.cos(x)


@triton.jit
def fast_tanf(x):
    return tan(x)


@triton.jit
def fast_tanhf(x):
    return libdevice.tanh(x)


@triton.jit
def fast_powf(x, y):
    return libdevice.pow(x, y)


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
def sinpi(x):
    r = x - 2.0 * libdevice.rint(0.5 * x)
    a = tl.abs(r)
    s = tl.sin(3.141592653589793 * tl.where(a > 0.5, 1.0 - a, a))
    return copysign(s, tl.where(r == 0.0, x, r))


@triton.jit
def cospi(x):
    a = tl.abs(x - 2.0 * libdevice.rint(0.5 * x))
    return tl.sin(3.141592653589793 * (0.5 - a))


@triton.jit
def atan_of_small(t):
    # |t| <= tan(pi / 8): t + t^3 P(t^2).
    z = t * t
    if t.dtype == tl.float64:
        p = -0.019175404711104934 * z + 0.039230447784793095
        p = p * z - 0.050854078345894843
        p = p * z + 0.058581409048663283
        p = p * z - 0.066645105255089366
        p = p * z + 0.076921831253768921
        p = p * z - 0.090909045753064891
        p = p * z + 0.11111111015187019
        p = p * z - 0.14285714284665681
        p = p * z + 0.19999999999995517
        p = p * z - 0.3333333333333333
    else:
        p = -0.06451718869 * z + 0.1074366832
        p = p * z - 0.1426394975
        p = p * z + 0.1999954031
        p = p * z - 0.3333333176
    return t + t * (z * p)


@triton.jit
def atan_of_ratio(a, b):
    # Of a / b, where 0 <= a <= b: what lies above tan(pi / 8) is pi / 4 and the angle from there.
    far = a > 0.41421356237309503 * b
    r = atan_of_small(libdevice.div_rn(tl.where(far, a - b, a), tl.where(far, a + b, tl.where(b == 0.0, 1.0, b))))
    if a.dtype == tl.float64:
        return tl.where(far, 0.7853981633974483 + (r + 3.061616997868383e-17), r)
    else:
        return tl.where(far, 0.7853981852531433 + (r - 2.1855695e-08), r)


@triton.jit
def quarter_less(r):
    # pi / 2 - r
    if r.dtype == tl.float64:
        return 1.5707963267948966 - (r - 6.123233995736766e-17)
    else:
        return 1.5707963705062866 - (r + 4.371139e-08)


@triton.jit
def half_less(r):
    # pi - r
    if r.dtype == tl.float64:
        return 3.141592653589793 - (r - 1.2246467991473532e-16)
    else:
        return 3.1415927410125732 - (r + 8.742278e-08)


@triton.jit
def float32_or_float64(x):
    tl.static_assert(x.dtype == tl.float32 or x.dtype == tl.float64, "it takes float32 or float64: cast with .to(tl.float32)")


@triton.jit
def atan(x):
    float32_or_float64(x)
    a = tl.abs(x)
    big = a > 1.0
    r = atan_of_ratio(tl.where(big, 1.0, a).to(x.dtype), tl.where(big, a, 1.0).to(x.dtype))
    r = tl.where(a == float("inf"), 0.0, r)
    return tl.where(x != x, x, copysign(tl.where(big, quarter_less(r), r), x))


@triton.jit
def atan2(y, x):
    float32_or_float64(x)
    float32_or_float64(y)
    a = tl.abs(x)
    b = tl.abs(y)
    both = (a == float("inf")) & (b == float("inf"))
    a = tl.where(both, 1.0, a).to(x.dtype)
    b = tl.where(both, 1.0, b).to(x.dtype)
    low = tl.minimum(a, b)
    high = tl.maximum(a, b)
    # Quarters, which are exact, keep a + b from overflowing and both from vanishing.
    scale = tl.where(high > 1.0e30, 0.25, tl.where(high < 1.0e-30, 16777216.0, 1.0)).to(x.dtype)
    r = tl.where(high == float("inf"), 0.0, atan_of_ratio(low * scale, high * scale))
    r = tl.where(b > a, quarter_less(r), r)
    r = tl.where(signbit(x) != 0, half_less(r), r)
    return tl.where((x != x) | (y != y), x + y, copysign(r, y))


@triton.jit
def asin_of_small(x):
    # |x| <= 1/2: x + x^3 P(x^2).
    z = x * x
    if x.dtype == tl.float64:
        p = 0.028778442612593041 * z - 0.014881409392818067
        p = p * z + 0.017419357964884857
        p = p * z + 0.0054508781877205499
        p = p * z + 0.010324318288744112
        p = p * z + 0.011478952690257387
        p = p * z + 0.013971235301124539
        p = p * z + 0.017352391265909228
        p = p * z + 0.022372173002005597
        p = p * z + 0.030381944137085214
        p = p * z + 0.044642857146373381
        p = p * z + 0.074999999999984243
        p = p * z + 0.16666666666666668
    else:
        p = 0.03370072632 * z + 0.01714371682
        p = p * z + 0.03110172783
        p = p * z + 0.04459931916
        p = p * z + 0.07500094761
        p = p * z + 0.1666666634
    return x + x * (z * p)


@triton.jit
def asin(x):
    float32_or_float64(x)
    # Above 1/2: pi/2 - 2 asin(sqrt((1 - |x|) / 2)).
    a = tl.abs(x)
    big = a > 0.5
    r = asin_of_small(tl.where(big, tl.sqrt_rn(0.5 - 0.5 * a), a))
    return copysign(tl.where(big, quarter_less(2.0 * r), r), x)


@triton.jit
def acos(x):
    float32_or_float64(x)
    a = tl.abs(x)
    big = a > 0.5
    r = asin_of_small(tl.where(big, tl.sqrt_rn(0.5 - 0.5 * a), x))
    return tl.where(big, tl.where(x < 0.0, half_less(2.0 * r), 2.0 * r), quarter_less(r))


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
def round(x):
    # To nearest, ties away from zero. What is added is the number below a half: 0.5 would take 0.49999997 to 1, and
    # half an ulp less changes no other sum.
    BITS: tl.constexpr = x.dtype.primitive_bitwidth
    word: tl.constexpr = tl.core.get_int_dtype(BITS, False)
    HALF: tl.constexpr = 0x3fdfffffffffffff if BITS == 64 else 0x3effffff
    half = (x.to(word, bitcast=True) & (1 << (BITS - 1))) | HALF
    return libdevice.trunc(x + half.to(x.dtype, bitcast=True))


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
    return x != x


@triton.jit
def isinf(x):
    return tl.abs(x) == float("inf")


@triton.jit
def finitef(x):
    return tl.abs(x) < float("inf")


@triton.jit
def isfinited(x):
    return tl.abs(x) < float("inf")


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
def rhypot(x, y):
    return 1.0 / hypot(x, y)


@triton.jit
def cbrt(x):
    # 2^(log2(a) / 3), and a step of Newton's.
    a = tl.abs(x)
    y = tl.exp2(tl.log2(a) * 0.3333333333333333)
    size = y - (y - libdevice.div_rn(a, y * y)) * 0.3333333333333333
    return tl.where((a == 0.0) | (a == float("inf")), x, copysign(size, x))


@triton.jit
def rcbrt(x):
    return libdevice.div_rn(tl.full([], 1.0, x.dtype), cbrt(x))


@triton.jit
def normcdf(x):
    return 0.5 + 0.5 * tl.erf(x * 0.7071067811865476)


@triton.jit
def fdim(x, y):
    return tl.where(x <= y, 0.0, x - y)


@triton.jit
def saturatef(x):
    return tl.minimum(tl.maximum(x, 0.0), 1.0)


@triton.jit
def llround(x):
    return round(x).to(tl.int64)
