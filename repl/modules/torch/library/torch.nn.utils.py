"""torch.nn.utils: parameters as one vector."""
import torch


def parameters_to_vector(parameters):
    return torch.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Stores the parts of a vector in the parameters, in their order."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    at = 0
    with torch.no_grad():
        for p in parameters:
            p.copy_(vec[at:at + p.numel()].view(p.shape))
            at += p.numel()
