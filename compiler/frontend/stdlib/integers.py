# Functions of libdevice on integers and on the bits of floats, and its conversions.
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def unsigned(x):
    if x.dtype.primitive_bitwidth == 64:
        return x.to(tl.uint64, bitcast=True)
    else:
        return x.to(tl.uint32, bitcast=True)


@triton.jit
def popc(x):
    # Counts in pairs of bits, then of pairs, then of fours; a product adds the bytes.
    u = unsigned(x)
    if x.dtype.primitive_bitwidth == 64:
        u = u - ((u >> 1) & 0x5555555555555555)
        u = (u & 0x3333333333333333) + ((u >> 2) & 0x3333333333333333)
        u = (u + (u >> 4)) & 0x0F0F0F0F0F0F0F0F
        return ((u * 0x0101010101010101) >> 56).to(tl.int32)
    else:
        u = u - ((u >> 1) & 0x55555555)
        u = (u & 0x33333333) + ((u >> 2) & 0x33333333)
        u = (u + (u >> 4)) & 0x0F0F0F0F
        return ((u * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def clz(x):
    # Ones below the first one; the rest is in front of it.
    u = unsigned(x)
    for k in tl.static_range(6 if x.dtype.primitive_bitwidth == 64 else 5):
        u = u | (u >> (1 << k))
    return x.dtype.primitive_bitwidth - popc(u)


@triton.jit
def ffs(x):
    # The place of the lowest one, from 1; 0 of 0
    u = unsigned(x)
    below = (u ^ (u - 1)).to(x.dtype, bitcast=True)
    return tl.where(x == 0, 0, popc(below))


@triton.jit
def brev(x):
    u = unsigned(x)
    if x.dtype.primitive_bitwidth == 64:
        u = ((u >> 1) & 0x5555555555555555) | ((u & 0x5555555555555555) << 1)
        u = ((u >> 2) & 0x3333333333333333) | ((u & 0x3333333333333333) << 2)
        u = ((u >> 4) & 0x0F0F0F0F0F0F0F0F) | ((u & 0x0F0F0F0F0F0F0F0F) << 4)
        u = ((u >> 8) & 0x00FF00FF00FF00FF) | ((u & 0x00FF00FF00FF00FF) << 8)
        u = ((u >> 16) & 0x0000FFFF0000FFFF) | ((u & 0x0000FFFF0000FFFF) << 16)
        u = (u >> 32) | (u << 32)
    else:
        u = ((u >> 1) & 0x55555555) | ((u & 0x55555555) << 1)
        u = ((u >> 2) & 0x33333333) | ((u & 0x33333333) << 2)
        u = ((u >> 4) & 0x0F0F0F0F) | ((u & 0x0F0F0F0F) << 4)
        u = ((u >> 8) & 0x00FF00FF) | ((u & 0x00FF00FF) << 8)
        u = (u >> 16) | (u << 16)
    return u.to(x.dtype, bitcast=True)


@triton.jit
def picked_byte(x, y, selector, k):
    # Four bits of the selector: which of the eight bytes of y:x, and whether its sign alone is copied.
    which = (selector >> (4 * k)) & 7
    word = tl.where(which < 4, unsigned(x), unsigned(y))
    byte = (word >> ((which & 3).to(tl.uint32) * 8)) & 255
    sign = ((selector >> (4 * k)) & 8) != 0
    return tl.where(sign, tl.where(byte >= 128, 255, 0), byte).to(tl.uint32) << (8 * k)


@triton.jit
def byte_perm(x, y, selector):
    r = picked_byte(x, y, selector, 0) | picked_byte(x, y, selector, 1)
    r = r | picked_byte(x, y, selector, 2) | picked_byte(x, y, selector, 3)
    return r.to(tl.int32, bitcast=True)


@triton.jit
def mulhi(x, y):
    if x.dtype.is_int_unsigned():
        return tl.umulhi(x, y)
    else:
        high = tl.umulhi(unsigned(x), unsigned(y)).to(x.dtype, bitcast=True)
        return high - tl.where(x < 0, y, 0) - tl.where(y < 0, x, 0)


@triton.jit
def mul24(x, y):
    return ((x << 8) >> 8) * ((y << 8) >> 8)


@triton.jit
def sad(x, y, z):
    # Of ints the distance may need the sign's bit: it is unsigned, and so is the sum.
    d = tl.where(x > y, unsigned(x) - unsigned(y), unsigned(y) - unsigned(x))
    return (d + unsigned(z)).to(z.dtype, bitcast=True)


@triton.jit
def hadd(x, y):
    return (x & y) + ((x ^ y) >> 1)


@triton.jit
def rhadd(x, y):
    return (x | y) - ((x ^ y) >> 1)


# --- the parts of a float


@triton.jit
def power_of_2(n, dtype):
    if dtype == tl.float64:
        return ((n.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)
    else:
        return ((n + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def ldexp(x, n):
    # Powers down from a normal number leave room for its digits, so that only the last product rounds.
    most: tl.constexpr = 1023 if x.dtype == tl.float64 else 127
    least: tl.constexpr = -969 if x.dtype == tl.float64 else -102
    n = n.to(tl.int32)
    for k in tl.static_range(2):
        x = tl.where(n > most, x * power_of_2(tl.full([], most, tl.int32), x.dtype), x)
        x = tl.where(n < 1 - most, x * power_of_2(tl.full([], least, tl.int32), x.dtype), x)
        n = tl.where(n > most, n - most, tl.where(n < 1 - most, n - least, n))
    return x * power_of_2(tl.minimum(tl.maximum(n, 1 - most), most), x.dtype)


@triton.jit
def scalbn(x, n):
    return ldexp(x, n)


@triton.jit
def exponent(x):
    # Of a finite number other than 0
    if x.dtype == tl.float64:
        tiny = tl.abs(x) < 2.2250738585072014e-308
        i = tl.where(tiny, x * 18014398509481984.0, x).to(tl.int64, bitcast=True)
        return ((i >> 52) & 2047).to(tl.int32) - tl.where(tiny, 1077, 1023)
    else:
        tiny = tl.abs(x) < 1.1754943508222875e-38
        i = tl.where(tiny, x * 33554432.0, x).to(tl.int32, bitcast=True)
        return ((i >> 23) & 255) - tl.where(tiny, 152, 127)


@triton.jit
def ilogb(x):
    none = (x == 0.0) | (x != x)
    return tl.where(none, -2147483648, tl.where(tl.abs(x) == float("inf"), 2147483647, exponent(x)))


@triton.jit
def logb(x):
    a = tl.abs(x)
    return tl.where(x == 0.0, -float("inf"), tl.where(a < float("inf"), exponent(x).to(x.dtype), a))


@triton.jit
def remainder(x, y):
    # x less the nearest multiple of y, of two the even one: fmod by 2 y leaves at most one step of y on either side.
    p = tl.abs(y)
    half_of_all: tl.constexpr = 8.98846567431158e307 if x.dtype == tl.float64 else 1.7014117331926443e38
    r = tl.where(p < half_of_all, libdevice.fmod(tl.abs(x), tl.minimum(p, half_of_all).to(x.dtype) * 2.0), tl.abs(x))
    # Halves of large numbers and doubles of small ones are exact.
    large = p > 1.0
    high = tl.where(large, r > 0.5 * p, r + r > p)
    r = tl.where(high, r - p, r)
    again = high & tl.where(large, r >= 0.5 * p, r + r >= p)
    r = tl.where(again, r - p, r)
    invalid = (y == 0.0) | (tl.abs(x) == float("inf")) | (x != x) | (y != y)
    signed = tl.where(libdevice.signbit(x) != 0, -r, r)
    return tl.where(invalid, float("nan"), tl.where(p == float("inf"), x, signed))


@triton.jit
def norm3d(x, y, z):
    return norm4d(x, y, z, tl.zeros([], x.dtype))


@triton.jit
def norm4d(x, y, z, w):
    a = tl.maximum(tl.maximum(tl.abs(x), tl.abs(y)), tl.maximum(tl.abs(z), tl.abs(w)))
    # A power of 2 that brings the largest near 1 loses nothing.
    usual = (a > 0.0) & (a < float("inf"))
    e = exponent(tl.where(usual, a, 1.0).to(x.dtype))
    x = ldexp(x, -e)
    y = ldexp(y, -e)
    z = ldexp(z, -e)
    w = ldexp(w, -e)
    r = ldexp(tl.sqrt_rn((x * x + y * y) + (z * z + w * w)), e)
    return tl.where(a == float("inf"), a, r)


@triton.jit
def rnorm3d(x, y, z):
    return libdevice.div_rn(tl.full([], 1.0, x.dtype), norm3d(x, y, z))


@triton.jit
def rnorm4d(x, y, z, w):
    return libdevice.div_rn(tl.full([], 1.0, x.dtype), norm4d(x, y, z, w))


# --- the same bits as another type


@triton.jit
def hiloint2double(high, low):
    both = (unsigned(high).to(tl.uint64) << 32) | unsigned(low).to(tl.uint64)
    return both.to(tl.float64, bitcast=True)


@triton.jit
def double2loint(x):
    return x.to(tl.int64, bitcast=True).to(tl.int32)


@triton.jit
def double2hiint(x):
    return (x.to(tl.int64, bitcast=True) >> 32).to(tl.int32)


@triton.jit
def int_as_float(x):
    return x.to(tl.float32, bitcast=True)


@triton.jit
def uint_as_float(x):
    return x.to(tl.float32, bitcast=True)


@triton.jit
def float_as_int(x):
    return x.to(tl.int32, bitcast=True)


@triton.jit
def float_as_uint(x):
    return x.to(tl.uint32, bitcast=True)


@triton.jit
def longlong_as_double(x):
    return x.to(tl.float64, bitcast=True)


@triton.jit
def double_as_longlong(x):
    return x.to(tl.int64, bitcast=True)
