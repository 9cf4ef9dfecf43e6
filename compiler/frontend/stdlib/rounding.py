# Arithmetic of libdevice that rounds as its name says: rn to nearest even, rz toward zero, rd down, ru up.
#
# A sum, product, quotient or root that is rounded to nearest has an error whose sign is known exactly: the result steps
# to its neighbour where that lies on the asked side. float32 is computed in float64 and float64 as a pair.
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def alone(x):
    # x as it is. What adds to it afterwards is not fused with the product that it may be.
    return tl.fma(x, 1.0, -0.0)


@triton.jit
def bits_of(x):
    if x.dtype.primitive_bitwidth == 64:
        return x.to(tl.int64, bitcast=True)
    else:
        return x.to(tl.int32, bitcast=True)


@triton.jit
def next_up(x):
    i = bits_of(x)
    up = tl.where(x == 0.0, 1, tl.where(i < 0, i - 1, i + 1)).to(i.dtype)
    return tl.where((x != x) | (x == float("inf")), x, up.to(x.dtype, bitcast=True))


@triton.jit
def next_down(x):
    return -next_up(-x)


@triton.jit
def nextafter(x, y):
    return tl.where((x != x) | (y != y), x + y, tl.where(x == y, y, tl.where(x < y, next_up(x), next_down(x))))


@triton.jit
def step(nearest, below, above, mode):
    # below, above: where the exact value lies, seen from the nearest one
    if mode == "rd":
        return tl.where(below, next_down(nearest), nearest)
    elif mode == "ru":
        return tl.where(above, next_up(nearest), nearest)
    else:
        down = below & (nearest > 0.0)
        return tl.where(down, next_down(nearest), tl.where(above & (nearest < 0.0), next_up(nearest), nearest))


@triton.jit
def narrowed(value, error, mode):
    # float64 value + error, of which only the error's sign counts, to float32
    nearest = value.to(tl.float32)
    d = value - nearest.to(tl.float64)
    below = (d < 0.0) | ((d == 0.0) & (error < 0.0))
    above = (d > 0.0) | ((d == 0.0) & (error > 0.0))
    return step(nearest, below, above, mode)


@triton.jit
def stepped(value, error, mode):
    return step(value, error < 0.0, error > 0.0, mode)


@triton.jit
def two_sum(a, b):
    # a + b exactly, as the rounded sum and its error; of an overflow, toward what was finite
    s = a + b
    t = s - a
    error = (a - (s - t)) + (b - t)
    overflow = (tl.abs(s) == float("inf")) & (tl.abs(a) < float("inf")) & (tl.abs(b) < float("inf"))
    return s, tl.where(overflow, -s, error)


@triton.jit
def zero_down(r, x, y, mode):
    # x + y = 0 of two signs is -0 where it is rounded down
    if mode == "rd":
        return tl.where((r == 0.0) & (x == -y) & ((bits_of(x) | bits_of(y)) < 0), -0.0, r)
    else:
        return r


@triton.jit
def add(x, y, mode):
    if x.dtype == tl.float64:
        a = alone(x)
        b = alone(y)
        s, error = two_sum(a, b)
        return zero_down(stepped(s, error, mode), a, b, mode)
    else:
        a = x.to(tl.float64)
        b = y.to(tl.float64)
        s, error = two_sum(a, b)
        return zero_down(narrowed(s, error, mode), x, y, mode)


@triton.jit
def sign_of_product(x, y):
    return tl.where((x == 0.0) | (y == 0.0), 0.0, tl.where((x < 0.0) != (y < 0.0), -1.0, 1.0))


@triton.jit
def mul(x, y, mode):
    if x.dtype == tl.float64:
        p = libdevice.mul_rn(x, y)
        # A product that is nearly denormal has an error that no number is: both are taken 2^300 times as large.
        scale = tl.where(tl.abs(p) < 1.0e-270, 2.037035976334486e90, 1.0).to(tl.float64)
        less = tl.abs(x) < tl.abs(y)
        error = tl.fma(tl.where(less, x, y) * scale, tl.where(less, y, x), -(p * scale))
        return stepped(p, tl.where(p == 0.0, sign_of_product(x, y), error), mode)
    else:
        return narrowed(x.to(tl.float64) * y.to(tl.float64), 0.0, mode)


