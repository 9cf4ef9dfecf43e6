"""ATen operations as expressions: one table, from an operation's name to what builds its expression. More of it is in
_places and _windows.

A builder gets the operation's arguments, with kiln.Expr in place of tensors, and gives an Expr, or a tuple of them. The
interpreter (_build) converts a result to the dtype that PyTorch gives it. Unsupported says why an operation stays with
PyTorch; so does any error of an expression.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import torch

from kiln import _kiln
from kiln._expr import Expr, _apply, _arange, _index
from kiln._memory import row_major
from kiln.dynamo import _library


class Unsupported(Exception):
    """An operation has no expression, or not with these arguments."""


TABLE: dict[str, Callable[..., Any]] = {}
# Those that move no data. Where a view's result is needed outside of a piece, PyTorch makes it, of its own tensors.
VIEWS: set[str] = set()
# Numbers may stand for tensors that are full of one: these operations take them as operands.
POINTWISE: set[str] = set()


def op(*names: str) -> Callable:

    def add(fn: Callable) -> Callable:
        for name in names: TABLE[f"aten.{name}"] = fn
        return fn

    return add


def pointwise(*names: str) -> Callable:
    POINTWISE.update(f"aten.{name}" for name in names)
    return op(*names)


def view(*names: str) -> Callable:
    VIEWS.update(f"aten.{name}" for name in names)
    return op(*names)


# --- elementwise: the names of PyTorch's operations, and of the expression's -----------------------------------------

for _names, _op in {
    "neg abs reciprocal exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tanh erf sigmoid relu silu floor ceil trunc "
    "round isnan bitwise_not logical_not": "",
    "bitwise_and.Tensor bitwise_and.Scalar": "bitwise_and",
    "bitwise_or.Tensor bitwise_or.Scalar": "bitwise_or",
    "bitwise_xor.Tensor bitwise_xor.Scalar": "bitwise_xor",
    "bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar __lshift__.Tensor __lshift__.Scalar": "shift_left",
    "bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar __rshift__.Tensor __rshift__.Scalar": "shift_right",
    "logical_and": "",
    "logical_or": "",
    "mul.Tensor mul.Scalar": "mul",
    "div.Tensor div.Scalar": "div",
    "pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar": "pow",
    "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor": "mod",
    "floor_divide floor_divide.Scalar": "floor_div",
    "maximum": "",
    "minimum": "",
    "eq.Tensor eq.Scalar": "eq",
    "ne.Tensor ne.Scalar": "ne",
    "lt.Tensor lt.Scalar": "lt",
    "le.Tensor le.Scalar": "le",
    "gt.Tensor gt.Scalar": "gt",
    "ge.Tensor ge.Scalar": "ge",
    "where.self where.ScalarSelf where.ScalarOther where.Scalar": "where",
}.items():
    for _name in _names.split():
        _full = _name if "." in _name else f"{_name}.default"
        pointwise(_full)(lambda *args, _op=_op or _name: _apply(_op, args))


@pointwise("add.Tensor", "add.Scalar")
def add(x: Any, y: Any, alpha: Any = 1) -> Expr:
    return _apply("add", (x, y if alpha == 1 else _apply("mul", (y, alpha)) if isinstance(y, Expr) else y * alpha))


@pointwise("sub.Tensor", "sub.Scalar")
def sub(x: Any, y: Any, alpha: Any = 1) -> Expr:
    return _apply("sub", (x, y if alpha == 1 else _apply("mul", (y, alpha)) if isinstance(y, Expr) else y * alpha))


@pointwise("rsub.Tensor", "rsub.Scalar")
def rsub(x: Any, y: Any, alpha: Any = 1) -> Expr:
    return sub(y, x, alpha)


@pointwise("div.Tensor_mode", "div.Scalar_mode")
def div_mode(x: Any, y: Any, rounding_mode: str | None = None) -> Expr:
    if rounding_mode == "floor": return _apply("floor_div", (x, y))
    if rounding_mode is None: return _apply("div", (x, y))
    out = _apply("div", (x, y))
    if not all(not isinstance(v, Expr) or v.dtype.startswith(("float", "bfloat")) for v in (x, y)):
        raise Unsupported("division of integers that truncates")
    return out.trunc()


@pointwise("fmod.Tensor", "fmod.Scalar")
def fmod(x: Expr, y: Any) -> Expr:
    """The remainder with the sign of x."""
    floats = _is_float(x) or (_is_float(y) if isinstance(y, Expr) else isinstance(y, float))
    if floats:
        r = x.abs() % (y.abs() if isinstance(y, Expr) else abs(y))
        return _apply("where", (r == 0, x * 0, _apply("where", (x < 0, -r, r))))
    r = x % y  # with the sign of y
    other = _apply("ne", (x < 0, y < 0)) if isinstance(y, Expr) else (x >= 0 if y < 0 else x < 0)
    return _apply("where", (_apply("logical_and", (r != 0, other)), r - y, r))


@pointwise("clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_min.Tensor")
def clamp(x: Expr, min: Any = None, max: Any = None) -> Expr:
    if min is None and max is None: return x
    if max is None: return x.maximum(min)
    if min is None: return x.minimum(max)
    return x.clamp(min, max)


@pointwise("clamp_max.default", "clamp_max.Tensor")
def clamp_max(x: Expr, max: Any) -> Expr:
    return x.minimum(max)


@pointwise("hardtanh.default")
def hardtanh(x: Expr, min_val: Any = -1, max_val: Any = 1) -> Expr:
    return x.clamp(min_val, max_val)


@pointwise("gelu.default")
def gelu(x: Expr, approximate: str = "none") -> Expr:
    return x.gelu_tanh() if approximate == "tanh" else x.gelu()


@pointwise("log10.default")
def log10(x: Expr) -> Expr:
    return _wide(x).log2() * math.log10(2)


@pointwise("square.default")
def square(x: Expr) -> Expr:
    return x * x


@pointwise("sign.default", "sgn.default")
def sign(x: Expr) -> Expr:
    if x.dtype == "bool" or x.dtype.startswith("uint"): return x.to("bool").to(x.dtype)
    if x.dtype.startswith("int"): return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)
    # Of NaN it is 0, as in PyTorch.
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@pointwise("isinf.default")
def isinf(x: Expr) -> Expr:
    return x.abs() == math.inf if _is_float(x) else x != x


@pointwise("isposinf.default")
def isposinf(x: Expr) -> Expr:
    return x == math.inf


@pointwise("isneginf.default")
def isneginf(x: Expr) -> Expr:
    return x == -math.inf


@pointwise("logical_xor.default")
def logical_xor(x: Expr, y: Expr) -> Expr:
    return _apply("ne", (x.to("bool"), y.to("bool")))


@pointwise("leaky_relu.default")
def leaky_relu(x: Expr, negative_slope: Any = 0.01) -> Expr:
    return _apply("where", (x > 0, x, x * negative_slope))


@pointwise("elu.default")
def elu(x: Expr, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0) -> Expr:
    wide = _wide(x)
    negative = (wide * input_scale).expm1() * (alpha * scale)
    return _apply("where", (wide <= 0, negative, wide * scale)).to(x.dtype)


# What PyTorch computes in one go is rounded once.


@pointwise("addcmul.default")
def addcmul(x: Expr, a: Expr, b: Expr, *, value: Any = 1) -> Expr:
    product = _wide(a) * _wide(b)
    return _wide(x) + (product if value == 1 else product * value)


@pointwise("addcdiv.default")
def addcdiv(x: Expr, a: Expr, b: Expr, *, value: Any = 1) -> Expr:
    quotient = _wide(a) / _wide(b)
    return _wide(x) + (quotient if value == 1 else quotient * value)


@pointwise("lerp.Scalar")
def lerp(x: Expr, end: Expr, weight: Any) -> Expr:
    a, b = _wide(x), _wide(end)
    return a + (b - a) * weight if abs(weight) < 0.5 else b - (b - a) * (1 - weight)


@op("lerp.Tensor")
def lerp_by_tensor(x: Expr, end: Expr, weight: Expr) -> Expr:
    a, b, w = _wide(x), _wide(end), _wide(weight)
    return _apply("where", (w.abs() < 0.5, a + (b - a) * w, b - (b - a) * (1 - w)))


def fma(x: Expr, y: Any, z: Any) -> Expr:
    return _wide(x) * y + z


TABLE["prims.fma.default"] = fma
POINTWISE.add("prims.fma.default")


@op("copy.default")
def copy(x: Expr, source: Expr, non_blocking: bool = False) -> Expr:
    return source.to(x.dtype).expand(list(x.shape))


@op("_to_copy.default")
def to_copy(x: Expr, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
            non_blocking: bool = False, memory_format: Any = None) -> Expr:
    if device is not None and not _same_device(device, x): raise Unsupported("a copy to another device")
    if pin_memory or layout not in (None, torch.strided): raise Unsupported("a copy to another kind of memory")
    return x if dtype is None else x.to(dtype)


def convert_element_type(x: Expr, dtype: Any) -> Expr:
    return x.to(dtype)


TABLE["prims.convert_element_type.default"] = convert_element_type
POINTWISE.update(("aten._to_copy.default", "prims.convert_element_type.default"))


@op("clone.default", "lift_fresh_copy.default", "contiguous.default")
def same(x: Expr, *, memory_format: Any = None) -> Expr:
    return x


# --- views -----------------------------------------------------------------------------------------------------------


@view("alias.default", "detach.default")
def alias(x: Expr) -> Expr:
    return x


@view("view.default", "_unsafe_view.default", "reshape.default")
def reshape(x: Expr, shape: Sequence[int]) -> Expr:
    return x.reshape(list(shape))


@view("as_strided.default")
def as_strided(x: Expr, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Expr:
    # Of a row-major tensor, as evaluate() has seen to.
    if offset or tuple(strides) != row_major(shape) or math.prod(shape) != x.numel():
        raise Unsupported("part of a tensor's memory")
    return x.reshape(list(shape))


@view("expand.default")
def expand(x: Expr, shape: Sequence[int], *, implicit: bool = False) -> Expr:
    return x.expand(list(shape))


@view("permute.default")
def permute(x: Expr, dims: Sequence[int]) -> Expr:
    return x.permute(list(dims))


@view("transpose.int")
def transpose(x: Expr, a: int, b: int) -> Expr:
    return x.transpose(a, b) if x.shape else x


@view("t.default")
def t(x: Expr) -> Expr:
    return x.T


@view("unsqueeze.default")
def unsqueeze(x: Expr, dim: int) -> Expr:
    return x.unsqueeze(dim)


@view("squeeze.default", "squeeze.dim", "squeeze.dims")
def squeeze(x: Expr, dim: Any = None) -> Expr:
    dims = range(x.ndim) if dim is None else [d % max(1, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    return x.reshape([n for d, n in enumerate(x.shape) if d not in dims or n != 1])


@view("select.int")
def select(x: Expr, dim: int, index: int) -> Expr:
    return _index(x, (slice(None), ) * (dim % x.ndim) + (index, ))


@view("slice.Tensor")
def slice_(x: Expr, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Expr:
    return _index(x, (slice(None), ) * (dim % x.ndim) + (slice(start, end, step), ))


@view("diagonal.default")
def diagonal(x: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Expr:
    a, b = dim1 % x.ndim, dim2 % x.ndim
    count = min(x.shape[a] + min(offset, 0), x.shape[b] - max(offset, 0))
    if count <= 0: raise Unsupported("a diagonal without elements")
    last = x.permute([d for d in range(x.ndim) if d not in (a, b)] + [a, b])
    at = _arange(count, 1, 0, x)
    return _index(last, (..., at - min(offset, 0), at + max(offset, 0)))


@view("split.Tensor")
def split(x: Expr, size: int, dim: int = 0) -> tuple[Expr, ...]:
    n = x.shape[dim % x.ndim]
    return tuple(slice_(x, dim, at, min(n, at + size)) for at in range(0, max(n, 1), max(size, 1)))


@view("split_with_sizes.default")
def split_with_sizes(x: Expr, sizes: Sequence[int], dim: int = 0) -> tuple[Expr, ...]:
    ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
    return tuple(slice_(x, dim, end - size, end) for size, end in zip(sizes, ends))


@view("unbind.int")
def unbind(x: Expr, dim: int = 0) -> tuple[Expr, ...]:
    return tuple(select(x, dim, i) for i in range(x.shape[dim % x.ndim]))


@op("repeat.default")
def repeat(x: Expr, repeats: Sequence[int]) -> Expr:
    shape = [1] * (len(repeats) - x.ndim) + list(x.shape)
    apart = x.reshape([n for size in shape for n in (1, size)])
    wide = apart.expand([n for times, size in zip(repeats, shape) for n in (times, size)])
    return wide.reshape([times * size for times, size in zip(repeats, shape)])


# --- along dimensions ------------------------------------------------------------------------------------------------


@op("sum.default", "sum.dim_IntList")
def sum_(x: Expr, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    return x.sum(dim or None, keepdim, dtype=dtype)


@op("mean.default", "mean.dim")
def mean(x: Expr, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    return x.mean(dim or None, keepdim, dtype=dtype)


@op("var.correction")
def var(x: Expr, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Expr:
    return x.var(dim or None, keepdim, correction=1 if correction is None else correction)


@op("var_mean.correction")
def var_mean(x: Expr, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> tuple[Expr, Expr]:
    return var(x, dim, correction=correction, keepdim=keepdim), x.mean(dim or None, keepdim)


@op("std.correction")
def std(x: Expr, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Expr:
    return var(_wide(x), dim, correction=correction, keepdim=keepdim).sqrt().to(x.dtype)


@op("amax.default", "max.default")
def amax(x: Expr, dim: Any = None, keepdim: bool = False) -> Expr:
    return x.max(dim or None, keepdim)


@op("amin.default", "min.default")
def amin(x: Expr, dim: Any = None, keepdim: bool = False) -> Expr:
    return x.min(dim or None, keepdim)


@op("max.dim")
def max_dim(x: Expr, dim: int, keepdim: bool = False) -> tuple[Expr, Expr]:
    return x.max(dim, keepdim), x.argmax(dim, keepdim)


@op("min.dim")
def min_dim(x: Expr, dim: int, keepdim: bool = False) -> tuple[Expr, Expr]:
    return x.min(dim, keepdim), x.argmin(dim, keepdim)


@op("argmax.default")
def argmax(x: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    return x.argmax(dim, keepdim)


@op("argmin.default")
def argmin(x: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    return x.argmin(dim, keepdim)


@op("any.default", "any.dim", "any.dims")
def any_(x: Expr, dim: Any = None, keepdim: bool = False) -> Expr:
    return x.to("bool").to("int32").max(dim, keepdim) != 0


@op("all.default", "all.dim", "all.dims")
def all_(x: Expr, dim: Any = None, keepdim: bool = False) -> Expr:
    return x.to("bool").to("int32").min(dim, keepdim) != 0


def _running(x: Expr, dim: int, op: str) -> tuple[Expr, Expr]:
    if not x.shape: return x, (_places(1, x.device) * 0).reshape([]).to("int64")
    values = _apply(op, (x, ), axes=[dim])
    # The last place that has the value so far, or the last NaN once there was one.
    here = _apply("eq", (x, values))
    if _is_float(x): here = _apply("logical_or", (here, x.isnan()))
    at = _apply("where", (here, _arange(x.shape[dim % x.ndim], x.ndim, dim % x.ndim, x), 0))
    return values, at.cummax(dim).to("int64")


@op("cummax.default")
def cummax(x: Expr, dim: int) -> tuple[Expr, Expr]:
    return _running(x, dim, "cummax")


@op("cummin.default")
def cummin(x: Expr, dim: int) -> tuple[Expr, Expr]:
    return _running(x, dim, "cummin")


@op("cumsum.default")
def cumsum(x: Expr, dim: int, *, dtype: Any = None) -> Expr:
    return x.cumsum(dim, dtype=dtype) if x.shape else x


@op("cumprod.default")
def cumprod(x: Expr, dim: int, *, dtype: Any = None) -> Expr:
    return x.cumprod(dim, dtype=dtype) if x.shape else x


@op("prod.default", "prod.dim_int")
def prod(x: Expr, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    if dtype is not None: x = x.to(dtype)
    if not x.shape: return x
    # The last of the running products, which the planner makes a reduction.
    wide = _wide(x) if dim is not None else _wide(x).reshape([x.numel()])
    axis = (dim or 0) % wide.ndim
    out = slice_(wide.cumprod(axis), axis, wide.shape[axis] - 1)
    if keepdim and dim is not None: return out
    return out.reshape([n for d, n in enumerate(wide.shape) if d != axis])


@op("_softmax.default")
def softmax(x: Expr, dim: int, half_to_float: bool) -> Expr:
    return x.softmax(dim, dtype="float32" if half_to_float else None)


@op("_log_softmax.default")
def log_softmax(x: Expr, dim: int, half_to_float: bool) -> Expr:
    return x.log_softmax(dim, dtype="float32" if half_to_float else None)


@op("native_layer_norm.default")
def layer_norm(x: Expr, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> tuple[Expr, Expr, Expr]:
    dims = list(range(-len(shape), 0))
    wide = _wide(x)
    mean, rstd = wide.mean(dims, True), (wide.var(dims, True, correction=0) + eps).rsqrt()
    if weight is None and bias is not None: return (wide - mean) * rstd + bias, mean, rstd
    return x.layer_norm(weight, bias, eps=eps, dims=len(shape)), mean, rstd


@op("_fused_rms_norm.default")
def rms_norm(x: Expr, shape: Sequence[int], weight: Any, eps: float | None) -> tuple[Expr, Expr]:
    if eps is None: eps = torch.finfo(getattr(torch, _wide(x).dtype)).eps
    dims, wide = list(range(-len(shape), 0)), _wide(x)
    rstd = ((wide * wide).mean(dims, True) + eps).rsqrt()
    return x.rms_norm(weight, eps=eps, dims=len(shape)), rstd


@op("nll_loss_forward.default")
def nll_loss(x: Expr, target: Expr, weight: Any, reduction: int, ignore_index: int) -> tuple[Expr, Expr]:
    kept = target != ignore_index
    place = _apply("where", (kept, target, 0))
    picked = -x.gather(-1, place.unsqueeze(-1)).squeeze(-1)
    share = kept.to(x.dtype) if weight is None else _apply("where", (kept, _index(weight, (place, )), 0.0))
    loss = _apply("where", (kept, picked * share, 0.0))
    total = share.sum()
    if reduction == 0: return loss, total
    return (loss.sum() / total if reduction == 1 else loss.sum()), total


@op("nll_loss_backward.default")
def nll_loss_backward(grad: Expr, x: Expr, target: Expr, weight: Any, reduction: int, ignore_index: int,
                      total: Expr) -> Expr:
    # A comparison with each place instead of a scatter, so that what follows shares the kernel.
    kept = target != ignore_index
    place = _apply("where", (kept, target, 0))
    here = _arange(x.shape[-1], x.ndim, x.ndim - 1, x) == place.unsqueeze(-1)
    value = -grad if reduction != 1 else -grad / total
    if weight is not None: value = value * _index(weight, (place, ))
    value = _apply("where", (kept, value, 0.0)).unsqueeze(-1) if x.ndim > 1 else _apply("where", (kept, value, 0.0))
    return _apply("where", (here, value.to(x.dtype), 0.0))


# --- products --------------------------------------------------------------------------------------------------------


def _product(a: Expr, b: Expr, dtype: str | None = None) -> Expr:
    tf32 = a.device != "cpu" and a.dtype == "float32" and torch.backends.cuda.matmul.allow_tf32
    return _apply("matmul", (a, b), tf32=bool(tf32), **({} if dtype is None else {"dtype": dtype}))


@op("mm.default", "bmm.default", "mv.default", "dot.default")
def mm(a: Expr, b: Expr) -> Expr:
    return _product(a, b)


@op("addmm.default", "baddbmm.default", "addmv.default")
def addmm(bias: Expr, a: Expr, b: Expr, *, beta: Any = 1, alpha: Any = 1) -> Expr:
    # One operation of PyTorch's: rounded once.
    out = _product(a, b, "float32" if _wide(a) is not a else None)
    if alpha != 1: out = out * alpha
    if beta == 0: return out
    return out + (bias if beta == 1 else _wide(bias) * beta)


# --- what has no tensor among its operands ---------------------------------------------------------------------------


def _is_float(x: Expr) -> bool:
    return is_float_name(x.dtype)


def _wide(x: Expr) -> Expr:
    """As float32, in which halves are computed."""
    return x.to("float32") if x.dtype in ("float16", "bfloat16") else x


def _same_device(device: Any, x: Expr) -> bool:
    wanted = torch.device(device)
    kind, _, number = x.device.partition(":")
    return wanted.type == kind and (wanted.index is None or wanted.index == int(number or 0))


def _places(n: int, device: str) -> Expr:
    number = -1 if device == "cpu" else int(device.partition(":")[2])
    return Expr(_kiln.Expr.iota(n, "int32" if n < 2**30 else "int64", number))


class Full:
    """A tensor that is full of one number: as a number where that means the same, else made of places."""

    def __init__(self, value: Any, dtype: str, shape: Sequence[int], device: str) -> None:
        self.value, self.dtype, self.shape, self.device = value, dtype, tuple(shape), device

    def expr(self) -> Expr:
        one, value = _places(1, self.device).reshape([1] * len(self.shape)), self.value
        if self.dtype == "bool": out = one == one if value else one != one
        else: out = one.to(self.dtype) + (value if is_float_name(self.dtype) else int(value))
        return out.to(self.dtype).expand(list(self.shape))


def is_float_name(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


# The value's position among the arguments; what else they say is in the result's description.
FULL = {"aten.full.default": 1, "aten.full_like.default": 1, "aten.new_full.default": 2,
        "aten.scalar_tensor.default": 0, "aten.fill.Scalar": 1}
# torch.tensor(2.0) in the function: a constant of the graph, without dimensions.
CONSTANT = "aten.lift_fresh_copy.default"
ZEROS = {"aten.zeros.default": 0, "aten.zeros_like.default": 0, "aten.new_zeros.default": 0, "aten.ones.default": 1,
         "aten.ones_like.default": 1, "aten.new_ones.default": 1}


def arange(n: int, start: Any, step: Any, dtype: str, device: str) -> Expr:
    if isinstance(start, int) and isinstance(step, int) and not is_float_name(dtype):
        return (_places(n, device).to("int64") * step + start).to(dtype)
    # In the type that PyTorch adds up in.
    wide = "float64" if dtype == "float64" or device == "cpu" else "float32"
    return (_places(n, device).to(wide) * step + start).to(dtype)


def linspace(start: Any, end: Any, n: int, dtype: str, device: str) -> Expr:
    """From both ends towards the middle, as PyTorch."""
    if not is_float_name(dtype): raise Unsupported("linspace of integers")
    wide = "float64" if dtype == "float64" else "float32"
    step, at = (end - start) / max(1, n - 1), _places(n, device)
    up, down = at.to(wide) * step + start, ((n - 1 - at).to(wide) * -step) + end
    return _apply("where", (at < n // 2 if n > 1 else at == 0, up, down)).to(dtype)


# What is worth a kernel of its own, though PyTorch has one: what reduces along dimensions, scans, or looks up.
WORTH_ALONE = {f"aten.{name}" for name in """
    _softmax.default _log_softmax.default native_layer_norm.default _fused_rms_norm.default sum.default
    sum.dim_IntList mean.default mean.dim var.correction var_mean.correction std.correction amax.default
    amin.default max.default min.default max.dim min.dim argmax.default argmin.default prod.default prod.dim_int
    cumsum.default
    cummax.default cummin.default cumprod.default nll_loss_forward.default avg_pool1d.default avg_pool2d.default
    avg_pool3d.default max_pool2d_with_indices.default adaptive_max_pool2d.default _adaptive_avg_pool2d.default
    bucketize.Tensor searchsorted.Tensor
