"""Further modules of torch.nn: random activations, losses, pads, pools that are undone, those that know their sizes
from their first input."""
import torch
import torch.nn.functional as F
from torch._nn import (_NEEDED, BatchNorm1d, BatchNorm2d, Dropout, Linear, Module, ModuleList, Sequential, _BatchNorm,
                       _Function)
from torch._nn_functions import NLLLoss, _Loss, _LPPool
from torch._nn_layers import (BatchNorm3d, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
                              ConstantPad1d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _Pad, _tuple)


# --- functions


class RReLU(Module):
    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class AlphaDropout(Dropout):
    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(Dropout):
    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)


class CTCLoss(_Function):
    function, takes = F.ctc_loss, {"blank": 0, "reduction": "mean", "zero_infinity": False}
    hidden = "blank", "reduction", "zero_infinity"


class MultiLabelMarginLoss(_Loss):
    function = F.multilabel_margin_loss
    takes = {"size_average": None, "reduce": None, "reduction": "mean"}


class NLLLoss2d(NLLLoss):
    pass


class TripletMarginWithDistanceLoss(_Function):
    function = F.triplet_margin_with_distance_loss


class LPPool3d(_LPPool):
    function = F.lp_pool3d


class _FractionalMaxPool(_Function):
    takes = {"kernel_size": _NEEDED, "output_size": None, "output_ratio": None, "return_indices": False,
             "_random_samples": None}
    hidden = "return_indices", "_random_samples"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if (self.output_size is None) == (self.output_ratio is None):
            raise ValueError(f"{type(self).__name__} takes an output_size or an output_ratio")


class FractionalMaxPool2d(_FractionalMaxPool):
    function = F.fractional_max_pool2d


class FractionalMaxPool3d(_FractionalMaxPool):
    function = F.fractional_max_pool3d


class _MaxUnpool(Module):
    rank, function = 0, None

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = _tuple(self.rank, kernel_size)
        self.stride = self.kernel_size if stride is None else _tuple(self.rank, stride)
        self.padding = _tuple(self.rank, padding)

    def forward(self, input, indices, output_size=None):
        return type(self).function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    rank, function = 1, F.max_unpool1d


class MaxUnpool2d(_MaxUnpool):
    rank, function = 2, F.max_unpool2d


class MaxUnpool3d(_MaxUnpool):
    rank, function = 3, F.max_unpool3d


# --- pads


class ZeroPad3d(_Pad):
    rank = 3


class ConstantPad3d(ConstantPad1d):
    rank = 3


class ReflectionPad3d(_Pad):
    rank, mode = 3, "reflect"


class ReplicationPad3d(_Pad):
    rank, mode = 3, "replicate"


class CircularPad1d(_Pad):
    rank, mode = 1, "circular"


class CircularPad2d(_Pad):
    mode = "circular"


class CircularPad3d(_Pad):
    rank, mode = 3, "circular"


class _Upsampling(Module):
    mode, align_corners = "nearest", None

    def __init__(self, size=None, scale_factor=None):
        super().__init__()
        self.size = size
        self.scale_factor = float(scale_factor) if isinstance(scale_factor, int) else scale_factor

    def forward(self, input):
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self):
        given = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(_Upsampling):
    pass


class UpsamplingBilinear2d(_Upsampling):
    mode, align_corners = "bilinear", True


# --- one process


class SyncBatchNorm(_BatchNorm):
    """Batch norm: a script has one process, whose batch is all there is."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None,
                 device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with its batch norms as these."""
        if isinstance(module, _BatchNorm) and not isinstance(module, (cls, InstanceNorm1d, InstanceNorm2d,
                                                                      InstanceNorm3d)):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                       process_group)
            for name in ("weight", "bias"):
                made._parameters[name] = module._parameters[name]
            made._buffers.update(module._buffers)
            made.training = module.training
            return made
        for name, child in list(module.named_children()):
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


