"""Functions of torch.nn.functional that torch has by itself, some with their arguments in another order; and functions
that make tensors of data."""
import math

import torch
import torch.nn.functional as F
from torch import _kiln

_REDUCTIONS = ("none", "mean", "sum")


def _named(reduction):
    """By its number, as torch's own functions have it."""
    return reduction if isinstance(reduction, str) else _REDUCTIONS[reduction]


# --- layers


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return F.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return F.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return F.conv3d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return F.conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return F.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return F.conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_tbc(input, weight, bias, pad=0):
    return F.conv_tbc(input, weight, bias, pad)


def bilinear(input1, input2, weight, bias=None):
    return F.bilinear(input1, input2, weight, bias)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return F.embedding(indices, weight, padding_idx if padding_idx >= 0 else None,
                       scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    return F.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    return F.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def pixel_shuffle(input, upscale_factor):
    return F.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input, downscale_factor):
    return F.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input, groups):
    return F.channel_shuffle(input, groups)


def constant_pad_nd(input, pad, value=0):
    return F.pad(input, pad, value=value)


def affine_grid_generator(theta, size, align_corners):
    return F.affine_grid(theta, size, align_corners)


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    return F.grid_sample(input, grid, ("bilinear", "nearest", "bicubic")[interpolation_mode],
                         ("zeros", "border", "reflection")[padding_mode], align_corners)


# --- pools


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return F.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    return F.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def adaptive_avg_pool1d(input, output_size):
    return F.adaptive_avg_pool1d(input, output_size)


def adaptive_max_pool1d(input, output_size):
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


# --- activations


def celu(input, alpha=1.0):
    return F.celu(input, alpha)


def celu_(input, alpha=1.0):
    return F.celu(input, alpha, True)


def selu(input):
    return F.selu(input)


def selu_(input):
    return F.selu(input, True)


def threshold(input, threshold, value):
    return F.threshold(input, threshold, value)


def threshold_(input, threshold, value):
    return F.threshold(input, threshold, value, True)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    return F.rrelu(input, lower, upper, training)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    return F.rrelu(input, lower, upper, training, True)


def dropout(input, p, train):
    return F.dropout(input, p, train)


def dropout_(input, p, train):
    return F.dropout(input, p, train, True)


def feature_dropout(input, p, train):
    return F.dropout2d(input, p, train)


def alpha_dropout(input, p, train):
    return F.alpha_dropout(input, p, train)


def alpha_dropout_(input, p, train):
    return F.alpha_dropout(input, p, train, True)


def feature_alpha_dropout(input, p, train):
    return F.feature_alpha_dropout(input, p, train)


# --- losses, whose reduction is a number: 0 none, 1 the mean, 2 the sum


def kl_div(input, target, reduction=0, *, log_target=False):
    reduction = _named(reduction)
    return F.kl_div(input, target, reduction=reduction, log_target=log_target)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    return F.binary_cross_entropy_with_logits(input, target, weight, reduction=_named(reduction), pos_weight=pos_weight)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_named(reduction))


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _named(reduction), zero_infinity)


def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    return F.hinge_embedding_loss(input, target, margin, reduction=_named(reduction))


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_named(reduction))


def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named(reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction=0):
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_named(reduction))


def pairwise_distance(x1, x2, p=2, eps=1e-6, keepdim=False):
    return F.pairwise_distance(x1, x2, p, eps, keepdim)


