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


def _with_gradients(parameters):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    return [p for p in parameters if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements as one vector."""
    tensors = list(tensors)
    if not tensors:
        return torch.tensor(0.0)
    norms = torch.stack([torch.linalg.vector_norm(t, norm_type, dtype=torch.float32) for t in tensors])
    total = torch.linalg.vector_norm(norms, norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
                           "cannot be clipped.")
    return total


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales gradients so that their norm is at most max_norm; the norm that they had."""
    held = _with_gradients(parameters)
    with torch.no_grad():
        total = get_total_norm([p.grad for p in held], norm_type, error_if_nonfinite)
        scale = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
        for p in held:
            p.grad.mul_(scale.to(p.grad.dtype))
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Bounds each element of the gradients."""
    with torch.no_grad():
        for p in _with_gradients(parameters):
            p.grad.clamp_(-float(clip_value), float(clip_value))