class DataParallel(Module):
    """The module itself: a script's tensors are on one GPU."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


# --- softmax of many classes


class AdaptiveLogSoftmaxWithLoss(Module):
    """Grave and others, 2017: rare classes are in clusters, each a class of the head. Every row is computed for every
    cluster, so that nothing waits for the targets."""

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs or cutoffs != sorted(set(cutoffs)) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(
                int(c) != c for c in cutoffs):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                             "where each value is between 1 and n_classes-1")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, cutoffs + [n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options = dict(device=device, dtype=dtype)
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, **options),
                                        Linear(hidden, size, bias=False, **options)))

    def forward(self, input, target):
        """(the logarithm of each target's probability, the mean loss)"""
        if target.ndim > 1 or input.ndim != target.ndim + 1 or input.shape[0] != (
                target.shape[0] if target.ndim else input.shape[0]):
            raise RuntimeError(f"Input of {tuple(input.shape)} and target of {tuple(target.shape)}: it takes a target "
                               "for each row")
        if not target.is_cuda and target.numel() > 0 and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values outside were found")
        x, at = (input, target) if target.ndim else (input.unsqueeze(0), target.unsqueeze(0))
        head = F.log_softmax(self.head(x), 1)
        place = at.clamp(max=self.shortlist_size - 1)
        logs = torch.where(at < self.shortlist_size, head.gather(1, place.unsqueeze(1)).squeeze(1), 0.0)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = F.log_softmax(self.tail[i](x), 1)
            place = (at - low).clamp(0, high - low - 1)
            own = head[:, self.shortlist_size + i] + rows.gather(1, place.unsqueeze(1)).squeeze(1)
            logs = torch.where((at >= low) & (at < high), own, logs)
        output = logs if target.ndim else logs.squeeze(0)
        return _WithLoss((output, (-logs).mean()))

    def log_prob(self, input):
        """The logarithms of all classes' probabilities."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, :self.shortlist_size]]
        for i in range(self.n_clusters):
            parts.append(F.log_softmax(self.tail[i](input), 1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return torch.cat(parts, 1)

    def predict(self, input):
        return self.log_prob(input).argmax(1)


class _WithLoss(tuple):
    output = property(lambda self: self[0])
    loss = property(lambda self: self[1])


# --- modules that know their sizes from their first input


class _Lazy:
    """Becomes another class, with parameters, when it is first called."""

    becomes, at = None, 1  # the dimension of the input that has as many elements as there are features

    def _keep(self, arguments):
        Module.__init__(self)
        self._arguments = arguments

    def forward(self, *inputs):
        x, arguments = inputs[0], self.__dict__.pop("_arguments")
        if arguments.get("device") is None:
            arguments["device"] = x.device
        kind, features = self.becomes, x.shape[self.at]
        self.__class__ = kind
        kind.__init__(self, features, **arguments)
        return self.forward(*inputs)

    def has_uninitialized_params(self):
        return True

    def extra_repr(self):
        return ", ".join(f"{k}={v}" for k, v in self._arguments.items())


class LazyLinear(_Lazy, Linear):
    becomes, at = Linear, -1

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        self._keep(dict(out_features=out_features, bias=bias, device=device, dtype=dtype))


class _LazyConv(_Lazy):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        self._keep(dict(out_channels=out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                        dilation=dilation, groups=groups, bias=bias, padding_mode=padding_mode, device=device,
                        dtype=dtype))


class LazyConv1d(_LazyConv, Conv1d):
    becomes, at = Conv1d, -2


class LazyConv2d(_LazyConv, Conv2d):
    becomes, at = Conv2d, -3


class LazyConv3d(_LazyConv, Conv3d):
    becomes, at = Conv3d, -4


class _LazyConvTranspose(_Lazy):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, padding_mode="zeros", device=None, dtype=None):
        self._keep(dict(out_channels=out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                        output_padding=output_padding, groups=groups, bias=bias, dilation=dilation,
                        padding_mode=padding_mode, device=device, dtype=dtype))


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    becomes, at = ConvTranspose1d, -2


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    becomes, at = ConvTranspose2d, -3


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    becomes, at = ConvTranspose3d, -4


class _LazyNorm(_Lazy):
    def _keep_norm(self, eps, momentum, affine, track_running_stats, device, dtype):
        self._keep(dict(eps=eps, momentum=momentum, affine=affine, track_running_stats=track_running_stats,
                        device=device, dtype=dtype))


class _LazyBatchNorm(_LazyNorm):
    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None):
        self._keep_norm(eps, momentum, affine, track_running_stats, device, dtype)


class LazyBatchNorm1d(_LazyBatchNorm, BatchNorm1d):
    becomes = BatchNorm1d


class LazyBatchNorm2d(_LazyBatchNorm, BatchNorm2d):
    becomes = BatchNorm2d


class LazyBatchNorm3d(_LazyBatchNorm, BatchNorm3d):
    becomes = BatchNorm3d


class _LazyInstanceNorm(_LazyNorm):
    def __init__(self, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None):
        self._keep_norm(eps, momentum, affine, track_running_stats, device, dtype)


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    becomes, at = InstanceNorm1d, -2


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    becomes, at = InstanceNorm2d, -3


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    becomes, at = InstanceNorm3d, -4