@triton.jit
def div(x, y, mode):
    if x.dtype == tl.float64:
        q = libdevice.div_rn(x, y)
        scale = tl.where(tl.abs(x) < 1.0e-150, 2.037035976334486e90, 1.0).to(tl.float64)
        error = tl.fma(-(q * scale), y, alone(x) * scale)
        return stepped(q, tl.where(y < 0.0, -error, error), mode)
    else:
        a = x.to(tl.float64)
        b = y.to(tl.float64)
        q = libdevice.div_rn(a, b)
        error = tl.fma(-q, b, a)
        return narrowed(q, tl.where(b < 0.0, -error, error), mode)


@triton.jit
def sqrt(x, mode):
    if x.dtype == tl.float64:
        r = tl.sqrt_rn(x)
        scale = tl.where(x < 1.0e-150, 1.4272476927059599e45, 1.0).to(tl.float64)
        part = r * scale
        return stepped(r, tl.fma(-part, part, alone(x) * scale * scale), mode)
    else:
        a = x.to(tl.float64)
        r = tl.sqrt_rn(a)
        return narrowed(r, tl.fma(-r, r, a), mode)


@triton.jit
def fused(x, y, z, mode):
    if x.dtype == tl.float64:
        # The error of an fma is the sum of two numbers (Boldo and Muller, 2005); its sign is that of their sum. It is
        # computed 2^400 times as large where they might be denormal, and by 2^200 smaller where they might overflow.
        c = alone(z)
        r = tl.fma(x, y, c)
        p = libdevice.mul_rn(x, y)
        huge = (tl.abs(p) > 1.0e300) | (tl.abs(c) > 1.0e300) | (tl.abs(r) > 1.0e300)
        tiny = (tl.abs(p) < 1.0e-270) & (tl.abs(c) < 1.0e-210)
        scale = tl.where(huge, 6.223015277861142e-61, tl.where(tiny, 2.5822498780869086e120, 1.0)).to(tl.float64)
        swap = (tl.abs(x) < tl.abs(y)) != tiny
        a = tl.where(swap, y, x) * scale
        b = tl.where(swap, x, y)
        scaled_c = c * scale
        q = libdevice.mul_rn(a, b)
        small, smallest = two_sum(scaled_c, tl.fma(a, b, -q))
        large, middle = two_sum(alone(q), small)
        error = ((large - r * scale) + middle) + smallest
        # What the scale, or the product, has lost entirely still has a sign.
        rest = tl.where(q == 0.0, sign_of_product(x, y), tl.where(scaled_c == 0.0, c, 0.0))
        error = tl.where(error == 0.0, rest, error)
        finite = (tl.abs(x) < float("inf")) & (tl.abs(y) < float("inf")) & (tl.abs(c) < float("inf"))
        error = tl.where((tl.abs(r) == float("inf")) & finite, -r, error)
        return tl.where(error == 0.0, zero_down(r, p, c, mode), stepped(r, error, mode))
    else:
        a = x.to(tl.float64) * y.to(tl.float64)
        c = z.to(tl.float64)
        s, error = two_sum(alone(a), c)
        return zero_down(narrowed(s, error, mode), a, c, mode)


@triton.jit
def rsqrt_rn(x):
    # The nearest float32 of the float64 value, unless the middle between it and a neighbour is on the other side.
    a = x.to(tl.float64)
    r = libdevice.div_rn(tl.full([], 1.0, tl.float64), tl.sqrt_rn(a)).to(tl.float32)
    down = next_down(r)
    up = next_up(r)
    low = (r.to(tl.float64) + down.to(tl.float64)) * 0.5
    high = (r.to(tl.float64) + up.to(tl.float64)) * 0.5
    r = tl.where(tl.fma(a, low * low, -1.0) > 0.0, down, tl.where(tl.fma(a, high * high, -1.0) < 0.0, up, r))
    return tl.where(x == 0.0, libdevice.copysign(float("inf"), x), tl.where(x == float("inf"), 0.0, r))


@triton.jit
def add_rn(x, y):
    return tl.fma(x, 1.0, y)


@triton.jit
def sub_rn(x, y):
    return tl.fma(y, -1.0, x)


@triton.jit
def fma_rn(x, y, z):
    return tl.fma(x, y, z)


@triton.jit
def rcp_rn(x):
    return libdevice.div_rn(tl.full([], 1.0, x.dtype), x)


