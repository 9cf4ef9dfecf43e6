"""Complex tensors: two real tensors of one shape, so that what is made of them is part of the expression.

Torch's functions and methods come here by their names when an argument is complex (torch_complex.cc); those that are
not here refuse it. Each is a method of complex tensors too where real ones have such a method.
"""
import math
import torch
from torch import _kiln

_Number = type(1j)


class dtype:
    """torch.complex64 and torch.complex128."""

    is_complex, is_floating_point, is_signed = True, False, True

    def __init__(self, name, real):
        self.name, self.real, self.itemsize = name, real, 2 * real.itemsize

    def to_real(self):
        return self.real

    def to_complex(self):
        return self

    def __repr__(self):
        return "torch." + self.name


_kiln.derive(dtype, torch.dtype)
complex64, complex128 = dtype("complex64", torch.float32), dtype("complex128", torch.float64)
cfloat, cdouble = complex64, complex128


def _complex_of(real):
    """The complex dtype of a real one."""
    if isinstance(real, dtype):
        return real
    if real is torch.float16:
        raise NotImplementedError("complex32 is not supported: convert to float32 first")
    return complex128 if real is torch.float64 else complex64


class Tensor:
    __module__ = "torch"

    def __init__(self, re, im, parts=None):
        self._re, self._im, self._parts = re, im, parts

    # --- what it is

    @property
    def shape(self):
        return self._re.shape

    @property
    def ndim(self):
        return self._re.ndim

    @property
    def dtype(self):
        return _complex_of(self._re.dtype)

    @property
    def device(self):
        return self._re.device

    @property
    def is_cuda(self):
        return self._re.is_cuda

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def nbytes(self):
        return self.numel() * self.itemsize

    @property
    def requires_grad(self):
        return self._re.requires_grad or self._im.requires_grad

    @property
    def grad(self):
        return None

    @property
    def data(self):
        return self.detach()

    @property
    def real(self):
        return self._re

    @real.setter
    def real(self, value):
        self._re.copy_(torch.as_tensor(value))

    @property
    def imag(self):
        return self._im

    @imag.setter
    def imag(self, value):
        self._im.copy_(torch.as_tensor(value))

    @property
    def T(self):
        return Tensor(self._re.T, self._im.T)

    @property
    def mT(self):
        return Tensor(self._re.mT, self._im.mT)

    @property
    def H(self):
        return Tensor(self._re.H, -self._im.H)

    @property
    def mH(self):
        return Tensor(self._re.mH, -self._im.mH)

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        return self.ndim

    def element_size(self):
        return self.itemsize

    def is_contiguous(self):
        return True

    # --- its elements

    def item(self):
        return _Number(self._re.item(), self._im.item())

    def tolist(self):
        return _nested(self._re.tolist(), self._im.tolist())

    def __repr__(self):
        parts = view_as_real(self)  # one kernel
        return _kiln.complex_text(parts[..., 0], parts[..., 1])

    def __format__(self, spec):
        return format(self.item(), spec) if self.ndim == 0 else repr(self)

    def __len__(self):
        return len(self._re)

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("a tensor without dimensions cannot be iterated")
        return iter([self[i] for i in range(self.shape[0])])

    def __bool__(self):
        return bool((self != 0).item()) if self.numel() == 1 else bool(self._re)  # an error

    def __complex__(self):
        return self.item()

    def __hash__(self):
        return id(self)

    def __getitem__(self, key):
        return Tensor(self._re[key], self._im[key])

    def __setitem__(self, key, value):
        re, im = _pair(value)
        self._re[key] = re
        self._im[key] = 0 if im is None else im

    def __getattr__(self, name):
        if name.startswith("_") or not hasattr(self._re, name):
            raise AttributeError(f"'Tensor' object has no attribute '{name}'")
        raise NotImplementedError(f"{name}() of complex tensors is not supported")

    # --- operators

    def __neg__(self):
        return Tensor(-self._re, -self._im)

    def __pos__(self):
        return self

    def __abs__(self):
        return self.abs()

    def __add__(self, other):
        return add(self, other) if _is_operand(other) else NotImplemented

    def __radd__(self, other):
        return add(self, other) if _is_operand(other) else NotImplemented

    def __sub__(self, other):
        return sub(self, other) if _is_operand(other) else NotImplemented

    def __rsub__(self, other):
        return sub(other, self) if _is_operand(other) else NotImplemented

    def __mul__(self, other):
        return mul(self, other) if _is_operand(other) else NotImplemented

    def __rmul__(self, other):
        return mul(self, other) if _is_operand(other) else NotImplemented

    def __truediv__(self, other):
        return div(self, other) if _is_operand(other) else NotImplemented

    def __rtruediv__(self, other):
        return div(other, self) if _is_operand(other) else NotImplemented

    def __pow__(self, other):
        return pow(self, other) if _is_operand(other) else NotImplemented

    def __rpow__(self, other):
        return pow(other, self) if _is_operand(other) else NotImplemented

    def __matmul__(self, other):
        return matmul(self, other) if isinstance(other, torch.Tensor) else NotImplemented

    def __rmatmul__(self, other):
        return matmul(other, self) if isinstance(other, torch.Tensor) else NotImplemented

    def __eq__(self, other):
        return eq(self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other):
        return ne(self, other) if _is_operand(other) else NotImplemented

    def __lt__(self, other):
        raise NotImplementedError("complex numbers have no order: < does not apply")

    def __le__(self, other):
        raise NotImplementedError("complex numbers have no order: <= does not apply")

    def __gt__(self, other):
        raise NotImplementedError("complex numbers have no order: > does not apply")

    def __ge__(self, other):
        raise NotImplementedError("complex numbers have no order: >= does not apply")

    def __iadd__(self, other):
        return copy_(self, add(self, other))

    def __isub__(self, other):
        return copy_(self, sub(self, other))

    def __imul__(self, other):
        return copy_(self, mul(self, other))

    def __itruediv__(self, other):
        return copy_(self, div(self, other))


