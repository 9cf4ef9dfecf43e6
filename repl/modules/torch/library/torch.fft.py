"""Fourier transforms with PyTorch's names; torch._fft computes them."""
import math
import torch
from torch import _complex, _fft, _kiln

_dim = _kiln.dimension
_Complex = _complex.Tensor


def _scale(norm, n, back):
    if norm not in (None, "backward", "ortho", "forward"):
        raise RuntimeError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "forward") != back else 1.0


def _floats(x, what):
    """Of a real or complex tensor: itself, with integers as floats."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{what}() takes a tensor, got '{type(x).__name__}'")
    if isinstance(x, _Complex):
        return x
    if x.dtype in (torch.float16, torch.bfloat16):
        raise RuntimeError(f"{what}() does not apply to tensors of {x.dtype}")
    return x if x.is_floating_point() else x.float()


def _length(n, size, what):
    n = size if n is None else n
    if n < 1:
        raise RuntimeError(f"{what}() of {n} elements: it takes one or more")
    return n


def _fitted(x, dim, n):
    """Cut or filled up with zeros, as inputs are."""
    if isinstance(x, _Complex):
        return _Complex(_fitted(x.real, dim, n), _fitted(x.imag, dim, n))
    if n <= x.shape[dim]:
        return x.narrow(dim, 0, n)
    return torch.nn.functional.pad(x, (0, 0) * (x.ndim - 1 - dim) + (0, n - x.shape[dim]))


def _linear(compute, x, adjoint):
    """compute(x); where x records, its gradient is adjoint() of the result's, of real and imaginary part apart."""
    parts = (x.real, x.imag) if isinstance(x, _Complex) else (x,)
    if not _kiln.records(*parts):
        return compute(x)
    still = [part.detach() for part in parts]
    out = compute(_Complex(*still) if len(parts) == 2 else still[0])

    def with_rule(value, as_result):
        def rule(gradient, *operands):
            found = adjoint(as_result(gradient))
            if not isinstance(found, _Complex):
                return (found, torch.zeros_like(found))[:len(parts)]
            return (found.real, found.imag)[:len(parts)]

        return _kiln.with_gradient(value, parts, rule)

    if not isinstance(out, _Complex):
        return with_rule(out, lambda g: g)
    return _Complex(with_rule(out.real, lambda g: _Complex(g, torch.zeros_like(g))),
                    with_rule(out.imag, lambda g: _Complex(torch.zeros_like(g), g)))


def _along(x, dim, n, back, scale):
    """A complex result."""
    def compute(x):
        if isinstance(x, _Complex):
            return _complex.view_as_complex(_fft._transformed(_complex.view_as_real(x), dim, n, 0, False, back, scale))
        return _complex.view_as_complex(_fft._transformed(x, dim, n, 1, False, back, scale))

    return _linear(compute, x, lambda g: _fitted(_along(g, dim, n, not back, scale), dim, x.shape[dim]))


