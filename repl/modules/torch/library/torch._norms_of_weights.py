"""Weights as a direction and a length (weight_norm), and weights over their largest singular value (spectral_norm)."""
import torch
from torch import nn
from torch.nn.utils import parametrize


def norm_but(v, dim):
    """The norms of the slices along a dimension; of all elements without one."""
    if dim is None or dim == -1:
        return v.norm()
    return torch.linalg.vector_norm(v, dim=[d for d in range(v.ndim) if d != dim % v.ndim], keepdim=True)


class WeightNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, g, v):
        return v * (g / norm_but(v, self.dim))

    def right_inverse(self, weight):
        return norm_but(weight, self.dim), weight


def _normalized(x, eps):
    return x / x.norm().clamp(min=eps)


class Power:
    """The iterations towards the first singular vectors of a weight, which are changed in place."""

    def __init__(self, iterations, eps, dim):
        if iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={iterations}")
        self.iterations, self.eps, self.dim = iterations, eps, dim

    def matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1) if weight.ndim > 1 else weight.unsqueeze(0)

    def begin(self, weight):
        m = self.matrix(weight)
        return [_normalized(torch.randn(n, dtype=m.dtype, device=m.device), self.eps) for n in m.shape]

    @torch.no_grad()
    def step(self, weight, u, v, count=None):
        m = self.matrix(weight).detach()
        for _ in range(self.iterations if count is None else count):
            v.copy_(_normalized(m.mT @ u, self.eps))
            u.copy_(_normalized(m @ v, self.eps))

    def divided(self, weight, u, v):
        # Copies: the next step changes them before backward() may be done.
        u, v = u.clone(), v.clone()
        return weight / torch.dot(u, self.matrix(weight) @ v)


class SpectralNorm(nn.Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        self.power = Power(n_power_iterations, eps, dim)
        u, v = self.power.begin(weight)
        self.register_buffer("_u", u)
        self.register_buffer("_v", v)
        self.power.step(weight, u, v, 15)

    def forward(self, weight):
        if self.training:
            self.power.step(weight, self._u, self._v)
        return self.power.divided(weight, self._u, self._v)


def transposes(module):
    return isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d))