_kiln.derive(Tensor, torch.Tensor)


def _nested(re, im):
    return [_nested(a, b) for a, b in zip(re, im)] if isinstance(re, list) else _Number(re, im)


def _is_operand(x):
    return isinstance(x, (torch.Tensor, int, float, _Number))


def _pair(x):
    """The parts of an operand; None for the imaginary one of what is real."""
    if isinstance(x, Tensor):
        return x._re, x._im
    if isinstance(x, _Number):
        return x.real, x.imag
    return (x.float() if isinstance(x, torch.Tensor) and x.dtype is torch.bfloat16 else x), None


def _made(re, im):
    """Of parts of which one may be a number, or have fewer elements, or another dtype."""
    like = re if isinstance(re, torch.Tensor) else im
    if not isinstance(re, torch.Tensor):
        re = torch.full((), re, dtype=like.dtype, device=like.device)
    if not isinstance(im, torch.Tensor):
        im = torch.full((), im, dtype=like.dtype, device=like.device)
    if re.dtype is not im.dtype:
        real = torch.promote_types(re.dtype, im.dtype)
        re, im = re.to(real), im.to(real)
    if not re.is_floating_point():
        re, im = re.float(), im.float()
    _complex_of(re.dtype)
    if re.shape != im.shape:
        re, im = torch.broadcast_tensors(re, im)
    return Tensor(re, im)


def _of(x):
    """A complex tensor, of a real one too."""
    return x if isinstance(x, Tensor) else _made(_pair(x)[0], 0)


# --- from and to real tensors


def view_as_complex(input):
    if isinstance(input, Tensor) or input.dtype not in (torch.float32, torch.float64, torch.float16):
        raise RuntimeError(f"view_as_complex() takes a tensor of floats, got {input.dtype}")
    _complex_of(input.dtype)
    if input.ndim == 0 or input.shape[-1] != 2:
        raise RuntimeError(f"view_as_complex() takes a tensor with a last dimension of 2, got {tuple(input.shape)}")
    return Tensor(input[..., 0], input[..., 1], input)


def view_as_real(input):
    if not isinstance(input, Tensor):
        raise RuntimeError(f"view_as_real() takes a complex tensor, got {input.dtype}")
    if input._parts is None:
        parts = torch.stack((input._re, input._im), -1)
        input._re, input._im, input._parts = parts[..., 0], parts[..., 1], parts  # they share its memory from now on
    return input._parts


