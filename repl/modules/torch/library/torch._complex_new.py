"""New complex tensors."""
import math
import torch
from torch import _complex

complex64, complex128 = _complex.complex64, _complex.complex128
Tensor, _ComplexType, _complex_of, _pair = _complex.Tensor, _complex._ComplexType, _complex._complex_of, _complex._pair


def _filled(make, args, dtype, kwargs):
    re = make(*args, dtype=dtype.real, **kwargs)
    return Tensor(re, torch.zeros_like(re))


def zeros(*size, dtype=None, **kwargs):
    return _filled(torch.zeros, size, dtype, kwargs)


def ones(*size, dtype=None, **kwargs):
    return _filled(torch.ones, size, dtype, kwargs)


def empty(*size, dtype=None, **kwargs):
    return _filled(torch.zeros, size, dtype, kwargs)


def eye(*size, dtype=None, **kwargs):
    return _filled(torch.eye, size, dtype, kwargs)


def full(size, fill_value, *, dtype=None, **kwargs):
    re, im = _pair(fill_value)
    if dtype is not None and not isinstance(dtype, _ComplexType):
        raise RuntimeError(f"full() of {dtype} takes a real number")
    real = torch.get_default_dtype() if dtype is None else dtype.real
    return Tensor(torch.full(size, re, dtype=real, **kwargs), torch.full(size, im or 0, dtype=real, **kwargs))


def rand(*size, dtype=None, **kwargs):
    return Tensor(torch.rand(*size, dtype=dtype.real, **kwargs), torch.rand(*size, dtype=dtype.real, **kwargs))


def randn(*size, dtype=None, **kwargs):
    """Of variance 1, a half for each part."""
    return Tensor(torch.randn(*size, dtype=dtype.real, **kwargs) * math.sqrt(0.5),
                  torch.randn(*size, dtype=dtype.real, **kwargs) * math.sqrt(0.5))


def _like(make, input, dtype, kwargs):
    dtype = dtype or input.dtype
    device = kwargs.get("device") or input.device
    if isinstance(dtype, _ComplexType):
        return make(input.shape, dtype=dtype, device=device)
    return getattr(torch, make.__name__)(input.shape, dtype=dtype, device=device)


def zeros_like(input, *, dtype=None, **kwargs):
    return _like(zeros, input, dtype, kwargs)


def ones_like(input, *, dtype=None, **kwargs):
    return _like(ones, input, dtype, kwargs)


def empty_like(input, *, dtype=None, **kwargs):
    return _like(empty, input, dtype, kwargs)


def rand_like(input, *, dtype=None, **kwargs):
    return _like(rand, input, dtype, kwargs)


def randn_like(input, *, dtype=None, **kwargs):
    return _like(randn, input, dtype, kwargs)


def full_like(input, fill_value, *, dtype=None, **kwargs):
    return full(input.shape, fill_value, dtype=dtype or _complex_of(input.dtype), device=input.device)


def new_zeros(input, *size, dtype=None, device=None):
    return _new(torch.zeros, input, size, dtype, device)


def new_ones(input, *size, dtype=None, device=None):
    return _new(torch.ones, input, size, dtype, device)


def new_empty(input, *size, dtype=None, device=None):
    return _new(torch.empty, input, size, dtype, device)


def _new(make, input, size, dtype, device):
    return make(*size, dtype=dtype or input.dtype, device=device or input.device)


def tensor(data, *, dtype=None, device=None, requires_grad=False):
    if dtype is not None and not isinstance(dtype, _ComplexType):
        raise RuntimeError(f"tensor() of {dtype} takes real numbers")
    real = torch.get_default_dtype() if dtype is None else dtype.real
    return Tensor(*[torch.tensor(_numbers(data, part), dtype=real, device=device) for part in (0, 1)])


def _numbers(data, part):
    if isinstance(data, (list, tuple)):
        return [_numbers(x, part) for x in data]
    x = data.item() if isinstance(data, torch.Tensor) else data
    return _pair(x)[part] or 0


def as_tensor(data, dtype=None, device=None):
    if not isinstance(data, torch.Tensor):
        return tensor(data, dtype=dtype, device=device)
    return _complex.to(data, dtype=dtype, device=device)


def promote_types(type1, type2):
    both = [x.real if isinstance(x, _ComplexType) else x for x in (type1, type2)]
    wide = torch.promote_types(*[torch.get_default_dtype() if not x.is_floating_point else x for x in both])
    return complex128 if wide is torch.float64 else complex64


def result_type(tensor1, tensor2):
    both = [x.dtype if isinstance(x, torch.Tensor) else complex64 if isinstance(x, _complex._Number) else
            torch.get_default_dtype()
            for x in (tensor1, tensor2)]
    return promote_types(*both)


def is_tensor(obj):
    return isinstance(obj, torch.Tensor)


def assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, check_dtype=True):
    if equal_nan or (rtol is None) != (atol is None):
        raise NotImplementedError("assert_close() of complex tensors takes rtol and atol, or none, and no "
                                  "equal_nan")
    a, b = _complex._of(actual), _complex._of(expected)
    if a.shape != b.shape or (check_dtype and actual.dtype is not expected.dtype):
        raise AssertionError(f"{actual.dtype} {tuple(a.shape)} and {expected.dtype} {tuple(b.shape)}")
    narrow = complex64 in (a.dtype, b.dtype)
    rtol, atol = (rtol, atol) if rtol is not None else (1.3e-6, 1e-5) if narrow else (1e-7, 1e-7)
    if not _complex.allclose(a, b, rtol, atol):
        most = float((a - b).abs().max())
        raise AssertionError(f"complex tensors differ by {most:g} at most, beyond rtol={rtol} and atol={atol}")
