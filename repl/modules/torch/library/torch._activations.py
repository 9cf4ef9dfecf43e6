"""Activations of torch.nn.functional: each stays one expression."""
import torch
from torch import _kiln, _methods, _tensor

lazily = _kiln.lazily
_wide = _tensor._wide


def _placed(input, result, inplace):
    """The result, or the input that has taken its elements."""
    return _methods._into(input, result) if inplace else result


def _wide_floats(input, what):
    return _wide(_tensor._of_floats(input, what))


@lazily
def softplus(input, beta=1.0, threshold=20.0):
    x = _wide_floats(input, "softplus")
    y = x if beta == 1 else x * beta
    # Beyond the threshold log(1 + exp(x)) is x to the last digit of a float32. exp() would overflow later on, and the
    # gradient of what is not taken would be infinity times zero: it is computed of zeros there.
    beyond = y > threshold
    soft = torch.where(beyond, 0, y).exp().log1p()
    return torch.where(beyond, x, soft if beta == 1 else soft / beta).to(input.dtype)


@lazily
def logsigmoid(input):
    x = _wide_floats(input, "logsigmoid")
    # By the magnitude, so that exp() never overflows on either side.
    return (torch.minimum(x, torch.zeros((), dtype=x.dtype, device=x.device)) - (-x.abs()).exp().log1p()).to(input.dtype)


@lazily
def leaky_relu(input, negative_slope=0.01, inplace=False):
    _tensor._of_floats(input, "leaky_relu")
    return _placed(input, torch.where(input > 0, input, input * negative_slope), inplace)


@lazily
def prelu(input, weight):
    n = input.shape[1] if input.ndim > 1 else 1
    if not input.is_floating_point():
        raise RuntimeError(f"prelu() does not apply to tensors of {input.dtype}")
    if input.dtype != weight.dtype or weight.ndim > 1 or weight.numel() not in (1, n):
        raise RuntimeError(f"prelu() of {n} channels of {input.dtype} takes one weight or one for each, of that dtype")
    w = weight.reshape(()) if weight.numel() == 1 else weight.reshape([-1] + [1] * (input.ndim - 2))
    return torch.where(input > 0, input, input * w)


def _exponential_below_0(x, alpha, slope=1.0):
    """x above 0, alpha (exp(slope x) - 1) below: of zeros above, where exp() would overflow, and its gradient with it."""
    below = torch.where(x > 0, 0, x)
    return torch.where(x > 0, x, (below if slope == 1 else below * slope).expm1() * alpha)


@lazily
def elu(input, alpha=1.0, inplace=False):
    x = _wide_floats(input, "elu")
    return _placed(input, _exponential_below_0(x, alpha).to(input.dtype), inplace)


@lazily
def selu(input, inplace=False):
    x = _wide_floats(input, "selu")
    # The two constants for which unit variance is a fixed point, from the paper on self-normalizing networks.
    y = _exponential_below_0(x, 1.6732632423543772) * 1.0507009873554805
    return _placed(input, y.to(input.dtype), inplace)


@lazily
def celu(input, alpha=1.0, inplace=False):
    x = _wide_floats(input, "celu")
    return _placed(input, _exponential_below_0(x, alpha, 1 / alpha).to(input.dtype), inplace)


def relu6(input, inplace=False):
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    if input.dtype is torch.bool:
        raise NotImplementedError("hardtanh() does not apply to tensors of bool")
    if min_val > max_val:
        raise ValueError(f"hardtanh() from {min_val} to {max_val}")
    if not input.is_floating_point():
        min_val, max_val = int(min_val), int(max_val)
    if input.dtype is torch.uint8 and (min_val < 0 or max_val < 0):
        raise RuntimeError(f"hardtanh() of uint8 from {min_val} to {max_val}")
    return _placed(input, input.clamp(min_val, max_val), inplace)


@lazily
def hardsigmoid(input, inplace=False):
    return _placed(input, ((_wide_floats(input, "hardsigmoid") + 3).clamp(0, 6) / 6).to(input.dtype), inplace)


@lazily
def hardswish(input, inplace=False):
    x = _wide_floats(input, "hardswish")
    return _placed(input, (x * (x + 3).clamp(0, 6) / 6).to(input.dtype), inplace)


@lazily
def mish(input, inplace=False):
    x = _wide_floats(input, "mish")
    # tanh(log(1 + e)) = ((1 + e)^2 - 1) / ((1 + e)^2 + 1), with digits that 1 + e has not; beyond 20 it is 1.
    e = x.clamp(max=20).exp()
    both = e * (e + 2)
    return _placed(input, (x * (both / (both + 2))).to(input.dtype), inplace)


@lazily
def softsign(input):
    return input / (input.abs() + 1)


@lazily
def tanhshrink(input):
    return input - input.tanh()


@lazily
def threshold(input, threshold, value, inplace=False):
    if input.dtype is torch.bool:
        raise NotImplementedError("threshold() does not apply to tensors of bool")
    return _placed(input, torch.where(input <= threshold, value, input).to(input.dtype), inplace)


@lazily
def hardshrink(input, lambd=0.5):
    _tensor._of_floats(input, "hardshrink")
    return torch.where((input >= -lambd) & (input <= lambd), 0.0, input).to(input.dtype)


@lazily
def softshrink(input, lambd=0.5):
    x = _wide_floats(input, "softshrink")
    if lambd < 0:
        raise RuntimeError(f"softshrink() by {lambd}: it is 0 or more")
    return torch.where(x > lambd, x - lambd, torch.where(x < -lambd, x + lambd, x * 0)).to(input.dtype)


@lazily
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return torch.nn.functional.softmax(-input, dim, dtype=dtype)


@lazily
def glu(input, dim=-1):
    if input.ndim == 0 or input.shape[dim] % 2:
        raise RuntimeError("glu() halves a dimension of even size")
    a, b = input.chunk(2, dim)
    return (_wide_floats(a, "glu") * _wide(b).sigmoid()).to(input.dtype)
