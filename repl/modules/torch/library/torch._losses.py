"""More of torch.nn.functional: losses of sequences and of several labels, random activations, and what undoes pools."""
import math

import torch
import torch.nn.functional as F
from torch import _kiln, _methods, _tape, _tensor
from torch._activations import _placed
from torch._functional import _reduced

lazily = _kiln.lazily
_wide = _tensor._wide


# --- losses


def _lengths(given, count, what, device):
    """Lengths as int64 on the device; the largest, None where a GPU holds it."""
    if not isinstance(given, torch.Tensor):
        given = torch.tensor(list(given), dtype=torch.int64, device="cpu")
    if given.is_floating_point():
        raise RuntimeError(f"ctc_loss(): {what}_lengths must be integral")
    if given.numel() != count:
        raise RuntimeError(f"ctc_loss(): {what}_lengths must be of size batch_size, got {given.numel()} for {count}")
    most = None
    if not given.is_cuda:
        values = given.reshape(-1).tolist()
        if values and min(values) < 0:
            raise RuntimeError(f"ctc_loss(): expected {what}_lengths to have value at least 0, got {min(values)}")
        most = max(values) if values else 0
    return given.reshape(-1).to(device=device, dtype=torch.int64).contiguous(), most


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """The likelihood of targets that a sequence says with repetitions and blanks, of logarithms [T, N, C]."""
    if not log_probs.is_floating_point():
        raise RuntimeError(f"ctc_loss() does not apply to tensors of {log_probs.dtype}")
    alone = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if alone else log_probs
    T, N, C = x.shape
    if not 0 <= blank < C:
        raise RuntimeError("blank must be in label range")
    if alone:
        targets = targets.reshape(1, -1)
        input_lengths, target_lengths = [
            t.reshape(1) if isinstance(t, torch.Tensor) else [t] if isinstance(t, int) else t
            for t in (input_lengths, target_lengths)]
    steps, longest = _lengths(input_lengths, N, "input", x.device)
    lengths, most = _lengths(target_lengths, N, "target", x.device)
    if longest is not None and longest > T:
        raise RuntimeError(f"Expected input_lengths to have value at most {T}, but got value {longest}")
    targets = targets.to(device=x.device, dtype=torch.int64)
    if targets.ndim == 1:  # one after the other
        width = targets.numel() if most is None else most
        at = (lengths.cumsum(0) - lengths).unsqueeze(1) + torch.arange(max(width, 1), device=x.device)
        if most is not None and int(lengths.sum()) > targets.numel():
            raise RuntimeError("ctc_loss(): the targets are shorter than their lengths")
        labels = (targets[at.clamp(max=max(targets.numel() - 1, 0))] if targets.numel() else torch.zeros_like(at))
    else:
        if most is not None and most > targets.shape[1]:
            raise RuntimeError(f"Expected tensor to have size at least {most} at dimension 1, but got size "
                               f"{targets.shape[1]}")
        labels = targets if targets.shape[1] else targets.new_zeros((N, 1))
    wide = x if x.dtype is torch.float64 else x.float()
    losses = _ctc(wide, labels.contiguous(), steps, lengths, blank, zero_infinity)
    if zero_infinity:
        losses = torch.where(losses == math.inf, 0.0, losses)
    if reduction == "mean":
        losses = losses / lengths.clamp(min=1).to(losses.dtype)
    out = _reduced(losses[0] if alone and reduction == "none" else losses, reduction)
    return out.to(log_probs.dtype)


