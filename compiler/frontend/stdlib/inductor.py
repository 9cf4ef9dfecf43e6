# What kernels of torch.compile call from torch._inductor.runtime.triton_helpers, in the kernel language.
import triton
import triton.language as tl


@triton.jit
def promote_to_tensor(x):
    return tl.zeros([1], tl.int1) + x


@triton.jit
def is_floating(x):
    return promote_to_tensor(x).dtype.is_floating()


# NaN of either operand is the result.
@triton.jit
def minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def min2(a, dim):
    return tl.reduce(a, dim, minimum)


@triton.jit
def max2(a, dim):
    return tl.reduce(a, dim, maximum)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def any(a, dim):
    return tl.reduce(a, dim, _either)


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def prod(input, axis):
    return tl.reduce(input, axis, _product)


# Welford: a mean, the sum of squared differences from it, and how many values they are of.
@triton.jit
def welford_reduce(value, mean, m2, weight, first_iteration):
    count = weight + 1
    step = value - mean
    shifted = mean + step / count
    squares = m2 + step * (value - shifted)
    # The first value replaces what the accumulators were made with.
    return (tl.where(first_iteration, value, shifted), tl.where(first_iteration, 0.0, squares),
            tl.where(first_iteration, 1.0, count))


@triton.jit
def welford_combine(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    count = weight_1 + weight_2
    part = tl.where(count == 0.0, 0.0, weight_2 / count)
    apart = tl.where(mean_1 == mean_2, 0.0, mean_2 - mean_1)  # of two infinities as well
    return mean_1 + apart * part, m2_1 + m2_2 + apart * apart * weight_1 * part, count


@triton.jit
def welford(mean, m2, weight, dim):
    return tl.reduce((mean, m2, weight), dim, welford_combine)


# Of integers as Python divides them: the language's own `//` and `%` truncate.
@triton.jit
def div_floor_integer(a, b):
    truncated = tl.to_tensor(a) // b
    return tl.where((truncated * b != a) & ((a < 0) != (b < 0)), truncated - 1, truncated)


@triton.jit
def remainder_integer(a, b):
    rest = tl.to_tensor(a) % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


# The lesser (greater) of two values with its index; of equal ones the first. NaN goes before all.
@triton.jit
def _is_first(ahead, a_value, a_index, b_value, b_index):
    same = a_value == b_value
    if is_floating(a_value):
        a_nan = a_value != a_value
        b_nan = b_value != b_value
        ahead = a_nan | (ahead & (b_value == b_value))
        same = same | (a_nan & b_nan)
    return tl.where(same, a_index < b_index, ahead)


@triton.jit
def minimum_with_index(a_value, a_index, b_value, b_index):
    first = _is_first(a_value < b_value, a_value, a_index, b_value, b_index)
    return tl.where(first, a_value, b_value), tl.where(first, a_index, b_index)


@triton.jit
def maximum_with_index(a_value, a_index, b_value, b_index):
    first = _is_first(a_value > b_value, a_value, a_index, b_value, b_index)
    return tl.where(first, a_value, b_value), tl.where(first, a_index, b_index)


@triton.jit
def min_with_index(value, index, dim):
    return tl.reduce((value, index), dim, minimum_with_index)


@triton.jit
def max_with_index(value, index, dim):
    return tl.reduce((value, index), dim, maximum_with_index)


@triton.jit
def device_assert_then(cond, msg, r):
    tl.device_assert(cond, msg)
    return r


# The one element along a dimension for which the mask holds, bit for bit.
@triton.jit
def select_one(x, mask, dim, keep_dims=False):
    word: tl.constexpr = tl.core.get_int_dtype(x.dtype.primitive_bitwidth, signed=False)
    found = tl.sum(tl.where(mask, x.to(word, bitcast=True), 0), dim, keep_dims=keep_dims)
    return found.to(word).to(x.dtype, bitcast=True)
