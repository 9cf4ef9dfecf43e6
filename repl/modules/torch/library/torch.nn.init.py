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


@torch.no_grad()
def uniform_(tensor, a=0.0, b=1.0):
    return tensor.uniform_(a, b)


@torch.no_grad()
def normal_(tensor, mean=0.0, std=1.0):
    return tensor.normal_(mean, std)


@torch.no_grad()
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    return tensor.normal_(mean, std).clamp_(a, b)


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
def xavier_uniform_(tensor, gain=1.0):
    fan_in, fan_out = _fans(tensor)
    a = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return tensor.uniform_(-a, a)


@torch.no_grad()
def xavier_normal_(tensor, gain=1.0):
    fan_in, fan_out = _fans(tensor)
    return tensor.normal_(0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)))


@torch.no_grad()
def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[0 if mode == "fan_in" else 1])
    return tensor.uniform_(-bound, bound)


@torch.no_grad()
def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    return tensor.normal_(0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[0 if mode == "fan_in" else 1]))


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