def _ctc(x, labels, steps, lengths, blank, zero_infinity):
    from torch import _sequence_losses as kernels
    kept = []

    def compute(x):
        losses, alphas = kernels.forward(x, labels, steps, lengths, blank, bool(kept))
        if kept:
            kept[:] = [losses, alphas]
        return losses

    if not _kiln.records(x) or _kiln.is_no_grad():
        return compute(x)
    kept.append(None)

    def rule(g, x):
        if _kiln.count_scopes(g, x) > 1:
            raise NotImplementedError("ctc_loss() has no gradient of its gradient")
        logs, (losses, alphas) = x.detach(), kept
        shares = kernels.shares(logs, labels, steps, lengths, losses, alphas, blank)
        T, N, C = logs.shape
        S = labels.shape[1]
        place = torch.arange(2 * S + 1, device=x.device)
        classes = torch.where(place % 2 == 1, labels[:, ((place - 1) // 2).clamp(min=0)], blank)
        inside = (torch.arange(T, device=x.device).unsqueeze(1) < steps).unsqueeze(-1)
        classes = classes.expand(T, N, 2 * S + 1).contiguous()
        of_class = torch.zeros_like(logs).scatter_add(2, classes, torch.where(inside, shares, 0))
        slope = torch.where(inside, logs.exp() - of_class, 0)
        if zero_infinity:
            slope = torch.where((losses == math.inf).unsqueeze(-1), 0, slope)
        return g.detach().unsqueeze(-1) * slope,

    return _tape.with_rule(compute, (x,), rule)


@lazily
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The labels of a row are those before the first that is -1."""
    if input.ndim not in (1, 2) or input.shape != target.shape or target.dtype is not torch.int64:
        raise RuntimeError(f"multilabel_margin_loss() of {tuple(input.shape)} with targets of {target.dtype} "
                           f"{tuple(target.shape)}: it takes as many labels of int64")
    n = input.shape[-1]
    x, labels = _wide(input).reshape(-1, n), target.reshape(-1, n)
    if not labels.is_cuda and labels.numel() > 0 and not bool(((labels >= -1) & (labels < n)).all()):
        raise RuntimeError("multilabel_margin_loss(): target out of range")
    counts = (labels >= 0).long().cumprod(1) == 1
    at = labels.clamp(min=0)
    named = ((at.unsqueeze(1) == torch.arange(n, device=x.device).unsqueeze(1)) & counts.unsqueeze(1)).any(-1)
    over = (1 - x.gather(1, at).unsqueeze(2) + x.unsqueeze(1)).clamp(min=0)
    over = torch.where(counts.unsqueeze(2) & ~named.unsqueeze(1), over, 0)
    loss = over.sum((1, 2)) / n
    return _reduced(loss if input.ndim == 2 else loss[0], reduction).to(input.dtype)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of "
                           f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
                           f"{negative.ndim}D inputs")
    distance = F.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = torch.minimum(far, distance(positive, negative))
    return _reduced((margin + near - far).clamp(min=0), reduction)


# --- random


@lazily
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Slopes between the bounds where elements are negative; their mean when not training."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    x = _wide(_tensor._of_floats(input, "rrelu"))
    slope = (lower + upper) / 2
    if training:
        slope = lower + (upper - lower) * _kiln.uniform(input.shape, input)
    return _placed(input, torch.where(x > 0, x, x * slope).to(input.dtype), inplace)


_SELU_FLOOR = -1.7580993408473766  # what selu() is far below 0


def _alpha_dropped(input, p, training, shape, what):
    """What is dropped becomes selu's floor, and all is scaled and moved so that mean and variance stay."""
    if p < 0 or p > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0
    _tensor._of_floats(input, what)
    a = ((1 - p) * (1 + p * _SELU_FLOOR**2)) ** -0.5
    keep = _kiln.uniform(shape, input) >= p
    return (torch.where(keep, _wide(input), _SELU_FLOOR) * a - a * _SELU_FLOOR * p).to(input.dtype)


@lazily
def alpha_dropout(input, p=0.5, training=False, inplace=False):
    return _placed(input, _alpha_dropped(input, p, training, input.shape, "alpha_dropout"), inplace)


@lazily
def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Of whole channels."""
    if input.ndim < 2 and training:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = list(input.shape[:2]) + [1] * (input.ndim - 2)
    return _placed(input, _alpha_dropped(input, p, training, shape, "feature_alpha_dropout"), inplace)


# --- activations in place


def relu_(input):
    return input.relu_()


def elu_(input, alpha=1.0):
    return F.elu(input, alpha, True)


def selu_(input):
    return F.selu(input, True)


def celu_(input, alpha=1.0):
    return F.celu(input, alpha, True)


def leaky_relu_(input, negative_slope=0.01):
    return F.leaky_relu(input, negative_slope, True)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    return F.hardtanh(input, min_val, max_val, True)


def threshold_(input, threshold, value):
    return F.threshold(input, threshold, value, True)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    return rrelu(input, lower, upper, training, True)


# --- what undoes pools


def _unpooled(input, indices, kernel_size, stride, padding, output_size, rank):
    """The elements at the places that a pool of the largest found, and zeros elsewhere."""
    what = f"max_unpool{rank}d()"
    if indices.dtype is not torch.int64 or input.shape != indices.shape or input.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(f"{what} of {tuple(input.shape)} takes as many places of int64 as elements in {rank + 1} or "
                           f"{rank + 2} dimensions, got {indices.dtype} {tuple(indices.shape)}")

    def each(v):
        v = tuple(v) if isinstance(v, (tuple, list)) else (v,)
        return v * rank if len(v) == 1 else v

    kernel = each(kernel_size)
    stride, padding = kernel if stride is None or stride in ((), []) else each(stride), each(padding)
    usual = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(input.shape[-rank:], stride, padding, kernel)]
    if output_size is None:
        size = usual
    else:
        size = list(output_size)[-rank:]
        if len(size) != rank or any(not u - s < m < u + s for u, s, m in zip(usual, stride, size)):
            raise ValueError(f"invalid output_size {output_size} (dimensions must be between "
                             f"{[u - s for u, s in zip(usual, stride)]} and {[u + s for u, s in zip(usual, stride)]})")
    lead, n = list(input.shape[:-rank]), math.prod(size)
    if not indices.is_cuda and indices.numel() > 0 and not bool(((indices >= 0) & (indices < n)).all()):
        raise RuntimeError(f"{what}: found an invalid max index for an output of {n} elements")
    flat = torch.zeros(lead + [n], dtype=input.dtype, device=input.device)
    return flat.scatter(-1, indices.reshape(lead + [-1]), input.reshape(lead + [-1])).reshape(lead + size)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    return _unpooled(input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    return _unpooled(input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    return _unpooled(input, indices, kernel_size, stride, padding, output_size, 3)


# --- further pools


@lazily
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    from torch import _pools
    return _pools._lp_pool(input, 3, norm_type, kernel_size, stride, ceil_mode)


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    return F.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    return F.adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    return F.adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    return F.adaptive_max_pool3d(input, output_size, True)


@lazily
def _fractional_pool(input, kernel_size, output_size, output_ratio, return_indices, samples, rank):
    """Windows of one size whose distances are drawn (Graham, 2014)."""
    from torch import _pools
    if output_size is None and output_ratio is None:
        raise ValueError(f"fractional_max_pool{rank}d requires specifying either an output_size or an output_ratio")
    if input.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(f"fractional_max_pool{rank}d() takes {rank + 1} or {rank + 2} dimensions, got "
                           f"{tuple(input.shape)}")
    sizes, kernel = list(input.shape[-rank:]), _pools._each(kernel_size, rank)
    wanted = (list(_pools._each(output_size, rank)) if output_size is not None
              else [int(n * r) for n, r in zip(sizes, _pools._each(output_ratio, rank))])
    for n, m, k in zip(sizes, wanted, kernel):
        if m <= 0 or m + k - 1 > n:
            raise RuntimeError(f"fractional_max_pool{rank}d(): a window of {k} and {m} of them in {n} elements")
    x = input if input.ndim == rank + 2 else input.unsqueeze(0)
    lead = list(x.shape[:2])
    if samples is None:
        samples = _kiln.uniform(lead + [rank], x)
    # Torch's kernels of two dimensions take the first number for the last of them.
    order = [1, 0] if rank == 2 else [0, 1, 2]
    flat = None
    for d, (n, m, k) in enumerate(zip(sizes, wanted, kernel)):
        sample = samples[..., order[d]].unsqueeze(-1)
        i = _kiln.iota(m, x)
        by = (n - k) / (m - 1) if m > 1 else 0.0
        begin = ((i.to(samples.dtype) + sample) * by).long() - (sample * by).long()
        begin = torch.where(i == m - 1, n - k, begin)
        place = begin.reshape(lead + [m if e == d else 1 for e in range(rank)] + [1] * rank)
        place = place + _tensor._along(_kiln.iota(k, x, torch.int64), rank + d, 2 * rank)
        flat = place if flat is None else flat * n + place
    count = math.prod(wanted)
    flat = flat.expand(lead + wanted + list(kernel)).reshape(lead + [count, math.prod(kernel)])
    windows = x.reshape(lead + [-1]).gather(-1, flat.reshape(lead + [-1])).reshape(flat.shape)
    at = windows.argmax(-1, True)
    shape = list(input.shape[:-rank]) + wanted
    values = windows.gather(-1, at).reshape(shape)
    return (values, flat.gather(-1, at).reshape(shape)) if return_indices else values


def fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                          _random_samples=None):
    return _fractional_pool(input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 2)


def fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                          _random_samples=None):
    return _fractional_pool(input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 3)


def fractional_max_pool2d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                                       _random_samples=None):
    return _fractional_pool(input, kernel_size, output_size, output_ratio, True, _random_samples, 2)


def fractional_max_pool3d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                                       _random_samples=None):
    return _fractional_pool(input, kernel_size, output_size, output_ratio, True, _random_samples, 3)


# --- other names


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return F.interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return F.interpolate(input, size, scale_factor, "bilinear" if input.ndim == 4 else "trilinear", True)


def conv_tbc(input, weight, bias, pad=0):
    """A convolution of [time, batch, channels] with weights [taps, channels, filters]."""
    out = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)
