# Kiln's standard library in the kernel language: composite functions of triton.language.
import triton
import triton.language as tl


@triton.jit
def cdiv(x, div):
    return (x + div - 1) // div


@triton.jit
def zeros_like(input):
    return tl.full(input.shape, 0, input.dtype)


@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    axis: tl.constexpr = 0 if dim is None else dim
    shifted = x - max(x, axis, keep_dims=True)
    numerator = tl.exp(shifted)
    denominator = sum(numerator, axis, keep_dims=True)
    return tl.fdiv(numerator, denominator, ieee_rounding)


@triton.jit
def ravel(x, can_reorder=False):
    return tl.reshape(x, [x.numel])


@triton.constexpr_function
def _order_of_cat(rank, at):
    return [i for i in range(at)] + [rank] + [i for i in range(at, rank)]


@triton.constexpr_function
def _shape_of_cat(shape, at):
    return [2 * shape[i] if i == at else shape[i] for i in range(len(shape))]


@triton.jit
def cat(input, other, can_reorder=False, dim=0):
    rank: tl.constexpr = len(input.shape)
    tl.static_assert(rank > 0 and input.shape == other.shape, "both must be tiles of one shape")
    at: tl.constexpr = dim + rank if dim < 0 else dim
    tl.static_assert(at >= 0 and at < rank, f"dim {dim} is out of range for a tensor of {rank} dimensions")
    if rank == 1:
        return tl.reshape(tl.trans(tl.join(input, other)), [2 * input.shape[0]])
    else:
        joined = tl.permute(tl.join(input, other), _order_of_cat(rank, at))
        return tl.reshape(joined, _shape_of_cat(input.shape, at))


@triton.jit
def interleave(a, b):
    joined = tl.join(a, b)
    if len(joined.shape) == 1:
        return joined
    else:
        return tl.reshape(joined, joined.shape[:-2] + (2 * joined.shape[-2],))


@triton.jit
def swizzle2d(i, j, size_i, size_j, size_g):
    # Row-major (i, j) of a size_i × size_j grid, renumbered so that size_g rows at a time are walked column by column.
    linear = i * size_j + j
    group_size = size_g * size_j
    group = linear // group_size
    first = group * size_g
    height = tl.minimum(size_i - first, size_g)
    inside = linear % group_size
    return first + inside % height, inside // height


# --- reductions


@triton.constexpr_function
def _sum_dtype(in_dtype, dtype):
    if dtype is not None:
        return dtype
    if in_dtype.is_int() and in_dtype.primitive_bitwidth < 32:
        return tl.int32 if in_dtype.is_int_signed() else tl.uint32
    return in_dtype


@triton.jit
def _sum_combine(a, b):
    return a + b


@triton.jit
def _prod_combine(a, b):
    return a * b


@triton.jit
def _xor_combine(a, b):
    return a ^ b


@triton.jit
def _or_combine(a, b):
    return a | b


@triton.jit
def _elementwise_max(a, b):
    return tl.maximum(a, b)


@triton.jit
def _elementwise_min(a, b):
    return tl.minimum(a, b)


@triton.jit
def _max_with_index(value_a, index_a, value_b, index_b):
    # On a tie the left element wins: the one with the smaller index.
    take = (value_a > value_b) | ((value_a == value_b) & (index_a < index_b))
    return tl.where(take, value_a, value_b), tl.where(take, index_a, index_b)


@triton.jit
def _max_with_any_index(value_a, index_a, value_b, index_b):
    take = value_a > value_b
    return tl.where(take, value_a, value_b), tl.where(take, index_a, index_b)


@triton.jit
def _min_with_index(value_a, index_a, value_b, index_b):
    take = (value_a < value_b) | ((value_a == value_b) & (index_a < index_b))
    return tl.where(take, value_a, value_b), tl.where(take, index_a, index_b)


@triton.jit
def _min_with_any_index(value_a, index_a, value_b, index_b):
    take = value_a < value_b
    return tl.where(take, value_a, value_b), tl.where(take, index_a, index_b)


@triton.constexpr_function
def _index_shape(rank, axis, size):
    shape = ()
    for d in range(rank):
        shape = shape + ((size if d == axis else 1),)
    return shape


@triton.jit
def _reduce_with_indices(input, axis, combine_fn, keep_dims):
    if axis is None:
        value, index = tl.reduce((ravel(input), tl.arange(0, input.numel)), 0, combine_fn)
        if keep_dims:
            shape: tl.constexpr = _index_shape(len(input.shape), -1, 1)
            return tl.broadcast_to(value, shape), tl.broadcast_to(index, shape)
        else:
            return value, index
    else:
        rank: tl.constexpr = len(input.shape)
        where: tl.constexpr = axis + rank if axis < 0 else axis
        tl.static_assert(where >= 0 and where < rank, f"axis {axis} is out of range for a tensor of {rank} dimensions")
        size: tl.constexpr = input.shape[where]
        index = tl.reshape(tl.arange(0, size), _index_shape(rank, where, size))
        return tl.reduce((input, tl.broadcast_to(index, input.shape)), where, combine_fn, keep_dims)


