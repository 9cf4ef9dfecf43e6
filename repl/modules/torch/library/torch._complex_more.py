"""More functions of complex tensors: what moves their elements, changes in place, functions made of logarithms and
square roots, products and sums."""
import math

import torch
import torch.nn.functional as F
from torch import _complex

Tensor, _Number = _complex.Tensor, _complex._Number
_of, _pair, _made = _complex._of, _complex._pair, _complex._made
abs, add, angle, copy_, div, exp, log, mul, ne, sqrt, square, sub, where = (
    _complex.abs, _complex.add, _complex.angle, _complex.copy_, _complex.div, _complex.exp, _complex.log, _complex.mul,
    _complex.ne, _complex.sqrt, _complex.square, _complex.sub, _complex.where)

# --- the same of both parts

# Functions whose result has the elements of the input at other places: of torch, or else of torch.nn.functional.
MOVES = """narrow_copy split_with_sizes unsafe_chunk unsafe_split hsplit vsplit dsplit diagflat as_strided
    combinations pixel_shuffle pixel_unshuffle channel_shuffle sum_to_size trapezoid trapz cumulative_trapezoid
    gradient unfold_copy expand_copy squeeze_copy unsqueeze_copy transpose_copy t_copy view_copy diagonal_copy
    atleast_1d atleast_2d atleast_3d""".split()
# Functions of several tensors, which they only arrange.
LISTS = "meshgrid block_diag cartesian_prod".split()
# Functions that put elements of another operand there, and which argument behind the input that is.
PUTS = {"scatter": 2, "scatter_add": 2, "index_copy": 2, "index_add": 2, "index_fill": 2, "masked_scatter": 1,
        "select_scatter": 0, "slice_scatter": 0, "diagonal_scatter": 0, "as_strided_scatter": 0, "index_put": 1,
        "put": 1}
_NAMES = {"src", "source", "value", "values"}


def _whole(re, im):
    return tuple(_whole(a, b) for a, b in zip(re, im)) if isinstance(re, (tuple, list)) else Tensor(re, im)


def _move(name):
    def function(input, *args, **kwargs):
        f = getattr(torch, name, None) or getattr(F, name, None)
        if f is None:
            return _whole(getattr(input._re, name)(*args, **kwargs), getattr(input._im, name)(*args, **kwargs))
        return _whole(f(input._re, *args, **kwargs), f(input._im, *args, **kwargs))
    function.__name__ = name
    return function


def _list(name):
    def function(*tensors, **kwargs):
        tensors = [_of(x) for x in (tensors[0] if isinstance(tensors[0], (list, tuple)) else tensors)]
        f = getattr(torch, name)
        return _whole(f(*[x._re for x in tensors], **kwargs), f(*[x._im for x in tensors], **kwargs))
    function.__name__ = name
    return function


def _put(name, at):
    def function(input, *args, **kwargs):
        if not isinstance(input, Tensor):
            raise RuntimeError(f"{name}() puts complex numbers into complex tensors alone, got {input.dtype}")

        def part(k):
            own = (input._re, input._im)[k]

            def of(x):
                if isinstance(x, torch.Tensor) and not isinstance(x, Tensor) and not x.is_floating_point():
                    x = x.to(own.dtype)
                x = _pair(x)[k]
                return 0.0 if x is None and not isinstance(args[at] if len(args) > at else None, torch.Tensor) else (
                    torch.zeros_like(_pair(args[at])[0]) if x is None else x)

            mine = [of(x) if i == at else x for i, x in enumerate(args)]
            return getattr(own, name)(*mine, **{key: of(x) if key in _NAMES else x for key, x in kwargs.items()})

        return Tensor(part(0), part(1))
    function.__name__ = name
    return function


def masked_fill(input, mask, value):
    return where(mask, value, input)


def nonzero(input, *, as_tuple=False):
    return torch.nonzero(ne(input, 0), as_tuple=as_tuple)


def argwhere(input):
    return torch.nonzero(ne(input, 0))


def logical_not(input):
    return _complex.eq(input, 0)


