"""torch.special: functions of statistics and physics."""
import math

import torch
from torch import _kiln, digamma, erf, erfc, erfinv, exp2, expm1, log1p, log_softmax, logit, logsumexp, round, sinc
from torch import softmax, xlogy
from torch import digamma as psi
from torch import lgamma as gammaln
from torch import mvlgamma as multigammaln
from torch import sigmoid as expit
from torch._products import _times_log
from torch._tensor import _floats, _wide


@_kiln.lazily
def entr(input):
    """-x · ln x; 0 at 0, and -inf below."""
    x = _wide(_floats(input))
    below = torch.where(x < 0, -torch.inf, x)  # x itself where it is NaN
    return torch.where(x > 0, -x * torch.log(x), torch.where(x == 0, 0.0, below)).to(_floats(input).dtype)


@_kiln.lazily
def ndtr(input):
    """The part of a normal distribution below x."""
    return (1 + torch.erf(_floats(input) * math.sqrt(0.5))) * 0.5


_TAIL = 0.02  # below it, erfinv(2 p - 1) loses digits of p


@_kiln.lazily
def ndtri(input):
    """The x below which that part of a normal distribution is."""
    p = _floats(input).double()
    x = torch.where((p > 0) & (p < _TAIL), _lower_tail(p), torch.erfinv(2 * p - 1) * math.sqrt(2.0))
    return x.to(_floats(input).dtype)


def _lower_tail(p):
    """The tail's expansion, made precise by Halley's steps on ndtr(x) - p: each triples the digits."""
    p = torch.where((p > 0) & (p < _TAIL), p, _TAIL)
    square = -2 * p.log()
    x = -(square - (2 * math.pi * square).log()).sqrt()
    for _ in range(3):
        density = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        step = (torch.erfc(x * -math.sqrt(0.5)) * 0.5 - p) / density
        x = x - step / (1 + x * step * 0.5)
    return x


@_kiln.lazily
def xlog1py(input, other):
    """input * log(1 + other), with zeros of `input` kept unless `other` is NaN."""
    return _times_log(input, other, torch.log1p, "xlog1py")