# --- tensors of data


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    if not isinstance(obj, torch.Tensor):
        if copy is False:
            raise ValueError(f"can't alias '{type(obj).__name__}': its elements are copied into a tensor")
        return torch.tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    made = torch.as_tensor(obj, dtype=dtype, device=device)
    if made is obj or made.data_ptr() == obj.data_ptr():
        made = obj.detach().clone() if copy else obj
    elif copy is False:
        raise ValueError("can't alias tensor with another dtype or on another device")
    return made.requires_grad_() if requires_grad else made


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """The elements that bytes hold, as a copy: bytes of a script are not changed by tensors."""
    data = bytes(buffer)
    size = dtype.itemsize
    if count == 0 or count < -1 or not 0 <= offset < len(data):
        raise ValueError(f"frombuffer(): both buffer length ({len(data)}) and count ({count}) must not be 0, and "
                         f"offset ({offset} bytes) must be inside of the buffer")
    if count == -1:
        if (len(data) - offset) % size:
            raise ValueError(f"buffer length ({len(data) - offset} bytes) after offset ({offset} bytes) must be a "
                             f"multiple of element size ({size})")
        count = (len(data) - offset) // size
    if offset + count * size > len(data):
        raise ValueError(f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be "
                         f"greater than actual buffer length ({len(data)} bytes)")
    made = torch.tensor(list(data[offset:offset + count * size]), dtype=torch.uint8, device="cpu").view(dtype)
    return made.requires_grad_() if requires_grad else made


def from_numpy(ndarray):
    raise NotImplementedError("from_numpy() needs numpy: torch.tensor(nested lists) makes tensors, and "
                              "torch.load('file.npy') reads files of numpy.save()")


def from_dlpack(ext_tensor):
    if isinstance(ext_tensor, torch.Tensor):
        return ext_tensor
    raise NotImplementedError("from_dlpack() takes tensors of other libraries, which a script has not")


def empty_permuted(size, physical_layout, *, dtype=None, device=None, requires_grad=False):
    order = list(physical_layout)
    made = torch.empty([size[d] for d in order], dtype=dtype, device=device, requires_grad=requires_grad)
    return made.permute([order.index(d) for d, _ in enumerate(order)])


def range(start=0, end=None, step=1, *, out=None, dtype=None, device=None, requires_grad=False):
    """With its end, unlike arange()."""
    start, end = (0, start) if end is None else (start, end)
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    n = math.floor((end - start) / step) + 1
    places = _kiln.iota(n, torch.empty((0,), device=device), torch.int64)
    return (start + places * step).to(dtype or torch.float32)


def row_stack(tensors):
    return torch.vstack(tensors)


def fill(input, value):
    return input.clone().fill_(value)


def detach(input):
    return input.detach()


def rsub(input, other, *, alpha=1):
    if not isinstance(input, torch.Tensor):
        raise TypeError(f"rsub() takes a tensor first, got '{type(input).__name__}'")
    return other - input * alpha if alpha != 1 else other - input


def _operand(x):
    return x if isinstance(x, torch.Tensor) else torch.tensor(x)


def _add_to_number(input, other, *, alpha=1):
    return input + (_operand(other) if alpha == 1 else _operand(other) * alpha)


def _sub_to_number(input, other, *, alpha=1):
    return input - (_operand(other) if alpha == 1 else _operand(other) * alpha)


def _mul_to_number(input, other):
    return input * _operand(other)


def _div_to_number(input, other, *, rounding_mode=None):
    return torch.divide(input, _operand(other), rounding_mode=rounding_mode)


# --- questions


def is_signed(input):
    return input.dtype.is_signed


def is_inference(input):
    return False


def is_neg(input):
    return False


def is_same_size(input, other):
    return input.shape == other.shape


def is_distributed(input):
    return False


def is_storage(obj):
    return False


def get_device(input):
    return (input.device.index or 0) if input.is_cuda else -1


def typename(obj):
    if isinstance(obj, torch.Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", "")
    return kind.__name__ if module in ("", "builtins") else f"{module}.{kind.__name__}"


def frobenius_norm(input, dim=(), keepdim=False):
    return input.norm(2, list(dim) if isinstance(dim, (tuple, list)) and dim else dim or None, keepdim)


def nuclear_norm(input, dim=(-2, -1), keepdim=False):
    return torch.linalg.matrix_norm(input, "nuc", dim, keepdim)


def norm_except_dim(v, pow=2, dim=0):
    return v.norm(pow, [d for d, _ in enumerate(v.shape) if d != dim % v.ndim], True)


def is_anomaly_enabled():
    return torch.autograd.is_anomaly_enabled()


def set_anomaly_enabled(mode, check_nan=True):
    torch.autograd.set_detect_anomaly(mode, check_nan)