def _half(x, dim, n, scale):
    def compute(x):
        parts = _fft._half(x, dim, n, scale)
        if parts:
            return _Complex(*parts)
        return _complex.view_as_complex(_fft._transformed(x, dim, n, 1, False, False, scale, n // 2 + 1))

    return _linear(compute, x, lambda g: _fitted(_along(_fitted(g, dim, n), dim, n, True, scale), dim, x.shape[dim]))


def _whole(x, dim, n, back, scale):
    """Real numbers, from half of their spectrum."""
    if not isinstance(x, _Complex):
        x = _complex.Tensor(x, torch.zeros_like(x))

    def adjoint(g):
        # Each but the first and the middle one of an even number stands for two.
        place = torch.arange(n // 2 + 1, device=g.device)
        twice = torch.where((place == 0) | (2 * place == n), 1.0, 2.0).to(g.dtype)
        twice = twice.reshape((-1,) + (1,) * (g.ndim - 1 - dim))
        made = _half(g, dim, n, scale)
        imag = made.imag if back else -made.imag
        return _fitted(_Complex(made.real * twice, imag * twice), dim, x.shape[dim])

    return _linear(lambda x: _whole_of(x, dim, n, back, scale), x, adjoint)


def _whole_of(x, dim, n, back, scale):
    have = x.shape[dim]
    if have < n // 2 + 1:
        x = _complex.pad(x, (0, 0) * (x.ndim - 1 - dim) + (0, n // 2 + 1 - have))
    return _fft._transformed(_complex.view_as_real(x), dim, n, 2, True, back, scale)


def _one(x, n, dim, norm, back, what):
    x = _floats(x, what)
    dim = _dim(dim, _ranked(x, what))
    n = _length(n, x.shape[dim], what)
    return _along(x, dim, n, back, _scale(norm, n, back))


def _ranked(x, what):
    if x.ndim == 0:
        raise RuntimeError(f"{what}() takes a tensor of one dimension or more")
    return x.ndim


def fft(input, n=None, dim=-1, norm=None, *, out=None):
    return _put(_one(input, n, dim, norm, False, "fft"), out)


def ifft(input, n=None, dim=-1, norm=None, *, out=None):
    return _put(_one(input, n, dim, norm, True, "ifft"), out)


def rfft(input, n=None, dim=-1, norm=None, *, out=None):
    return _put(_real(input, n, dim, norm, False, "rfft"), out)


def _real(x, n, dim, norm, back, what):
    x = _floats(x, what)
    if isinstance(x, _Complex):
        raise RuntimeError(f"{what}() takes a real tensor, got {x.dtype}")
    dim = _dim(dim, _ranked(x, what))
    n = _length(n, x.shape[dim], what)
    return _half(x, dim, n, _scale(norm, n, back))


def irfft(input, n=None, dim=-1, norm=None, *, out=None):
    x = _floats(input, "irfft")
    dim = _dim(dim, _ranked(x, "irfft"))
    n = _length(n, 2 * (x.shape[dim] - 1), "irfft")
    return _put(_whole(x, dim, n, True, _scale(norm, n, True)), out)


def hfft(input, n=None, dim=-1, norm=None, *, out=None):
    x = _floats(input, "hfft")
    dim = _dim(dim, _ranked(x, "hfft"))
    n = _length(n, 2 * (x.shape[dim] - 1), "hfft")
    return _put(_whole(x.conj(), dim, n, True, _scale(norm, n, False)), out)


def ihfft(input, n=None, dim=-1, norm=None, *, out=None):
    return _put(_real(input, n, dim, norm, True, "ihfft").conj(), out)


# --- along several dimensions


def _several(x, s, dim, what):
    """Dimensions, and how many elements of each are transformed (None: as many as there are)."""
    if isinstance(dim, int):
        dim = (dim,)
    if isinstance(s, int):
        s = (s,)
    if dim is None:
        dims = list(range(x.ndim)) if s is None else list(range(x.ndim - len(s), x.ndim))
        if s is not None and len(s) > x.ndim:
            raise RuntimeError(f"{what}() of {x.ndim} dimensions along {len(s)}")
    else:
        dims = [_dim(d, _ranked(x, what)) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"{what}() takes each dimension once")
        if s is not None and len(s) != len(dims):
            raise RuntimeError(f"{what}() along {len(dims)} dimensions takes as many lengths, got {len(s)}")
    return dims, [None] * len(dims) if s is None else [None if n == -1 else n for n in s]


def _all(x, s, dim, norm, back, what):
    x = _floats(x, what)
    dims, s = _several(x, s, dim, what)
    s = [_length(n, x.shape[d], what) for d, n in zip(dims, s)]
    scale = _scale(norm, _fft._count(s), back)
    if not dims:
        return x if isinstance(x, _Complex) else x.to(torch.complex128 if x.dtype is torch.float64 else torch.complex64)
    for k in reversed(range(len(dims))):
        x = _along(x, dims[k], s[k], back, scale if k == 0 else 1.0)
    return x


def fftn(input, s=None, dim=None, norm=None, *, out=None):
    return _put(_all(input, s, dim, norm, False, "fftn"), out)


def ifftn(input, s=None, dim=None, norm=None, *, out=None):
    return _put(_all(input, s, dim, norm, True, "ifftn"), out)


def fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    return fftn(input, s, dim, norm, out=out)


def ifft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    return ifftn(input, s, dim, norm, out=out)


def rfftn(input, s=None, dim=None, norm=None, *, out=None):
    x = _floats(input, "rfftn")
    if isinstance(x, _Complex):
        raise RuntimeError(f"rfftn() takes a real tensor, got {x.dtype}")
    dims, s = _several(x, s, dim, "rfftn")
    if not dims:
        raise RuntimeError("rfftn() takes one dimension or more")
    s = [_length(n, x.shape[d], "rfftn") for d, n in zip(dims, s)]
    x = _half(x, dims[-1], s[-1], _scale(norm, _fft._count(s), False))
    for k in reversed(range(len(dims) - 1)):
        x = _along(x, dims[k], s[k], False, 1.0)
    return _put(x, out)


def irfftn(input, s=None, dim=None, norm=None, *, out=None):
    x = _floats(input, "irfftn")
    dims, s = _several(x, s, dim, "irfftn")
    if not dims:
        raise RuntimeError("irfftn() takes one dimension or more")
    sizes = [x.shape[d] for d in dims[:-1]] + [2 * (x.shape[dims[-1]] - 1)]
    s = [_length(n, size, "irfftn") for n, size in zip(s, sizes)]
    for k in range(len(dims) - 1):
        x = _along(x, dims[k], s[k], True, 1.0)
    return _put(_whole(x, dims[-1], s[-1], True, _scale(norm, _fft._count(s), True)), out)


def rfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    return rfftn(input, s, dim, norm, out=out)


def irfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    return irfftn(input, s, dim, norm, out=out)


_OTHER_WAY = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _turned(norm):
    """A transform of conjugates is the conjugate of the one that goes the other way."""
    _scale(norm, 1, False)
    return _OTHER_WAY[norm]


def hfftn(input, s=None, dim=None, norm=None, *, out=None):
    return irfftn(_floats(input, "hfftn").conj(), s, dim, _turned(norm), out=out)


def ihfftn(input, s=None, dim=None, norm=None, *, out=None):
    return _put(rfftn(input, s, dim, _turned(norm)).conj(), out)


def hfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    return ihfftn(input, s, dim, norm, out=out)


def _put(x, out):
    return x if out is None else _complex._put_out(x, out, "a transform")


# --- frequencies


def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    k = torch.arange(n, device=device)
    made = (torch.where(k < (n + 1) // 2, k, k - n) * (1.0 / (n * d))).to(dtype or torch.get_default_dtype())
    return made.requires_grad_(requires_grad)


def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    made = (torch.arange(n // 2 + 1, device=device) * (1.0 / (n * d))).to(dtype or torch.get_default_dtype())
    return made.requires_grad_(requires_grad)


def _shifted(x, dim, by):
    dims = list(range(x.ndim)) if dim is None else [_dim(d, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    return torch.roll(x, [by(x.shape[d]) for d in dims], dims) if dims else x


def fftshift(input, dim=None):
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input, dim=None):
    return _shifted(input, dim, lambda n: (n + 1) // 2)
