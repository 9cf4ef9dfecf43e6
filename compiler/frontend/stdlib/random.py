# Philox-4x32-10 and the distributions made from it; bit for bit what Triton and curand give for a seed and a counter.
import triton
import triton.language as tl

KEY_A: tl.constexpr = 0x9E3779B9
KEY_B: tl.constexpr = 0xBB67AE85
ROUND_A: tl.constexpr = 0xD2511F53
ROUND_B: tl.constexpr = 0xCD9E8D57


@triton.jit
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: tl.constexpr = 10):
    for _ in tl.static_range(n_rounds):
        old_c0 = c0
        old_c2 = c2
        c0 = tl.umulhi(tl.full((), ROUND_B, tl.uint32), old_c2) ^ c1 ^ k0
        c2 = tl.umulhi(tl.full((), ROUND_A, tl.uint32), old_c0) ^ c3 ^ k1
        c1 = old_c2 * ROUND_B
        c3 = old_c0 * ROUND_A
        k0 = k0 + KEY_A
        k1 = k1 + KEY_B
    return c0, c1, c2, c3


@triton.jit
def _counter(c):
    c = tl.to_tensor(c)
    tl.static_assert(c.dtype.is_int() and c.dtype.primitive_bitwidth == 32, "the counters of tl.philox must be 32-bit integers")
    return c.to(tl.uint32, bitcast=True)


@triton.jit
def philox(seed, c0, c1, c2, c3, n_rounds: tl.constexpr = 10):
    seed = tl.to_tensor(seed)
    tl.static_assert(seed.dtype.is_int(), "the seed of a random function must be an integer")
    seed = seed.to(tl.uint64)
    high = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    low = (seed & 0xFFFFFFFF).to(tl.uint32)
    return philox_impl(_counter(c0), _counter(c1), _counter(c2), _counter(c3), low, high, n_rounds)


@triton.jit
def randint4x(seed, offset, n_rounds: tl.constexpr = 10):
    offset = tl.to_tensor(offset)
    # As in Triton, floats count as the integers that they convert to.
    narrow: tl.constexpr = offset.dtype.is_floating() and offset.dtype.primitive_bitwidth <= 32
    tl.static_assert(offset.dtype.is_int() or narrow,
                     "the offset of a random function must be integers, or floats of at most 32 bits")
    low = offset.to(tl.uint32)
    zero = low * 0
    if offset.dtype.primitive_bitwidth > 32:
        return philox(seed, low, (offset >> 32).to(tl.uint32), zero, zero, n_rounds)
    else:
        return philox(seed, low, zero, zero, zero, n_rounds)


@triton.jit
def randint(seed, offset, n_rounds: tl.constexpr = 10):
    first, second, third, fourth = randint4x(seed, offset, n_rounds)
    return first


@triton.jit
def uint_to_uniform_float(x):
    # The largest integer times the scale stays under 1 after rounding.
    tl.static_assert(x.dtype.is_int() and x.dtype.primitive_bitwidth >= 32, "uint_to_uniform_float takes 32- or 64-bit integers")
    if x.dtype.primitive_bitwidth == 32:
        signed = x.to(tl.int32, bitcast=True)
        return tl.where(signed < 0, ~signed, signed) * 4.6566127342e-10
    else:
        wide = x.to(tl.int64, bitcast=True)
        return tl.where(wide < 0, ~wide, wide) * 1.0842020432385337e-19


@triton.jit
def rand(seed, offset, n_rounds: tl.constexpr = 10):
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@triton.jit
def rand4x(seed, offset, n_rounds: tl.constexpr = 10):
    i1, i2, i3, i4 = randint4x(seed, offset, n_rounds)
    return uint_to_uniform_float(i1), uint_to_uniform_float(i2), uint_to_uniform_float(i3), uint_to_uniform_float(i4)


@triton.jit
def pair_uniform_to_normal(u1, u2):
    # Box and Muller: a radius and an angle.
    u1 = tl.maximum(1.0e-7, u1)
    angle = 6.283185307179586 * u2
    radius = tl.sqrt(-2.0 * tl.log(u1))
    return radius * tl.cos(angle), radius * tl.sin(angle)


@triton.jit
def randn(seed, offset, n_rounds: tl.constexpr = 10):
    i1, i2, i3, i4 = randint4x(seed, offset, n_rounds)
    n1, n2 = pair_uniform_to_normal(uint_to_uniform_float(i1), uint_to_uniform_float(i2))
    return n1


@triton.jit
def randn4x(seed, offset, n_rounds: tl.constexpr = 10):
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    n1, n2 = pair_uniform_to_normal(u1, u2)
    n3, n4 = pair_uniform_to_normal(u3, u4)
    return n1, n2, n3, n4