def complex(real, imag, *, out=None):
    if real.dtype is not imag.dtype or real.dtype not in (torch.float32, torch.float64, torch.float16):
        raise RuntimeError(f"complex() takes two tensors of one dtype of floats, got {real.dtype} and {imag.dtype}")
    return _put_out(_made(real, imag), out, "complex()")


def _put_out(value, out, what):
    """A result in the tensor that out= names, which has its shape or is empty."""
    if out is None:
        return value
    if not isinstance(out, torch.Tensor) or out.dtype is not value.dtype:
        raise RuntimeError(f"{what}: a result of {value.dtype} takes an out= of that dtype, got "
                           f"{out.dtype if isinstance(out, torch.Tensor) else type(out).__name__}")
    if out.shape == value.shape:
        return out.copy_(value)
    if out.numel():
        raise RuntimeError(f"{what}: the result has shape {value.shape}, and out= has {out.shape}")
    if isinstance(out, Tensor):
        out._re, out._im, out._parts = value._re, value._im, value._parts
        return out
    return out.resize_(value.shape).copy_(value)


def polar(abs, angle, *, out=None):
    if abs.dtype is not angle.dtype or abs.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"polar() takes two tensors of one dtype of floats, got {abs.dtype} and {angle.dtype}")
    return _put_out(_made(abs * angle.cos(), abs * angle.sin()), out, "polar()")


def real(input):
    return input.real


def imag(input):
    return input.imag


def conj(input):
    return Tensor(input._re, -input._im) if isinstance(input, Tensor) else input


def conj_physical(input):
    return conj(input)


def resolve_conj(input):
    return input


def resolve_neg(input):
    return input


def is_conj(input):
    return False


def is_complex(input):
    return isinstance(input, Tensor)


def is_floating_point(input):
    return False


def isreal(input):
    return input._im == 0 if isinstance(input, Tensor) else torch.ones_like(input, dtype=torch.bool)


def abs(input):
    return torch.hypot(input._re, input._im)


def absolute(input):
    return abs(input)


def angle(input):
    if isinstance(input, Tensor):
        return torch.atan2(input._im, input._re)
    if not input.is_floating_point():
        input = input.float()
    return torch.where(input.isnan(), input, (input < 0).to(input.dtype) * math.pi)


# --- arithmetic


def add(input, other, *, alpha=1):
    (a, b), (c, d) = _pair(input), _pair(other)
    if not isinstance(alpha, int) or alpha != 1:
        c, d = c * alpha, None if d is None else d * alpha
    return _made(a + c, d if b is None else b if d is None else b + d)


def sub(input, other, *, alpha=1):
    (a, b), (c, d) = _pair(input), _pair(other)
    if not isinstance(alpha, int) or alpha != 1:
        c, d = c * alpha, None if d is None else d * alpha
    return _made(a - c, -d if b is None else b if d is None else b - d)


def rsub(input, other, *, alpha=1):
    return sub(other, input, alpha=alpha)


def mul(input, other):
    (a, b), (c, d) = _pair(input), _pair(other)
    if b is None:
        return _made(a * c, a * d)
    if d is None:
        return _made(a * c, b * c)
    return _made(a * c - b * d, a * d + b * c)


def div(input, other, *, rounding_mode=None):
    if rounding_mode is not None:
        raise NotImplementedError("complex numbers are not divided with a rounding mode")
    (a, b), (c, d) = _pair(input), _pair(other)
    if d is None:
        return _made(a / c, b / c)
    # By the larger part of the divisor, which is not squared.
    if isinstance(other, _Number):
        if c == 0 and d == 0:
            return _made(a / c, (a if b is None else b) / c)
        by_real = math.fabs(c) >= math.fabs(d)
        p, q = (c, d) if by_real else (d, c)
        r = q / p
        s = 1 / (p + q * r)
        b = 0 if b is None else b
        return _made((a + b * r) * s, (b - a * r) * s) if by_real else _made((a * r + b) * s, (b * r - a) * s)
    by_real = c.abs() >= d.abs()
    p, q = torch.where(by_real, c, d), torch.where(by_real, d, c)
    r = torch.where(p == 0, 0, q / p)
    s = 1 / (p + q * r)
    b = 0 if b is None else b
    return _made(torch.where(by_real, a + b * r, a * r + b) * s, torch.where(by_real, b - a * r, b * r - a) * s)