""".split()}
# The same on GPUs; on CPUs PyTorch's are the faster ones.
WORTH_ALONE_ON_GPUS = {f"aten.{name}" for name in """
    convolution.default index.Tensor index_select.default gather.default embedding.default constant_pad_nd.default
    flip.default roll.default repeat.default
""".split()}
# Tests let CPUs compute what GPUs alone do otherwise.
cpus_are_gpus = False


def is_gpu(device: torch.device | str) -> bool:
    return cpus_are_gpus or not str(device).startswith("cpu")

# Operations of PyTorch's that are better taken apart, into those of the table.
DECOMPOSED = """
    addr affine_grid_generator aminmax binary_cross_entropy binary_cross_entropy_backward
    binary_cross_entropy_with_logits celu channel_shuffle cosh count_nonzero deg2rad diag_embed diagonal_copy
    elu_backward embedding_dense_backward _euclidean_dist eye fill.Tensor frac _fused_rms_norm_backward
    gelu_backward glu glu_backward grid_sampler_2d hardshrink hardsigmoid hardsigmoid_backward hardswish
    hardswish_backward hardtanh_backward heaviside huber_loss huber_loss_backward hypot im2col isclose isfinite
    l1_loss leaky_relu_backward linalg_cross linalg_vector_norm log_sigmoid_backward log_sigmoid_forward
    _log_softmax_backward_data logaddexp logaddexp2 logit logit_backward logsumexp masked_fill mish mish_backward
    mse_loss mse_loss_backward nan_to_num nansum native_batch_norm native_batch_norm_backward
    _native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training
    native_dropout_backward native_group_norm native_group_norm_backward native_layer_norm_backward
    nll_loss2d_backward nll_loss2d_forward norm pixel_shuffle pixel_unshuffle _prelu_kernel rad2deg
    reflection_pad1d reflection_pad2d relu6 replication_pad1d replication_pad2d rot90 _safe_softmax
    select_backward selu sigmoid_backward silu_backward sinc sinh slice_backward smooth_l1_loss
    smooth_l1_loss_backward soft_margin_loss _softmax_backward_data softplus softplus_backward softshrink
    special_entr special_xlog1py stack std_mean take tanh_backward threshold threshold_backward trace
    upsample_bilinear2d upsample_nearest2d xlogy _unsafe_masked_index _unsafe_masked_index_put_accumulate
