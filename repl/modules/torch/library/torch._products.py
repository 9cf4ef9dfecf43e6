"""Functions of two tensors that are methods too: products, made of matmul(), and others element by element."""
import math
import torch
from torch import _kiln, _tape
from torch._elementwise import _arc_to_1, signbit
from torch._tensor import _factor, _needs_tensor, _needs_tensors, _wide

lazily = _kiln.lazily


@lazily
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    if mat1.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError("addmm() takes two matrices")
    return _added(input, mat1, mat2, beta, alpha, "addmm()")


@lazily
def addmv(input, mat, vec, *, beta=1, alpha=1):
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError("addmv() takes a matrix and a vector")
    return _added(input, mat, vec, beta, alpha, "addmv()")


@lazily
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    if batch1.ndim != 3 or batch2.ndim != 3 or batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError("baddbmm() takes two batches of as many matrices")
    return _added(input, batch1, batch2, beta, alpha, "baddbmm()")


def _product(a, b):
    """In float32 for halves, for what follows to be rounded once."""
    halves = a.dtype in (torch.float16, torch.bfloat16)
    return a.matmul(b, out_dtype=torch.float32) if halves and a.dtype == b.dtype else a.matmul(b)


def _added(x, a, b, beta, alpha, what):
    x, a, b = _kiln.narrowed(x, a, b)
    if not (x.dtype == a.dtype == b.dtype):
        raise RuntimeError(f"{what} takes tensors of one dtype, got {x.dtype}, {a.dtype} and {b.dtype}")
    out = _product(a, b)
    beta, alpha = _factor(beta, a.dtype), _factor(alpha, a.dtype)
    if alpha != 1:
        out = out * alpha
    shape = out.shape
    if torch.broadcast_shapes(x.shape, shape) != shape:
        raise RuntimeError(f"{what}: {tuple(x.shape)} does not broadcast to {tuple(shape)}")
    if beta != 0:
        out = (_wide(x) if beta == 1 else _wide(x) * beta) + out
    return out.to(a.dtype)


@lazily
def outer(input, vec2):
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError("outer() takes two vectors")
    return input.unsqueeze(1) * vec2


@lazily
def kron(input, other):
    _needs_tensor(input, "kron")
    _needs_tensor(other, "kron")
    n = max(input.ndim, other.ndim)
    a, b = [[1] * (n - t.ndim) + list(t.shape) for t in (input, other)]
    out = input.reshape([s for m in a for s in (m, 1)]) * other.reshape([s for m in b for s in (1, m)])
    return out.reshape([x * y for x, y in zip(a, b)])


def ger(input, vec2):
    return outer(input, vec2)


def dot(input, tensor):
    if input.ndim != 1 or tensor.ndim != 1 or input.shape != tensor.shape or input.dtype != tensor.dtype:
        raise RuntimeError("dot() takes two vectors of one length and dtype")
    return input.matmul(tensor)


def vdot(input, other):
    return dot(input, other)


def mv(input, vec):
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError("mv() takes a matrix and a vector")
    return input.matmul(vec)


def inner(input, other):
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError("inner(): the last dimensions differ")
    out = input.reshape(-1, input.shape[-1]) @ other.reshape(-1, other.shape[-1]).T
    return out.reshape(list(input.shape[:-1]) + list(other.shape[:-1]))


# --- element by element


def _float_of(a, b):
    """The dtype of two operands whose result is a float."""
    dtype = torch.result_type(a, b)
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def atan2(input, other):
    dtype = _float_of(input, other)

    def rule(g, y, x):
        a, b = _wide(y), _wide(x)
        square = a * a + b * b
        part = torch.where(square == 0, 0, g / square)
        return (part * b).sum_to_size(y.shape).to(dtype), (part * -a).sum_to_size(x.shape).to(dtype)

    return _tape.with_rule(_atan2, (input.to(dtype), other.to(dtype)), rule)


