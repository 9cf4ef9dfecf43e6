"""torch.nn.init: fills tensors in place, without being recorded."""
import math

import torch


def _fans(tensor):
    if tensor.ndim < 2:
        raise ValueError("the fans of a tensor need two dimensions")
    window = 1
    for n in tensor.shape[2:]:
        window *= n
    return tensor.shape[1] * window, tensor.shape[0] * window


def calculate_gain(nonlinearity, param=None):
    gains = {"linear": 1.0, "conv2d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in gains:
        raise ValueError(f"there is no gain for {nonlinearity!r}")
    return gains[nonlinearity]


def _uniform(tensor, a, b, generator):
    if generator is None:
        return tensor.uniform_(a, b)
    return tensor.copy_(torch.rand(tensor.shape, device=tensor.device, generator=generator) * (b - a) + a)


def _normal(tensor, mean, std, generator):
    if generator is None:
        return tensor.normal_(mean, std)
    return tensor.copy_(torch.randn(tensor.shape, device=tensor.device, generator=generator) * std + mean)


@torch.no_grad()
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    return _uniform(tensor, a, b, generator)


@torch.no_grad()
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    return _normal(tensor, mean, std, generator)


@torch.no_grad()
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """The normal numbers between a and b, by the inverse of their distribution."""
    low, high = [0.5 * (1 + math.erf((x - mean) / std / math.sqrt(2.0))) for x in (a, b)]
    u = torch.rand(tensor.shape, device=tensor.device, generator=generator).double() * (high - low) + low
    return tensor.copy_((torch.erfinv(2 * u - 1) * (std * math.sqrt(2.0)) + mean).clamp(a, b))


@torch.no_grad()
def constant_(tensor, val):
    return tensor.fill_(val)


@torch.no_grad()
def ones_(tensor):
    return tensor.fill_(1.0)


@torch.no_grad()
def zeros_(tensor):
    return tensor.zero_()


@torch.no_grad()
def eye_(tensor):
    if tensor.ndim != 2:
        raise ValueError(f"eye_() takes a matrix, got a tensor of {tensor.ndim} dimensions")
    return tensor.copy_(torch.eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype, device=tensor.device))


@torch.no_grad()
def xavier_uniform_(tensor, gain=1.0, generator=None):
    fan_in, fan_out = _fans(tensor)
    a = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return _uniform(tensor, -a, a, generator)


@torch.no_grad()
def xavier_normal_(tensor, gain=1.0, generator=None):
    fan_in, fan_out = _fans(tensor)
    return _normal(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


@torch.no_grad()
def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[0 if mode == "fan_in" else 1])
    return _uniform(tensor, -bound, bound, generator)


@torch.no_grad()
def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[0 if mode == "fan_in" else 1])
    return _normal(tensor, 0.0, std, generator)


@torch.no_grad()
def orthogonal_(tensor, gain=1, generator=None):
    """Rows, or columns where there are fewer, are orthonormal."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    rows = tensor.shape[0]
    drawn = torch.randn(rows, tensor.numel() // rows, device=tensor.device, generator=generator)
    wide = rows < drawn.shape[1]
    q, r = torch.linalg.qr(drawn.T if wide else drawn)
    q = q * torch.diagonal(r).sign()  # so that all are as likely
    return tensor.copy_((q.T if wide else q).reshape(tensor.shape)).mul_(gain)


@torch.no_grad()
def dirac_(tensor, groups=1):
    """Filters that give their input channel, as far as there are channels."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    filters = tensor.shape[0]
    if filters % groups:
        raise ValueError("dim 0 must be divisible by groups")
    middle = tuple(n // 2 for n in tensor.shape[2:])
    tensor.zero_()
    each = filters // groups
    for group in range(groups):
        for d in range(min(each, tensor.shape[1])):
            tensor[(group * each + d, d) + middle] = 1
    return tensor


@torch.no_grad()
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal numbers, of which a part of each column is 0."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    _normal(tensor, 0.0, std, generator)
    # The rank of each row in a random order of its column.
    order = torch.rand((rows, columns), device=tensor.device, generator=generator).argsort(0).argsort(0)
    return tensor.masked_fill_(order < zeros, 0)


# The names of before PyTorch 0.4
uniform, normal, constant, eye, dirac, sparse = uniform_, normal_, constant_, eye_, dirac_, sparse_
xavier_uniform, xavier_normal, orthogonal = xavier_uniform_, xavier_normal_, orthogonal_
kaiming_uniform, kaiming_normal = kaiming_uniform_, kaiming_normal_
