"""torch.special: functions of statistics and physics."""
import math

import torch
from torch import digamma, erf, erfc, erfinv, exp2, expm1, log1p, log_softmax, logit, logsumexp, round, sinc, softmax, xlogy
from torch import digamma as psi
from torch import lgamma as gammaln
from torch import mvlgamma as multigammaln
from torch import sigmoid as expit


def entr(input):
    """-x · ln x; 0 at 0, and -inf below."""
    x = input if input.is_floating_point() else input.float()
    positive = -x * torch.log(x)
    return torch.where(x > 0, positive, torch.where(x == 0, 0.0, torch.where(x < 0, -torch.inf, x)))


def ndtr(input):
    """The part of a normal distribution below x."""
    x = input if input.is_floating_point() else input.float()
    return (1 + torch.erf(x * math.sqrt(0.5))) * 0.5


def ndtri(input):
    """The x below which that part of a normal distribution is."""
    p = input if input.is_floating_point() else input.float()
    return torch.erfinv(2 * p - 1) * math.sqrt(2.0)


def xlog1py(input, other):
    """x · ln(1 + y), and 0 where x is 0 and y is a number."""
    x = input if isinstance(input, torch.Tensor) else torch.tensor(input, device=other.device)
    y = other if isinstance(other, torch.Tensor) else torch.tensor(other, device=input.device)
    product = x * torch.log1p(y)
    return torch.where((x == 0) & ~y.isnan(), torch.zeros_like(product), product)