def neg(input):
    return -input


def positive(input):
    return input


def multiply(input, other):
    return mul(input, other)


def divide(input, other):
    return div(input, other)


def true_divide(input, other):
    return div(input, other)


def subtract(input, other, *, alpha=1):
    return sub(input, other, alpha=alpha)


def negative(input):
    return -input


def addcmul(input, tensor1, tensor2, *, value=1):
    return add(input, mul(tensor1, tensor2) if value == 1 else mul(mul(tensor1, tensor2), value))


def reciprocal(input):
    return div(1.0, input)


def square(input):
    a, b = input._re, input._im
    return Tensor(a * a - b * b, 2 * (a * b))


def sgn(input):
    m = abs(input)
    scale = torch.where(m == 0, 0, 1 / m)
    return Tensor(input._re * scale, input._im * scale)


def exp(input):
    m = input._re.exp()
    return Tensor(m * input._im.cos(), m * input._im.sin())


def log(input):
    return Tensor(abs(input).log(), angle(input))


def sqrt(input):
    a, b, m = input._re, input._im, abs(input)
    t = ((m + a.abs()) / 2).sqrt()
    u = torch.where(t == 0, 0, b.abs() / (2 * t))
    side = torch.where(torch.signbit(b), -1, 1).to(a.dtype)
    return Tensor(torch.where(a < 0, u, t), torch.where(a < 0, t, u) * side)


def rsqrt(input):
    return reciprocal(sqrt(input))


def sin(input):
    a, b = input._re, input._im
    return Tensor(a.sin() * b.cosh(), a.cos() * b.sinh())


def cos(input):
    a, b = input._re, input._im
    return Tensor(a.cos() * b.cosh(), -(a.sin() * b.sinh()))


def pow(input, exponent):
    if isinstance(input, Tensor) and isinstance(exponent, (int, float)):
        if exponent == 0.5:
            return sqrt(input)
        if exponent in (0, 1, 2, 3, 4, -1, -2):
            out = torch.ones_like(input) if exponent == 0 else input if exponent in (1, -1) else square(input)
            out = mul(out, input) if exponent == 3 else square(out) if exponent == 4 else out
            return reciprocal(out) if exponent < 0 else out.clone() if exponent == 1 else out
    base = _of(input) if isinstance(input, torch.Tensor) else None
    if base is None:
        re, im = input.real, input.imag
        size, turn = math.hypot(re, im), math.atan2(im, re)
        if size == 0:
            raise NotImplementedError("powers of zero with complex exponents are not supported")
        return exp(mul(exponent, _Number(math.log(size), turn)))
    zero = (base == 0)
    out = exp(mul(log(where(zero, 1.0, base)), exponent))
    return where(zero, 0.0, out)


# --- comparisons


def eq(input, other):
    (a, b), (c, d) = _pair(input), _pair(other)
    return (a == c) & ((0 if b is None else b) == (0 if d is None else d))


def ne(input, other):
    return ~eq(input, other)


def not_equal(input, other):
    return ne(input, other)


def isnan(input):
    return input._re.isnan() | input._im.isnan()


def isinf(input):
    return torch.isinf(input._re) | torch.isinf(input._im)


def isfinite(input):
    return torch.isfinite(input._re) & torch.isfinite(input._im)


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    same = eq(input, other)
    if equal_nan:
        same = same | (isnan(_of(input)) & isnan(_of(other)))
    return same | (isfinite(_of(other)) & (abs(_of(sub(input, other))) <= atol + rtol * abs(_of(other))))


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def equal(input, other):
    a, b = _of(input), _of(other)
    return a.shape == b.shape and bool(eq(a, b).all())


def all(input, dim=None, keepdim=False):
    return ne(input, 0).all() if dim is None else ne(input, 0).all(dim, keepdim)