def logical_and(input, other):
    return torch.logical_and(_is_set(input), _is_set(other))


def logical_or(input, other):
    return torch.logical_or(_is_set(input), _is_set(other))


def logical_xor(input, other):
    return torch.logical_xor(_is_set(input), _is_set(other))


def _is_set(x):
    return ne(x, 0) if isinstance(x, Tensor) else x != 0


# --- element by element


def _times_i(x):
    return Tensor(-x._im, x._re)


def _over_i(x):
    return Tensor(x._im, -x._re)


def sinh(input):
    a, b = input._re, input._im
    return Tensor(a.sinh() * b.cos(), a.cosh() * b.sin())


def cosh(input):
    a, b = input._re, input._im
    return Tensor(a.cosh() * b.cos(), a.sinh() * b.sin())


def tanh(input):
    # Of both parts by the hyperbolic sine of the real one, which alone may be large.
    a, b = input._re, input._im
    t, s = a.tanh(), 1 / a.cosh().square()
    tan = b.tan()
    bottom = 1 + (t * tan).square()
    return Tensor(t * (1 + tan.square()) / bottom, tan * s / bottom)


def tan(input):
    return _over_i(tanh(_times_i(input)))


def log1p(input):
    return log(add(input, 1))


def log2(input):
    return mul(log(input), 1 / math.log(2))


def log10(input):
    return mul(log(input), 1 / math.log(10))


def expm1(input):
    a, b = input._re, input._im
    half = (b * 0.5).sin()
    return Tensor(a.expm1() * b.cos() - 2 * half * half, a.exp() * b.sin())


def exp2(input):
    return exp(mul(input, math.log(2)))


def sigmoid(input):
    return div(1.0, add(exp(-input), 1))


def silu(input):
    return mul(input, sigmoid(input))


def asinh(input):
    return _over_i(asin(_times_i(input)))


# Kahan, 1987, "Branch cuts for complex elementary functions".


def asin(input):
    p, q = sqrt(sub(1, input)), sqrt(add(input, 1))
    return Tensor(torch.atan2(input._re, mul(p, q)._re), torch.asinh(p._re * q._im - p._im * q._re))


def acos(input):
    p, q = sqrt(sub(1, input)), sqrt(add(input, 1))
    return Tensor(2 * torch.atan2(p._re, q._re), torch.asinh(q._re * p._im - q._im * p._re))


def acosh(input):
    p, q = sqrt(sub(input, 1)), sqrt(add(input, 1))
    return Tensor(torch.asinh(p._re * q._re + p._im * q._im), 2 * torch.atan2(p._im, q._re))


def atanh(input):
    a, b = input._re, input._im
    re = 0.25 * torch.log1p(4 * a / ((1 - a).square() + b.square()))
    return Tensor(re, 0.5 * torch.atan2(2 * b, (1 - a) * (1 + a) - b.square()))


def atan(input):
    return _over_i(atanh(_times_i(input)))


def sinc(input):
    x = mul(input, math.pi)
    zero = _complex.eq(input, 0)
    return where(zero, 1.0, div(_complex.sin(x), where(zero, 1.0, x)))


def nan_to_num(input, nan=None, posinf=None, neginf=None):
    return Tensor(torch.nan_to_num(input._re, nan, posinf, neginf), torch.nan_to_num(input._im, nan, posinf, neginf))


def float_power(input, exponent):
    wide = [_complex.to(x, _complex.complex128) if isinstance(x, Tensor) else x.double()
            if isinstance(x, torch.Tensor) else x for x in (input, exponent)]
    return _complex.pow(*wide)


def lerp(input, end, weight):
    return add(input, mul(sub(end, input), weight))


def addcdiv(input, tensor1, tensor2, *, value=1):
    return add(input, div(tensor1, tensor2) if value == 1 else mul(div(tensor1, tensor2), value))


def logaddexp(input, other):
    a, b = _of(input), _of(other)
    more = a._re >= b._re
    most, least = where(more, a, b), where(more, b, a)
    return add(most, log1p(exp(sub(least, most))))