@triton.jit
def add_rz(x, y):
    return add(x, y, "rz")


@triton.jit
def sub_rz(x, y):
    return add(x, -y, "rz")


@triton.jit
def mul_rz(x, y):
    return mul(x, y, "rz")


@triton.jit
def div_rz(x, y):
    return div(x, y, "rz")


@triton.jit
def rcp_rz(x):
    return div(tl.full(x.shape, 1.0, x.dtype), x, "rz")


@triton.jit
def sqrt_rz(x):
    return sqrt(x, "rz")


@triton.jit
def fma_rz(x, y, z):
    return fused(x, y, z, "rz")


@triton.jit
def add_rd(x, y):
    return add(x, y, "rd")


@triton.jit
def sub_rd(x, y):
    return add(x, -y, "rd")


@triton.jit
def mul_rd(x, y):
    return mul(x, y, "rd")


@triton.jit
def div_rd(x, y):
    return div(x, y, "rd")


@triton.jit
def rcp_rd(x):
    return div(tl.full(x.shape, 1.0, x.dtype), x, "rd")


@triton.jit
def sqrt_rd(x):
    return sqrt(x, "rd")


@triton.jit
def fma_rd(x, y, z):
    return fused(x, y, z, "rd")


@triton.jit
def add_ru(x, y):
    return add(x, y, "ru")


@triton.jit
def sub_ru(x, y):
    return add(x, -y, "ru")


@triton.jit
def mul_ru(x, y):
    return mul(x, y, "ru")


@triton.jit
def div_ru(x, y):
    return div(x, y, "ru")


@triton.jit
def rcp_ru(x):
    return div(tl.full(x.shape, 1.0, x.dtype), x, "ru")


@triton.jit
def sqrt_ru(x):
    return sqrt(x, "ru")


@triton.jit
def fma_ru(x, y, z):
    return fused(x, y, z, "ru")


# --- conversions; what is too large becomes the largest integer, and NaN 0


@triton.jit
def whole(x, mode):
    if mode == "rn":
        return libdevice.rint(x)
    elif mode == "rz":
        return libdevice.trunc(x)
    elif mode == "rd":
        return tl.floor(x)
    else:
        return tl.ceil(x)


@triton.jit
def halves(x):
    # A 64-bit integer as the sum of a float64 and its error
    return two_sum((x >> 32).to(tl.float64) * 4294967296.0, (x & 0xFFFFFFFF).to(tl.float64))


@triton.jit
def wide_to_float32(x, mode):
    value, error = halves(x)
    return narrowed(value, error, mode)


@triton.jit
def wide_to_float64(x, mode):
    value, error = halves(x)
    return stepped(value, error, mode)


@triton.jit
def double2float_rn(x):
    return x.to(tl.float32)


@triton.jit
def float2int_rn(x):
    return whole(x, "rn").to(tl.int32)


@triton.jit
def float2uint_rn(x):
    return whole(x, "rn").to(tl.uint32)


@triton.jit
def float2ll_rn(x):
    return whole(x, "rn").to(tl.int64)


@triton.jit
def float2ull_rn(x):
    return whole(x, "rn").to(tl.uint64)


@triton.jit
def double2int_rn(x):
    return whole(x, "rn").to(tl.int32)


@triton.jit
def double2uint_rn(x):
    return whole(x, "rn").to(tl.uint32)


@triton.jit
def double2ll_rn(x):
    return whole(x, "rn").to(tl.int64)


@triton.jit
def double2ull_rn(x):
    return whole(x, "rn").to(tl.uint64)


@triton.jit
def int2float_rn(x):
    return x.to(tl.float32)


@triton.jit
def int2double_rn(x):
    return x.to(tl.float64)


@triton.jit
def uint2float_rn(x):
    return x.to(tl.float32)


@triton.jit
def uint2double_rn(x):
    return x.to(tl.float64)


@triton.jit
def ll2float_rn(x):
    return x.to(tl.float32)


@triton.jit
def ll2double_rn(x):
    return x.to(tl.float64)


@triton.jit
def ull2float_rn(x):
    return x.to(tl.float32)


@triton.jit
def ull2double_rn(x):
    return x.to(tl.float64)


@triton.jit
def double2float_rz(x):
    return narrowed(x, 0.0, "rz")


