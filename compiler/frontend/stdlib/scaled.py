# tl.dot_scaled: products of blocks in microscaling formats (OCP Microscaling Formats 1.0), by converting both operands to
# bfloat16, or to float16 where one of them is that.
import triton
import triton.language as tl


@triton.constexpr_function
def _compute_type(lhs_format, rhs_format):
    return tl.float16 if "fp16" in (lhs_format, rhs_format) else tl.bfloat16


@triton.constexpr_function
def _is_format(format):
    return format in ("e2m1", "e4m3", "e5m2", "bf16", "fp16")


@triton.constexpr_function
def _grouped_shape(shape, size):
    # [..., G, size] for a scale of shape [..., G].
    out = ()
    for d in shape:
        out = out + (d,)
    return out + (size,)


@triton.jit
def _swap_last(x):
    if len(x.shape) == 2:
        return tl.trans(x)
    else:
        return tl.permute(x, (0, 2, 1))


@triton.jit
def _from_e2m1(x):
    # 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign, as bits of bfloat16: every one is exact.
    x = x.to(tl.int16)
    magnitude = x & 7
    normal = (((magnitude >> 1) + 126) << 7) | ((magnitude & 1) << 6)
    small = magnitude * 0x3F00
    return (tl.where(magnitude < 2, small, normal) | ((x & 8) << 12)).to(tl.bfloat16, bitcast=True)


@triton.jit
def _from_e8m0(scale, fast_math: tl.constexpr):
    # 2^(x - 127); 0 is below float32's normal range, and 255 is NaN.
    bits = scale.to(tl.uint8, bitcast=True).to(tl.uint32)
    value = tl.where(bits == 0, 0x400000, bits << 23).to(tl.float32, bitcast=True)
    if fast_math:
        return value
    else:
        return tl.where(bits == 255, float("nan"), value)


@triton.jit
def _unscaled(x, format: tl.constexpr, k_pack: tl.constexpr):
    # [..., K] of a float type; packed ones have two elements in each uint8, the first in the low bits.
    if format == "e2m1":
        tl.static_assert(x.dtype.primitive_bitwidth == 8, "an operand of tl.dot_scaled in format e2m1 is of uint8")
        packed = x.to(tl.uint8, bitcast=True)
        if k_pack:
            return _from_e2m1(tl.interleave(packed & 15, packed >> 4))
        else:
            packed = _swap_last(packed)
            return _swap_last(_from_e2m1(tl.interleave(packed & 15, packed >> 4)))
    elif format == "e4m3":
        return x.to(tl.float8e4nv, bitcast=True)
    elif format == "e5m2":
        return x.to(tl.float8e5, bitcast=True)
    elif format == "bf16":
        return x.to(tl.bfloat16, bitcast=True)
    else:
        return x.to(tl.float16, bitcast=True)


@triton.jit
def _operand(x, scale, format: tl.constexpr, k_pack: tl.constexpr, fast_math: tl.constexpr, dtype: tl.constexpr):
    tl.static_assert(_is_format(format), "tl.dot_scaled takes the formats e2m1, e4m3, e5m2, bf16 and fp16")
    tl.static_assert(k_pack or format == "e2m1", "only e2m1 can be packed along another dimension than K")
    value = _unscaled(x, format, k_pack)
    if scale is None:
        return value.to(dtype)
    else:
        if scale.dtype.is_fp8():
            factor = scale.to(tl.float32)
        else:
            tl.static_assert(scale.dtype.primitive_bitwidth == 8, "a scale of tl.dot_scaled is of uint8 or float8e4nv")
            factor = _from_e8m0(scale, fast_math)
        k: tl.constexpr = value.shape[len(value.shape) - 1]
        groups: tl.constexpr = scale.shape[len(scale.shape) - 1]
        each: tl.constexpr = 16 if scale.dtype.is_fp8() else 32
        tl.static_assert(len(scale.shape) == len(value.shape) and groups * each == k and
                         scale.shape[len(scale.shape) - 2] == value.shape[len(value.shape) - 2],
                         "a scale of tl.dot_scaled has a row for each of its operand's, and there a value for each 32 "
                         "elements along K, as float8e4nv for each 16")
        wide = tl.broadcast_to(tl.expand_dims(factor, len(scale.shape)), _grouped_shape(scale.shape, k // groups))
        # The product is exact in float32, and is rounded once.
        return (value.to(tl.float32) * tl.reshape(wide, value.shape)).to(dtype)


@triton.jit
def dot_scaled(lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, acc=None, fast_math=False, lhs_k_pack=True,
               rhs_k_pack=True, out_dtype=tl.float32):
    tl.static_assert(out_dtype == tl.float32, "out_dtype of tl.dot_scaled is float32")
    dtype: tl.constexpr = _compute_type(lhs_format, rhs_format)
    a = _operand(lhs, lhs_scale, lhs_format, lhs_k_pack, fast_math, dtype)
    b = _swap_last(_operand(_swap_last(rhs), rhs_scale, rhs_format, rhs_k_pack, fast_math, dtype))
    return tl.dot(a, b, acc, out_dtype=tl.float32)