""".split()


# Of these PyTorch rounds halves once, at the end, and places among pixels have not enough digits otherwise.
_IN_FLOAT32 = ("grid_sampler_2d", "upsample_bilinear2d")


def _in_float32(taken_apart: Callable) -> Callable:

    def of_halves(x: torch.Tensor, *more: Any, **options: Any) -> torch.Tensor:
        if x.dtype not in (torch.float16, torch.bfloat16): return taken_apart(x, *more, **options)
        wide = [a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in (x, *more)]
        return taken_apart(*wide, **options).to(x.dtype)

    return of_halves


def _on_gpus(taken_apart: Callable) -> Callable:

    def of_gpus(x: torch.Tensor, *more: Any, **options: Any) -> Any:
        return taken_apart(x, *more, **options) if is_gpu(x.device) else NotImplemented

    return of_gpus


def counts_in_kernel(x: torch.Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> bool:
    """Whether a kernel counts aten.histc in shared memory: in bins that are known, all of which a program has."""
    return min < max and bins <= _library.load("_device")._MOST_BINS and x.dtype != torch.float64 and x.numel() > 0


def _histc(x: torch.Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """A sum of ones at the bin of each element, by PyTorch's arithmetic."""
    if not is_gpu(x.device) or x.dtype not in (torch.float32, torch.float64): return NotImplemented
    x = x.reshape(-1)
    low, high = (x.amin(), x.amax()) if min == max and x.numel() else (min, max)
    if min == max and x.numel():
        low, high = torch.where(low == high, low - 1, low), torch.where(low == high, high + 1, high)
    elif min == max:
        low, high = min - 1, max + 1
    place = ((x - low) * bins / (high - low)).to(torch.int64)
    inside = (x >= low) & (x <= high)
    place = torch.where(inside, place.clamp(max=bins - 1), 0)
    counts = torch.zeros(bins, dtype=torch.int32, device=x.device)
    return counts.scatter_add(0, place, inside.to(torch.int32))


def _histc_as(x: torch.Tensor, *more: Any, **options: Any) -> Any:
    if is_gpu(x.device) and counts_in_kernel(x, *more, **options): return NotImplemented
    counts = _histc(x, *more, **options)
    return counts if counts is NotImplemented else counts.to(x.dtype)


def decompositions() -> dict:
    packets = []
    for name in DECOMPOSED:
        base, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, base, None)
        if packet is not None: packets.append(getattr(packet, overload) if overload else packet)
    table = torch._decomp.get_decompositions(packets)
    for name in _IN_FLOAT32:
        overload = getattr(torch.ops.aten, name).default
        table[overload] = _in_float32(table[overload])
    overload = torch.ops.aten.embedding_dense_backward.default
    table[overload] = _on_gpus(table[overload])
    table[torch.ops.aten.histc.default] = _histc_as
    return table
