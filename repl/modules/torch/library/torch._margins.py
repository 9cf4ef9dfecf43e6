"""Losses of torch.nn.functional with a margin, and those that are likelihoods of a distribution."""
import math
import torch
from torch import _kiln, _tensor
from torch._functional import _reduced, logsigmoid, pairwise_distance

lazily = _kiln.lazily
_along = _tensor._along


@lazily
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean"):
    if margin <= 0:
        raise ValueError("triplet_margin_loss() takes a margin above 0")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("triplet_margin_loss() takes tensors of as many dimensions")
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = torch.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced((near - far + margin).clamp(min=0), reduction)


@lazily
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError("margin_ranking_loss() takes tensors of as many dimensions")
    return _reduced((-target * (input1 - input2) + float(margin)).clamp(min=0), reduction)


@lazily
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(f"cosine_embedding_loss() of {tuple(input1.shape)}, {tuple(input2.shape)} and targets of "
                           f"{tuple(target.shape)}")
    sizes = (input1 * input1).sum(-1) + 1e-12, (input2 * input2).sum(-1) + 1e-12
    cosine = (input1 * input2).sum(-1) / (sizes[0] * sizes[1]).sqrt()
    loss = torch.where(target == 1, 1 - cosine, 0) + torch.where(target == -1, (cosine - margin).clamp(min=0), 0)
    return _reduced(loss, reduction)


@lazily
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    _tensor._of_floats(input, "hinge_embedding_loss")
    loss = torch.where(target != 1, (margin - input).clamp(min=0), 0) + torch.where(target != -1, input, 0)
    return _reduced(loss, reduction)


@lazily
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    if not input.is_floating_point():
        raise RuntimeError(f"soft_margin_loss() does not apply to tensors of {input.dtype}")
    return _reduced((-input * target).exp().log1p(), reduction)


@lazily
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    if p not in (1, 2):
        raise ValueError("multi_margin_loss() takes p=1 or p=2")
    if not input.is_floating_point() or input.ndim not in (1, 2) or input.numel() == 0:
        raise RuntimeError(f"multi_margin_loss() of {input.dtype} {tuple(input.shape)}")
    if target.dtype is not torch.int64 or target.numel() != (input.shape[0] if input.ndim == 2 else 1):
        raise RuntimeError("multi_margin_loss() takes a target of int64 for each row")
    n = input.shape[-1]
    at = target.reshape(-1, 1) if input.ndim == 2 else target.reshape(1)
    _kiln.check_places(at, n, 0, False)
    over = (margin - _kiln.take(input, [input.ndim - 1], [at]) + input).clamp(min=0)
    over = over if p == 1 else over * over
    if weight is not None:
        over = over * _kiln.take(weight, [0], [at.reshape(-1)]).reshape(at.shape)
    loss = torch.where(_kiln.iota(n, input) == at, 0, over).sum(-1) / n
    return _reduced(loss, reduction)


@lazily
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(-1) / input.shape[-1], reduction)


@lazily
def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean"):
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:  # Stirling's approximation of the factorial's logarithm
        more = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + torch.where(target <= 1, 0, more)
    return _reduced(loss, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if not input.is_floating_point():
        raise RuntimeError(f"gaussian_nll_loss() does not apply to tensors of {input.dtype}")
    if not isinstance(var, torch.Tensor):
        if var < 0:
            raise ValueError("gaussian_nll_loss() takes variances that are not negative")
        var = input.new_full(input.shape, var)
    if var.shape != input.shape:
        if list(input.shape[:-1]) == list(var.shape):
            var = var.unsqueeze(-1)
        elif list(var.shape) != list(input.shape[:-1]) + [1]:
            raise ValueError(f"gaussian_nll_loss() of {tuple(input.shape)} with variances of {tuple(var.shape)}")
    if not var.is_cuda and bool((var < 0).any()):  # what a GPU holds is not looked at
        raise ValueError("gaussian_nll_loss() takes variances that are not negative")
    return _gaussian(input, target, var, full, eps, reduction)


@lazily
def _gaussian(input, target, var, full, eps, reduction):
    # As in torch, the bound is no part of the gradient.
    var = torch.where(var < eps, var - var.detach() + eps, var)
    d = input - target
    loss = 0.5 * (var.log() + d * d / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)