def any(input, dim=None, keepdim=False):
    return ne(input, 0).any() if dim is None else ne(input, 0).any(dim, keepdim)


def count_nonzero(input, dim=None):
    return torch.count_nonzero(ne(input, 0), dim)


def where(condition, input=None, other=None):
    if isinstance(condition, Tensor):
        if input is None:
            return torch.nonzero(ne(condition, 0), as_tuple=True)
        raise RuntimeError(f"where() takes a condition of bool, got {condition.dtype}")
    (a, b), (c, d) = _pair(input), _pair(other)
    return _made(torch.where(condition, a, c), torch.where(condition, 0.0 if b is None else b, 0.0 if d is None else d))


# --- sums


def sum(input, dim=None, keepdim=False, *, dtype=None):
    x = input if dtype is None else to(input, dtype)
    if dim is None and not keepdim:
        return Tensor(x._re.sum(), x._im.sum())
    return Tensor(x._re.sum(dim, keepdim), x._im.sum(dim, keepdim))


def mean(input, dim=None, keepdim=False, *, dtype=None):
    x = input if dtype is None else to(input, dtype)
    if dim is None and not keepdim:
        return Tensor(x._re.mean(), x._im.mean())
    return Tensor(x._re.mean(dim, keepdim), x._im.mean(dim, keepdim))


def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    if p == "nuc":
        return torch.linalg.matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim)
    return torch.norm(abs(input), p, dim, keepdim, dtype=dtype)


# --- the same of both parts


def _real(x):
    """For a function that looks at its shape alone."""
    return x._re if isinstance(x, Tensor) else x


def _of_parts(name):
    """A method of real tensors, applied to both parts."""
    def function(input, *args, **kwargs):
        args, kwargs = [_real(x) for x in args], {key: _real(x) for key, x in kwargs.items()}
        if not isinstance(input, Tensor):  # like a complex one
            return getattr(input, name)(*args, **kwargs)
        re, im = getattr(input._re, name)(*args, **kwargs), getattr(input._im, name)(*args, **kwargs)
        return tuple(Tensor(a, b) for a, b in zip(re, im)) if isinstance(re, (tuple, list)) else Tensor(re, im)
    function.__name__ = name
    return function


def _of_lists(name):
    """A function of torch that takes a list of tensors, applied to both parts."""
    def function(*tensors, **kwargs):
        rest = tensors[1:] if isinstance(tensors[0], (list, tuple)) else ()
        parts = [_of(x) for x in (tensors[0] if isinstance(tensors[0], (list, tuple)) else tensors)]
        re, im = [x._re for x in parts], [x._im for x in parts]
        f = getattr(torch, name)
        if name in ("broadcast_tensors", "atleast_1d", "atleast_2d", "atleast_3d"):
            re, im = f(*re), f(*im)
        else:
            re, im = f(re, *rest, **kwargs), f(im, *rest, **kwargs)
        return tuple(Tensor(a, b) for a, b in zip(re, im)) if isinstance(re, (tuple, list)) else Tensor(re, im)
    function.__name__ = name
    return function


_PARTS = ("reshape", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "flatten", "unflatten", "movedim",
          "moveaxis", "swapaxes", "swapdims", "narrow", "select", "contiguous", "clone", "detach", "cpu", "cuda",
          "repeat", "roll", "flip", "fliplr", "flipud", "rot90", "index_select", "gather", "expand_as", "view_as",
          "reshape_as", "tile", "repeat_interleave", "tril", "triu", "diagonal", "diag", "diag_embed", "ravel",
          "unfold", "take_along_dim", "take", "masked_select", "broadcast_to", "trace", "split",
          "chunk", "unbind", "tensor_split")
_LISTS = ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "broadcast_tensors")


def numel(input):
    return input._re.numel()


