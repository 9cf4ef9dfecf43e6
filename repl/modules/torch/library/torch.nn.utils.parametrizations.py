"""torch.nn.utils.parametrizations: norms of weights as parametrizations."""
from torch import _norms_of_weights as _norms
from torch.nn.utils.parametrize import register_parametrization


def weight_norm(module, name="weight", dim=0):
    return register_parametrization(module, name, _norms.WeightNorm(dim), unsafe=True)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    dim = (1 if _norms.transposes(module) else 0) if dim is None else dim
    made = _norms.SpectralNorm(getattr(module, name).detach(), n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)