# --- products


def _added(input, product, beta, alpha):
    product = product if alpha == 1 else mul(product, alpha)
    return product if beta == 0 else add(input if beta == 1 else mul(input, beta), product)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return _added(input, _complex.mm(mat1, mat2), beta, alpha)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    return _added(input, _complex.mv(mat, vec), beta, alpha)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return _added(input, _complex.bmm(batch1, batch2), beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return _added(input, _complex.bmm(batch1, batch2).sum(0), beta, alpha)


def addr(input, vec1, vec2, *, beta=1, alpha=1):
    return _added(input, _complex.outer(vec1, vec2), beta, alpha)


def linear(input, weight, bias=None):
    out = _complex.matmul(input, weight.mT)
    return out if bias is None else add(out, bias)


def ger(input, vec2):
    return _complex.outer(input, vec2)


def inner(input, other):
    if input.ndim == 0 or other.ndim == 0:
        return mul(input, other)
    return tensordot(input, other, ([-1], [-1]))


def _bilinear(name, f):
    """What is linear in both of its first operands, made of four real ones."""
    def function(a, b, *args, **kwargs):
        a, b = _of(a), _of(b)
        return Tensor(f(a._re, b._re, *args, **kwargs) - f(a._im, b._im, *args, **kwargs),
                      f(a._re, b._im, *args, **kwargs) + f(a._im, b._re, *args, **kwargs))
    function.__name__ = name
    return function


tensordot = _bilinear("tensordot", torch.tensordot)
kron = _bilinear("kron", torch.kron)
cross = _bilinear("cross", torch.cross)


def _convolution(name):
    product = _bilinear(name, getattr(F, name))

    def function(input, weight, bias=None, *args, **kwargs):
        if input.dtype is not weight.dtype or bias is not None and bias.dtype is not weight.dtype:
            raise RuntimeError(f"{name}() takes an input, weights and a bias of one dtype, got {input.dtype} and "
                               f"{weight.dtype}")
        out = product(input, weight, None, *args, **kwargs)
        if bias is None:
            return out
        return add(out, bias.reshape([-1] + [1] * (weight.ndim - 2)))
    function.__name__ = name
    return function


CONVOLUTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def vecdot(x, y, *, dim=-1):
    return mul(_complex.conj(x), y).sum(dim)


def matrix_power(input, n):
    if n < 0:
        return matrix_power(inv(input), -n)
    out = _complex.eye(input.shape[-1], dtype=input.dtype, device=input.device).expand(input.shape)
    for _ in range(n):
        out = _complex.matmul(out, input)
    return out


# --- along dimensions


def prod(input, dim=None, keepdim=False, *, dtype=None):
    x = input if dtype is None else _complex.to(input, dtype)
    if not isinstance(x, Tensor):
        return x.prod() if dim is None else x.prod(dim, keepdim)
    if dim is None:
        x, dim = x.reshape(-1), 0
    dim = torch._kiln.dimension(dim, x.ndim)
    if x.ndim == 0:
        return x.clone()
    if x.shape[dim] == 0:
        shape = [1 if d == dim else n for d, n in enumerate(x.shape)]
        x = _complex.ones(shape, dtype=x.dtype, device=x.device)
    while x.shape[dim] > 1:
        half = x.shape[dim] // 2
        rest = x.narrow(dim, 2 * half, x.shape[dim] - 2 * half)
        x = mul(x.narrow(dim, 0, half), x.narrow(dim, half, half))
        x = _complex.cat([x, rest], dim) if rest.shape[dim] else x
    return x if keepdim else x.squeeze(dim)


def cumprod(input, dim, *, dtype=None):
    x = input if dtype is None else _complex.to(input, dtype)
    if not isinstance(x, Tensor):
        return x.cumprod(dim)
    dim = torch._kiln.dimension(dim, x.ndim)
    step = 1
    while x.ndim and step < x.shape[dim]:
        n = x.shape[dim] - step
        x = _complex.cat([x.narrow(dim, 0, step), mul(x.narrow(dim, step, n), x.narrow(dim, 0, n))], dim)
        step *= 2
    return x.clone() if step == 1 else x


def var(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    by = (1 if unbiased else 0) if correction is None else correction
    return (input._re.var(dim, keepdim=keepdim, correction=by) + input._im.var(dim, keepdim=keepdim, correction=by))


def std(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    return var(input, dim, unbiased, keepdim, correction=correction).sqrt()


def var_mean(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    return (var(input, dim, unbiased, keepdim, correction=correction),
            _complex.mean(input, None if isinstance(dim, bool) else dim, keepdim))


def std_mean(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    return (std(input, dim, unbiased, keepdim, correction=correction),
            _complex.mean(input, None if isinstance(dim, bool) else dim, keepdim))


def logsumexp(input, dim, keepdim=False):
    most = input._re.amax(dim, True)
    most = torch.where(torch.isinf(most), 0.0, most)
    out = log(exp(sub(input, most)).sum(dim, True))
    out = add(out, most)
    return out if keepdim else out.squeeze(dim)


def diff(input, n=1, dim=-1, prepend=None, append=None):
    parts = [_of(x) for x in (prepend, input, append) if x is not None]
    x = _complex.cat(parts, dim) if len(parts) > 1 and n > 0 else input
    return Tensor(torch.diff(x._re, n, dim), torch.diff(x._im, n, dim))


def cumsum(input, dim, *, dtype=None):
    x = input if dtype is None else _complex.to(input, dtype)
    return Tensor(x._re.cumsum(dim), x._im.cumsum(dim)) if isinstance(x, Tensor) else x.cumsum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return torch.norm(abs(_of(add(sub(x1, x2), eps))), p, -1, keepdim)


def dist(input, other, p=2):
    return torch.norm(abs(_of(sub(input, other))), p)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    away = abs(_of(sub(input, target)))
    return away if reduction == "none" else away.mean() if reduction == "mean" else away.sum()


def cov(input, *, correction=1, fweights=None, aweights=None):
    if fweights is not None or aweights is not None:
        raise NotImplementedError("cov() of complex tensors has no weights")
    x = input if input.ndim == 2 else input.reshape(1, -1)
    away = sub(x, x.mean(1, True))
    out = div(_complex.matmul(away, away.mH), max(x.shape[1] - correction, 0))
    return out.reshape(()) if out.numel() == 1 else out


# --- small matrices, by real ones of twice the size


def _real_form(A):
    """[[re, -im], [im, re]]: its products are those of A."""
    return torch.cat([torch.cat([A._re, -A._im], -1), torch.cat([A._im, A._re], -1)], -2)


def solve(A, B, *, left=True):
    if not left:
        return solve(A.mT, B.mT).mT
    A, B = _of(A), _of(B)
    vector = B.ndim == 1 or A.ndim - 1 == B.ndim and B.shape == A.shape[:-1]
    b = B.unsqueeze(-1) if vector else B
    n = A.shape[-1]
    X = torch.linalg._solved(_real_form(A), torch.cat([b._re, b._im], -2), True, True)
    X = Tensor(X[..., :n, :], X[..., n:, :])
    return X.squeeze(-1) if vector else X


def _square(A, what):
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"{what}() of {tuple(A.shape)}: it takes square matrices")
    return A


def _blocks(X, rows, columns):
    return Tensor(X[..., :rows, :columns], X[..., rows:, :columns])


def inv(A):
    n = _square(A, "inv").shape[-1]
    return _blocks(torch.linalg.inv(_real_form(A)), n, n)


def inverse(input):
    return inv(input)


def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    m, n = A.shape[-2:]
    rtol = rcond if rtol is None else rtol
    rtol = max(m, n) * torch.finfo(A._re.dtype).eps if rtol is None and atol is None else rtol
    return _blocks(torch.linalg.pinv(_real_form(A), atol=atol, rtol=rtol), n, m)


def pinverse(input, rcond=1e-15):
    return pinv(input, rcond)


def matrix_exp(input):
    n = _square(input, "matrix_exp").shape[-1]
    return _blocks(torch.linalg.matrix_exp(_real_form(input)), n, n)


def svdvals(A):
    return torch.linalg.svdvals(_real_form(A))[..., ::2]  # each of them is there twice


def eigvalsh(A, UPLO="L"):
    A = _square(A, "eigvalsh") if UPLO == "L" else A.mH
    low = A.tril(-1)
    own = _complex.diag_embed(_of(torch.diagonal(A._re, 0, -2, -1)))
    return torch.linalg.eigvalsh(_real_form(add(add(low, low.mH), own)))[..., ::2]


def cholesky(A, upper=False):
    """By the real matrix with [[re, -im], [im, re]] in the place of each element: its factor has such elements too."""
    n = _square(A, "cholesky").shape[-1]
    rows = torch.stack([torch.stack([A._re, -A._im], -1), torch.stack([A._im, A._re], -1)], -3)
    L = torch.linalg.cholesky(rows.reshape(list(A.shape[:-2]) + [2 * n, 2 * n]))
    L = L.reshape(list(A.shape[:-2]) + [n, 2, n, 2])
    L = Tensor(L[..., 0, :, 0], L[..., 1, :, 0])
    return L.mH if upper else L


def _eliminated(A):
    """The diagonal of U in A = P L U, and the sign of P."""
    n, sign = _square(A, "det").shape[-1], torch.ones(A.shape[:-2], dtype=A._re.dtype, device=A.device)
    diagonal = []
    for k in range(n):
        m = n - k
        best = abs(A[..., 0]).argmax(-1)
        order = torch.arange(m, device=A.device).expand(list(A.shape[:-2]) + [m])
        order = torch.where(order == best.unsqueeze(-1), 0, order)
        order = torch.cat([best.unsqueeze(-1), order[..., 1:]], -1)
        sign = torch.where(best == 0, sign, -sign)
        A = A.gather(-2, order.unsqueeze(-1).expand(list(order.shape) + [m]))
        pivot = A[..., 0, 0]
        diagonal.append(pivot)
        by = where(_complex.eq(pivot, 0), 1.0, pivot)
        factors = div(A[..., 1:, 0], by.unsqueeze(-1))
        A = sub(A[..., 1:, 1:], mul(factors.unsqueeze(-1), A[..., :1, 1:]))
    empty = _complex.ones(list(sign.shape) + [0], dtype=A.dtype, device=A.device)
    return _complex.stack(diagonal, -1) if diagonal else empty, sign


def det(A):
    diagonal, sign = _eliminated(A)
    return mul(prod(diagonal, -1), sign)


def slogdet(A):
    diagonal, sign = _eliminated(A)
    turn = mul(prod(_complex.sgn(diagonal), -1), sign)
    return torch.return_types.linalg_slogdet((turn, abs(diagonal).log().sum(-1)))


def logdet(input):
    turn, size = slogdet(input)
    return Tensor(size, angle(turn))


# --- in place

IN_PLACE = """acos acosh addbmm addcdiv addcmul addmm addmv addr asin asinh atan atanh baddbmm conj_physical cos cosh
    cumprod cumsum eq exp exp2 expm1 index_add index_copy index_fill index_put lerp log log10 log1p log2 logical_and
    logical_not logical_or logical_xor masked_fill masked_scatter nan_to_num ne neg pow put reciprocal rsqrt scatter
    scatter_add sgn sigmoid sin sinc sinh sqrt square tan tanh tril triu""".split()


def _stored(name, function):
    def stored(input, *args, **kwargs):
        return copy_(_target(input, name), function(input, *args, **kwargs))
    stored.__name__ = name + "_"
    return stored


def _target(input, name):
    if not isinstance(input, Tensor):
        raise RuntimeError(f"{name}_(): complex numbers are stored in complex tensors alone, got {input.dtype}")
    return input


def squeeze_(input, *dim):
    return _become(input, input.squeeze(*dim))


def unsqueeze_(input, dim):
    return _become(input, input.unsqueeze(dim))


def transpose_(input, dim0, dim1):
    return _become(input, input.transpose(dim0, dim1))


def t_(input):
    return _become(input, input.t())


def _become(input, view):
    input._re, input._im, input._parts = view._re, view._im, None
    return input


def true_divide_(input, other):
    return copy_(_target(input, "true_divide"), div(input, other))


def float_power_(input, exponent):
    if input.dtype is not _complex.complex128:
        raise RuntimeError(f"float_power_() stores complex128, got {input.dtype}")
    return copy_(input, float_power(input, exponent))


# --- as numbers of another kind: the imaginary part is lost, as in torch

REAL = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32, "double": torch.float64,
        "byte": torch.uint8, "char": torch.int8, "short": torch.int16, "int": torch.int32, "long": torch.int64}


def _converted(name, dtype):
    def function(input, memory_format=None):
        return input._re.to(dtype)
    function.__name__ = name
    return function


def _as_bool(input, memory_format=None):
    return ne(input, 0)


# --- made of numbers


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    return _complex.tensor(s, dtype=dtype, device=device)


def new_full(input, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    dtype = dtype or input.dtype
    if not isinstance(dtype, _complex._ComplexType):
        raise RuntimeError(f"new_full() of {dtype} takes a real number")
    return _complex.full(size, fill_value, dtype=dtype, device=device or input.device)


def linspace(start, end, steps, *, dtype=None, device=None):
    start, end = _number(start), _number(end)
    real = torch.get_default_dtype() if dtype is None else dtype.real
    return Tensor(torch.linspace(start.real, end.real, steps, dtype=real, device=device),
                  torch.linspace(start.imag, end.imag, steps, dtype=real, device=device))


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None):
    return exp(mul(linspace(start, end, steps, dtype=dtype, device=device), math.log(base)))


def _number(x):
    x = x.item() if isinstance(x, torch.Tensor) else x
    return x if isinstance(x, _Number) else _Number(x, 0.0)


def fill(input, value):
    return _complex.full_like(input, value) if isinstance(input, Tensor) else torch.full_like(input, value)


def constant_pad_nd(input, pad, value=0):
    return _complex.pad(input, pad, value=value)


def can_cast(from_, to):
    return isinstance(to, _complex._ComplexType)


PUBLIC = """masked_fill nonzero argwhere logical_not logical_and logical_or logical_xor sinh cosh tanh tan log1p log2
    log10 expm1 exp2 sigmoid silu asinh asin acos acosh atanh atan sinc nan_to_num float_power lerp addcdiv logaddexp
    addmm addmv baddbmm addbmm addr linear ger inner tensordot kron cross vecdot matrix_power prod cumprod var std
    var_mean std_mean logsumexp diff cumsum pairwise_distance dist l1_loss cov solve inv inverse pinv pinverse
    matrix_exp svdvals eigvalsh cholesky det slogdet logdet true_divide_ float_power_ fill constant_pad_nd squeeze_
    unsqueeze_ transpose_ t_ scalar_tensor new_full linspace logspace can_cast""".split()
# Of these, functions of torch alone.
NO_METHODS = """silu linear tensordot cross var_mean std_mean l1_loss solve inv scalar_tensor linspace logspace
    can_cast pinv svdvals eigvalsh pairwise_distance fill constant_pad_nd""".split()


def names():
    """What torch._complex has of all of these."""
    out = {name: globals()[name] for name in PUBLIC}
    for name in MOVES:
        out[name] = _move(name)
    for name in LISTS:
        out[name] = _list(name)
    for name, at in PUTS.items():
        out[name] = _put(name, at)
    for name, dtype in REAL.items():  # methods alone, whose names are Python's
        setattr(Tensor, name, _converted(name, dtype))
    Tensor.bool = _as_bool
    for name in CONVOLUTIONS:
        out[name] = _convolution(name)
    for name in IN_PLACE:
        out[name + "_"] = _stored(name, out.get(name) or getattr(_complex, name))
    for name, function in list(out.items()):
        if name not in NO_METHODS and name not in LISTS and name not in CONVOLUTIONS:
            setattr(Tensor, name, function)
    return out
