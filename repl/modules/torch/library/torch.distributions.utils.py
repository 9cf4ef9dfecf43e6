"""torch.distributions.utils: what parameters of distributions are made of."""
import torch
import torch.nn.functional as F


def broadcast_all(*values):
    """Tensors of one shape; numbers have the dtype of the tensors, or the default one."""
    if not all(isinstance(v, (torch.Tensor, int, float)) for v in values):
        raise ValueError("broadcast_all() takes numbers and tensors")
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    kind = {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {"dtype": torch.get_default_dtype()}
    return torch.broadcast_tensors(*[v if isinstance(v, torch.Tensor) else torch.tensor(v, **kind) for v in values])


def clamp_probs(probs):
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False):
    return torch.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs, is_binary=False):
    p = clamp_probs(probs)
    return torch.log(p) - torch.log1p(-p) if is_binary else torch.log(p)