def view(input, *shape, dtype=None):
    to = dtype if dtype is not None else shape[0] if len(shape) == 1 and isinstance(shape[0], torch.dtype) else None
    if to is None:
        return Tensor(input._re.view(*shape), input._im.view(*shape))
    if isinstance(to, torch.dtype) and isinstance(input, Tensor):
        if to is input.dtype:
            return input
        if to is input._re.dtype:
            return view_as_real(input).flatten(-2)
    elif input.dtype is to.real:
        if input.ndim == 0 or input.shape[-1] % 2 != 0:
            raise RuntimeError(f"view({to}) takes a last dimension of pairs, got {tuple(input.shape)}")
        return view_as_complex(input.view(list(input.shape[:-1]) + [input.shape[-1] // 2, 2]))
    raise NotImplementedError(f"view({to}) of {input.dtype} is not supported")


def adjoint(input):
    return input.mH


def pad(input, pad, mode="constant", value=None):
    f = torch.nn.functional.pad
    re, im = _pair(0.0 if value is None else value)
    return Tensor(f(input._re, pad, mode, re if mode == "constant" else None),
                  f(input._im, pad, mode, (im or 0.0) if mode == "constant" else None))


# --- conversions


def to(input, *args, dtype=None, device=None, **kwargs):
    for x in args:
        if isinstance(x, torch.Tensor):
            dtype, device = x.dtype, x.device
        elif isinstance(x, torch.dtype):
            dtype = x
        else:
            device = x
    if device is not None:
        input = Tensor(input._re.to(device), input._im.to(device)) if isinstance(input, Tensor) else input.to(device)
    if dtype is None or dtype is input.dtype:
        return input
    if not isinstance(dtype, _ComplexType):  # as torch: the imaginary part is lost
        return input._re.to(dtype)
    if isinstance(input, Tensor):
        return Tensor(input._re.to(dtype.real), input._im.to(dtype.real))
    re = input.to(dtype.real)
    return Tensor(re, torch.zeros_like(re))


_ComplexType = dtype


def type(input, dtype):
    return to(input, dtype)


def type_as(input, other):
    return to(input, other.dtype)


def copy_(input, other, non_blocking=False):
    if not isinstance(input, Tensor):
        return input.copy_(other._re)
    re, im = _pair(other)
    input._re.copy_(torch.as_tensor(re))
    if im is None:
        input._im.zero_()
    else:
        input._im.copy_(torch.as_tensor(im))
    return input


def fill_(input, value):
    re, im = _pair(value)
    input._re.fill_(re)
    input._im.fill_(0 if im is None else im)
    return input


def zero_(input):
    return fill_(input, 0)


def add_(input, other, *, alpha=1):
    return copy_(input, add(input, other, alpha=alpha))


def sub_(input, other, *, alpha=1):
    return copy_(input, sub(input, other, alpha=alpha))


def mul_(input, other):
    return copy_(input, mul(input, other))


def div_(input, other):
    return copy_(input, div(input, other))


from torch._complex_products import matmul, mm, bmm, mv, dot, vdot, outer, einsum
from torch._complex_new import (zeros, ones, empty, eye, full, rand, randn, zeros_like, ones_like, empty_like,
                                rand_like, randn_like, full_like, new_zeros, new_ones, new_empty, tensor, as_tensor,
                                promote_types, result_type, is_tensor)

for _name in _PARTS:
    globals()[_name] = _of_parts(_name)
for _name in _LISTS:
    globals()[_name] = _of_lists(_name)
for _name in list(_PARTS) + """
        conj conj_physical resolve_conj resolve_neg is_conj is_complex is_floating_point isreal abs absolute angle add
        sub mul div neg positive multiply divide true_divide subtract negative addcmul reciprocal square sgn exp
        log sqrt rsqrt sin cos pow eq ne not_equal isnan isinf isfinite isclose allclose equal all any
        count_nonzero sum mean norm matmul mm bmm mv dot vdot outer numel view adjoint to type
        type_as copy_ fill_ zero_ add_ sub_ mul_ div_ new_zeros new_ones new_empty""".split():
    setattr(Tensor, _name, globals()[_name])
from torch import _complex_more
for _name, _function in _complex_more.names().items():
    globals()[_name] = _function
Tensor.cfloat = lambda x, memory_format=None: to(x, complex64)
Tensor.cdouble = lambda x, memory_format=None: to(x, complex128)
Tensor.where = lambda x, condition, other: where(condition, x, other)


def save(obj, f):
    from torch import _pickles
    _pickles.save(obj, f)