@triton.jit
def _for_min_max(input):
    # bf16 always, and every other type under 32 bits unless an index is asked for, is compared in 32 bits.
    if input.dtype.is_bf16():
        return input.to(tl.float32)
    else:
        return input


@triton.jit
def _to_32_bits(input):
    if input.dtype.primitive_bitwidth < 32:
        if input.dtype.is_floating():
            return input.to(tl.float32)
        else:
            return input.to(tl.int32)
    else:
        return input


@triton.jit
def sum(input, axis=None, keep_dims=False, dtype: tl.constexpr = None):
    return tl.reduce(input.to(_sum_dtype(input.dtype, dtype)), axis, _sum_combine, keep_dims)


@triton.jit
def xor_sum(input, axis=None, keep_dims=False):
    tl.static_assert(input.dtype.is_int(), "tl.xor_sum takes integers")
    return tl.reduce(input, axis, _xor_combine, keep_dims)


@triton.jit
def reduce_or(input, axis, keep_dims=False):
    tl.static_assert(input.dtype.is_int(), "tl.reduce_or takes integers")
    return tl.reduce(input, axis, _or_combine, keep_dims)


@triton.jit
def max(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    if return_indices:
        if return_indices_tie_break_left:
            return _reduce_with_indices(_for_min_max(input), axis, _max_with_index, keep_dims)
        else:
            return _reduce_with_indices(_for_min_max(input), axis, _max_with_any_index, keep_dims)
    else:
        return tl.reduce(_to_32_bits(input), axis, _elementwise_max, keep_dims)


@triton.jit
def min(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    if return_indices:
        if return_indices_tie_break_left:
            return _reduce_with_indices(_for_min_max(input), axis, _min_with_index, keep_dims)
        else:
            return _reduce_with_indices(_for_min_max(input), axis, _min_with_any_index, keep_dims)
    else:
        return tl.reduce(_to_32_bits(input), axis, _elementwise_min, keep_dims)


@triton.jit
def argmax(input, axis, tie_break_left=True, keep_dims=False):
    value, index = max(input, axis, True, tie_break_left, keep_dims)
    return index


@triton.jit
def argmin(input, axis, tie_break_left=True, keep_dims=False):
    value, index = min(input, axis, True, tie_break_left, keep_dims)
    return index


# --- scans


@triton.jit
def _for_scan(input, dtype):
    if input.dtype.is_bf16() and dtype is None:
        return input.to(tl.float32)
    else:
        return input.to(_sum_dtype(input.dtype, dtype))


@triton.jit
def cumsum(input, axis=0, reverse=False, dtype: tl.constexpr = None):
    return tl.associative_scan(_for_scan(input, dtype), axis, _sum_combine, reverse)


@triton.jit
def cumprod(input, axis=0, reverse=False):
    return tl.associative_scan(_for_min_max(input), axis, _prod_combine, reverse)


# --- orders and counts


@triton.constexpr_function
def get_int_dtype(bitwidth, signed):
    if bitwidth == 1:
        return tl.int1
    if bitwidth == 8:
        return tl.int8 if signed else tl.uint8
    if bitwidth == 16:
        return tl.int16 if signed else tl.uint16
    if bitwidth == 32:
        return tl.int32 if signed else tl.uint32
    tl.static_assert(bitwidth == 64, "an integer has 1, 8, 16, 32 or 64 bits")
    return tl.int64 if signed else tl.uint64


@triton.constexpr_function
def _log2(n):
    exponent = 0
    while n > 1:
        n = n // 2
        exponent = exponent + 1
    return exponent


@triton.constexpr_function
def _last(input_shape, dim):
    return dim is None or dim == -1 or dim == len(input_shape) - 1


@triton.constexpr_function
def _product(shape, start):
    n = 1
    for d in range(start, len(shape)):
        n = n * shape[d]
    return n


@triton.jit
def _as_bits(input):
    if input.dtype.is_floating() or input.dtype.is_int1():
        width: tl.constexpr = input.dtype.primitive_bitwidth
        if width == 1:
            return input.to(tl.int8)
        elif width == 8:
            return input.to(tl.int8, bitcast=True)
        elif width == 16:
            return input.to(tl.int16, bitcast=True)
        elif width == 32:
            return input.to(tl.int32, bitcast=True)
        else:
            return input.to(tl.int64, bitcast=True)
    else:
        return input


@triton.jit
def _from_bits(bits, dtype: tl.constexpr):
    if dtype.is_floating():
        return bits.to(dtype, bitcast=True)
    else:
        return bits.to(dtype)


@triton.jit
def _partners(flat, stride: tl.constexpr):
    # Element i of the result is element i ^ stride of `flat`, integers in one dimension: both of a pair, xor one of them.
    pairs = tl.reshape(flat, [flat.numel // (2 * stride), 2, stride])
    return tl.reshape(pairs ^ xor_sum(pairs, 1, keep_dims=True), [flat.numel])


@triton.jit
def flip(x, dim=None):
    rank: tl.constexpr = len(x.shape)
    axis: tl.constexpr = rank - 1 if dim is None else (dim + rank if dim < 0 else dim)
    tl.static_assert(axis >= 0 and axis < rank, f"dimension {dim} is out of range for the shape {x.shape}")
    inner: tl.constexpr = _product(x.shape, axis + 1)
    flat = ravel(_as_bits(x))
    for bit in tl.static_range(_log2(x.shape[axis])):
        flat = _partners(flat, inner * 2**bit)
    return tl.reshape(_from_bits(flat, x.dtype), x.shape)


@triton.jit
def _exchange(flat, index, bit: tl.constexpr, falls):
    # Orders the elements of each pair whose places differ in this bit.
    other = _from_bits(_partners(_as_bits(flat), 2**bit), flat.dtype)
    is_right = ((index >> bit) & 1) != 0
    left = tl.where(is_right, other, flat)
    right = tl.where(is_right, flat, other)
    return tl.where((left > right) != falls, other, flat)


@triton.jit
def bitonic_merge(x, dim: tl.constexpr = None, descending: tl.constexpr = tl.constexpr(False)):
    tl.static_assert(_last(x.shape, dim), "elements are ordered along the last dimension; bring yours there with tl.trans")
    steps: tl.constexpr = _log2(x.shape[len(x.shape) - 1])
    flat = ravel(x)
    index = tl.arange(0, x.numel)
    for step in tl.static_range(steps):
        flat = _exchange(flat, index, steps - 1 - step, descending != 0)
    return tl.reshape(flat, x.shape)


@triton.jit
def sort(x, dim: tl.constexpr = None, descending: tl.constexpr = tl.constexpr(False)):
    # Batcher's bitonic network: runs of 2, 4, 8, … elements are merged, neighbours of them in opposite directions.
    tl.static_assert(_last(x.shape, dim), "elements are ordered along the last dimension; bring yours there with tl.trans")
    size: tl.constexpr = x.shape[len(x.shape) - 1]
    steps: tl.constexpr = _log2(size)
    flat = ravel(x)
    index = tl.arange(0, x.numel)
    for run in tl.static_range(1, steps + 1):
        falls = descending
        if run < steps:
            falls = ((index >> run) & 1) != 0
        for step in tl.static_range(run):
            flat = _exchange(flat, index, run - 1 - step, falls)
    return tl.reshape(flat, x.shape)


@triton.jit
def topk(x, k: tl.constexpr, dim: tl.constexpr = None):
    size: tl.constexpr = x.shape[len(x.shape) - 1]
    tl.static_assert(k >= 1 and k <= size, f"k must be from 1 to {size}, got {k}")
    tl.static_assert(k & (k - 1) == 0, f"k must be a power of two, got {k}")
    sorted = _as_bits(sort(x, dim, descending=True))
    runs = tl.reshape(sorted, x.shape[:-1] + (size // k, k))
    place = tl.reshape(tl.arange(0, size // k), _index_shape(len(runs.shape), len(runs.shape) - 2, size // k))
    first = xor_sum(tl.where(place == 0, runs, runs ^ runs), len(runs.shape) - 2)
    return _from_bits(first, x.dtype)


@triton.jit
def histogram(input, num_bins: tl.constexpr, mask=None):
    tl.static_assert(len(input.shape) == 1 and input.dtype.is_int(), "what is counted are integers in one dimension")
    width: tl.constexpr = num_bins if num_bins < 1024 else 1024  # every warp has that many counters in shared memory
    wide = input.to(tl.int64)
    parts: tl.constexpr = num_bins // width
    counts = tl.zeros([parts, width], tl.int32)
    for part in tl.static_range(parts):
        bins = wide - part * width
        counted = (bins >= 0) & (bins < width)
        if mask is not None:
            counted = counted & mask
        found = tl.extra.kiln.bucket_place(tl.where(counted, bins, width).to(tl.int32), width)[1]
        counts = tl.where(tl.arange(0, parts)[:, None] == part, found[None, :], counts)
    return tl.reshape(counts, [num_bins])