@lazily
def _atan2(input, other):
    dtype = input.dtype
    y, x = _wide(input), _wide(other)
    a, b = y.abs(), x.abs()
    # Zeros have the angle 0, infinities that of 1 and 1.
    r = _arc_to_1(torch.where(a == b, (a != 0).to(a.dtype), torch.minimum(a, b) / torch.maximum(a, b)))
    r = torch.where(a > b, 1.5707963267948966 - r, r)
    r = torch.where(signbit(x), 3.141592653589793 - r, r)
    return torch.where(signbit(y), -r, r).to(dtype)


def copysign(input, other):
    if not isinstance(input, torch.Tensor):
        raise TypeError(f"copysign() takes a tensor first, got '{type(input).__name__}'")
    if not isinstance(other, torch.Tensor) or not _kiln.records(other):
        return _copysign(input, other)

    def rule(g, x, y):  # of the sign that is taken over it is zero
        turned = torch.where(x == 0, 0.0, _copysign(torch.ones_like(x), y) * x.sign())
        return (g * turned).sum_to_size(x.shape).to(x.dtype), torch.zeros_like(y)

    return _tape.with_rule(_copysign, (input, other), rule)


@lazily
def _copysign(input, other):
    dtype = _float_of(input, other)
    a = input.to(dtype).abs()
    if not isinstance(other, torch.Tensor):
        return -a if math.copysign(1.0, other) < 0 else a
    return torch.where(signbit(other), -a, a)


@lazily
def xlogy(input, other):
    """input * log(other), with zeros of `input` kept unless `other` is NaN."""
    return _times_log(input, other, torch.log, "xlogy")


def _times_log(input, other, log, function):
    dtype = _float_of(input, other)
    like = input if isinstance(input, torch.Tensor) else other
    _needs_tensor(like, function)
    both = [x.to(dtype) if isinstance(x, torch.Tensor) else like.new_full((), x, dtype=dtype) for x in (input, other)]
    a, b = [_wide(x) for x in both]
    product = a * log(torch.where(a == 0, 1.0, b))  # of what is not taken the gradient is finite, too
    return torch.where(b.isnan(), float("nan"), torch.where(a == 0, 0.0, product)).to(dtype)


@lazily
def logaddexp(input, other):
    dtype, a, b = _exponents(input, other, "logaddexp()")
    most, less = torch.maximum(a, b), (-(a - b).abs()).exp().log1p()
    return torch.where((a == b) & torch.isinf(a), a, most + less).to(dtype)


@lazily
def logaddexp2(input, other):
    dtype, a, b = _exponents(input, other, "logaddexp2()")
    most, less = torch.maximum(a, b), (-(a - b).abs()).exp2().log1p() * 1.4426950408889634
    return torch.where((a == b) & torch.isinf(a), a, most + less).to(dtype)


def _exponents(a, b, what):
    dtype = torch.result_type(a, b)
    if not dtype.is_floating_point:
        raise NotImplementedError(f"{what} does not apply to tensors of {dtype}")
    return dtype, _wide(a.to(dtype)), _wide(b.to(dtype))


@lazily
def fmax(input, other):
    _needs_tensors("fmax", input, other)
    return _unless_nan(torch.maximum(input, other), input, other)


@lazily
def fmin(input, other):
    _needs_tensors("fmin", input, other)
    return _unless_nan(torch.minimum(input, other), input, other)


def _unless_nan(out, a, b):
    """Of an element that is NaN the other one."""
    if not out.is_floating_point():
        return out
    a, b = a.to(out.dtype), b.to(out.dtype)
    return torch.where(a.isnan(), b, torch.where(b.isnan(), a, out))


def gcd(input, other):
    dtype = torch.result_type(input, other)
    if dtype.is_floating_point or dtype is torch.bool:
        raise NotImplementedError(f"gcd() does not apply to tensors of {dtype}")
    a, b = [t.to(dtype).abs() for t in torch.broadcast_tensors(input, other)]
    if _kiln.runs_kernels(a):
        from torch import _scan
        return _scan.gcd(a, b)
    while bool((b != 0).any()):
        a, b = torch.where(b == 0, a, b), torch.where(b == 0, 0, a % torch.where(b == 0, 1, b))
    return a


def lcm(input, other):
    g = gcd(input, other)
    return (input.to(g.dtype) // torch.where(g == 0, 1, g) * other.to(g.dtype)).abs()