@triton.jit
def float2int_rz(x):
    return whole(x, "rz").to(tl.int32)


@triton.jit
def float2uint_rz(x):
    return whole(x, "rz").to(tl.uint32)


@triton.jit
def float2ll_rz(x):
    return whole(x, "rz").to(tl.int64)


@triton.jit
def float2ull_rz(x):
    return whole(x, "rz").to(tl.uint64)


@triton.jit
def double2int_rz(x):
    return whole(x, "rz").to(tl.int32)


@triton.jit
def double2uint_rz(x):
    return whole(x, "rz").to(tl.uint32)


@triton.jit
def double2ll_rz(x):
    return whole(x, "rz").to(tl.int64)


@triton.jit
def double2ull_rz(x):
    return whole(x, "rz").to(tl.uint64)


@triton.jit
def int2float_rz(x):
    return narrowed(x.to(tl.float64), 0.0, "rz")


@triton.jit
def uint2float_rz(x):
    return narrowed(x.to(tl.float64), 0.0, "rz")


@triton.jit
def ll2float_rz(x):
    return wide_to_float32(x, "rz")


@triton.jit
def ll2double_rz(x):
    return wide_to_float64(x, "rz")


@triton.jit
def ull2float_rz(x):
    return wide_to_float32(x, "rz")


@triton.jit
def ull2double_rz(x):
    return wide_to_float64(x, "rz")


@triton.jit
def double2float_rd(x):
    return narrowed(x, 0.0, "rd")


@triton.jit
def float2int_rd(x):
    return whole(x, "rd").to(tl.int32)


@triton.jit
def float2uint_rd(x):
    return whole(x, "rd").to(tl.uint32)


@triton.jit
def float2ll_rd(x):
    return whole(x, "rd").to(tl.int64)


@triton.jit
def float2ull_rd(x):
    return whole(x, "rd").to(tl.uint64)


@triton.jit
def double2int_rd(x):
    return whole(x, "rd").to(tl.int32)


@triton.jit
def double2uint_rd(x):
    return whole(x, "rd").to(tl.uint32)


@triton.jit
def double2ll_rd(x):
    return whole(x, "rd").to(tl.int64)


@triton.jit
def double2ull_rd(x):
    return whole(x, "rd").to(tl.uint64)


@triton.jit
def int2float_rd(x):
    return narrowed(x.to(tl.float64), 0.0, "rd")


@triton.jit
def uint2float_rd(x):
    return narrowed(x.to(tl.float64), 0.0, "rd")


@triton.jit
def ll2float_rd(x):
    return wide_to_float32(x, "rd")


@triton.jit
def ll2double_rd(x):
    return wide_to_float64(x, "rd")


@triton.jit
def ull2float_rd(x):
    return wide_to_float32(x, "rd")


@triton.jit
def ull2double_rd(x):
    return wide_to_float64(x, "rd")


@triton.jit
def double2float_ru(x):
    return narrowed(x, 0.0, "ru")


@triton.jit
def float2int_ru(x):
    return whole(x, "ru").to(tl.int32)


@triton.jit
def float2uint_ru(x):
    return whole(x, "ru").to(tl.uint32)


@triton.jit
def float2ll_ru(x):
    return whole(x, "ru").to(tl.int64)


@triton.jit
def float2ull_ru(x):
    return whole(x, "ru").to(tl.uint64)


@triton.jit
def double2int_ru(x):
    return whole(x, "ru").to(tl.int32)


@triton.jit
def double2uint_ru(x):
    return whole(x, "ru").to(tl.uint32)


@triton.jit
def double2ll_ru(x):
    return whole(x, "ru").to(tl.int64)


@triton.jit
def double2ull_ru(x):
    return whole(x, "ru").to(tl.uint64)


@triton.jit
def int2float_ru(x):
    return narrowed(x.to(tl.float64), 0.0, "ru")


@triton.jit
def uint2float_ru(x):
    return narrowed(x.to(tl.float64), 0.0, "ru")


@triton.jit
def ll2float_ru(x):
    return wide_to_float32(x, "ru")


@triton.jit
def ll2double_ru(x):
    return wide_to_float64(x, "ru")


@triton.jit
def ull2float_ru(x):
    return wide_to_float32(x, "ru")


@triton.jit
def ull2double_ru(x):
    return wide_to_float64(x, "ru")
