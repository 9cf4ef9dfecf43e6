"""Modules of torch.nn without parameters, whose arguments go to the function of torch.nn.functional."""
import torch.nn.functional as F
from torch._nn import _NEEDED, Dropout, _Function


class _Loss(_Function):
    """A loss, whose arguments no repr shows. Its weights are buffers: they move with it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if "size_average" in self.takes:
            # The older names of reduction=.
            if self.size_average is not None or self.reduce is not None:
                self.reduction = "none" if self.reduce is False else "sum" if self.size_average is False else "mean"
            del self.size_average, self.reduce
        for name in ("weight", "pos_weight"):
            if name in self.takes:
                value = getattr(self, name)
                delattr(self, name)
                self.register_buffer(name, value)

    def extra_repr(self):
        return ""

    def forward(self, *inputs):
        given = {key: getattr(self, key) for key in self.takes if key not in ("size_average", "reduce")}
        return type(self).function(*inputs, **given)


class LogSigmoid(_Function):
    function = F.logsigmoid


class SELU(_Function):
    function, takes = F.selu, {"inplace": False}


class CELU(_Function):
    function, takes = F.celu, {"alpha": 1.0, "inplace": False}


class ReLU6(_Function):
    function, takes = F.relu6, {"inplace": False}


class Hardtanh(_Function):
    function, takes = F.hardtanh, {"min_val": -1.0, "max_val": 1.0, "inplace": False}


class Hardsigmoid(_Function):
    function, takes = F.hardsigmoid, {"inplace": False}


class Hardswish(_Function):
    function, takes = F.hardswish, {"inplace": False}


class Hardshrink(_Function):
    function, takes = F.hardshrink, {"lambd": 0.5}

    def extra_repr(self):
        return f"{self.lambd}"


class Softshrink(_Function):
    function, takes = F.softshrink, {"lambd": 0.5}

    def extra_repr(self):
        return f"{self.lambd}"


class Softsign(_Function):
    function = F.softsign


class Softmin(_Function):
    function, takes = F.softmin, {"dim": None}


class Tanhshrink(_Function):
    function = F.tanhshrink


class Threshold(_Function):
    function, takes = F.threshold, {"threshold": _NEEDED, "value": _NEEDED, "inplace": False}


class Mish(_Function):
    function, takes = F.mish, {"inplace": False}


class GLU(_Function):
    function, takes = F.glu, {"dim": -1}


class PixelShuffle(_Function):
    function, takes = F.pixel_shuffle, {"upscale_factor": _NEEDED}


class PixelUnshuffle(_Function):
    function, takes = F.pixel_unshuffle, {"downscale_factor": _NEEDED}


class ChannelShuffle(_Function):
    function, takes = F.channel_shuffle, {"groups": _NEEDED}


class LocalResponseNorm(_Function):
    function, takes = F.local_response_norm, {"size": _NEEDED, "alpha": 1e-4, "beta": 0.75, "k": 1.0}

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class Upsample(_Function):
    function = F.interpolate
    takes = {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": None,
             "recompute_scale_factor": None}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        by = self.scale_factor
        self.scale_factor = tuple(float(x) for x in by) if isinstance(by, (tuple, list)) else float(by) if by else None

    def extra_repr(self):
        size = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class Fold(_Function):
    function = F.fold
    takes = {"output_size": _NEEDED, "kernel_size": _NEEDED, "dilation": 1, "padding": 0, "stride": 1}


class Unfold(_Function):
    function = F.unfold
    takes = {"kernel_size": _NEEDED, "dilation": 1, "padding": 0, "stride": 1}


class CosineSimilarity(_Function):
    function, takes, hidden = F.cosine_similarity, {"dim": 1, "eps": 1e-8}, ("dim", "eps")


class PairwiseDistance(_Function):
    function, takes = F.pairwise_distance, {"p": 2.0, "eps": 1e-6, "keepdim": False}
    hidden = "p", "eps", "keepdim"


class BCELoss(_Loss):
    function = F.binary_cross_entropy
    takes = {"weight": None, "size_average": None, "reduce": None, "reduction": "mean"}


class KLDivLoss(_Loss):
    function, takes = F.kl_div, {"size_average": None, "reduce": None, "reduction": "mean", "log_target": False}


class SmoothL1Loss(_Loss):
    function, takes = F.smooth_l1_loss, {"size_average": None, "reduce": None, "reduction": "mean", "beta": 1.0}


class HuberLoss(_Loss):
    function, takes = F.huber_loss, {"reduction": "mean", "delta": 1.0}


class TripletMarginLoss(_Loss):
    function = F.triplet_margin_loss
    takes = {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, "size_average": None, "reduce": None,
             "reduction": "mean"}


class MarginRankingLoss(_Loss):
    function, takes = F.margin_ranking_loss, {"margin": 0.0, "size_average": None, "reduce": None, "reduction": "mean"}


class CosineEmbeddingLoss(_Loss):
    function = F.cosine_embedding_loss
    takes = {"margin": 0.0, "size_average": None, "reduce": None, "reduction": "mean"}


class HingeEmbeddingLoss(_Loss):
    function, takes = F.hinge_embedding_loss, {"margin": 1.0, "size_average": None, "reduce": None, "reduction": "mean"}


class SoftMarginLoss(_Loss):
    function, takes = F.soft_margin_loss, {"size_average": None, "reduce": None, "reduction": "mean"}


class MultiMarginLoss(_Loss):
    function = F.multi_margin_loss
    takes = {"p": 1, "margin": 1.0, "weight": None, "size_average": None, "reduce": None, "reduction": "mean"}


class MultiLabelSoftMarginLoss(_Loss):
    function = F.multilabel_soft_margin_loss
    takes = {"weight": None, "size_average": None, "reduce": None, "reduction": "mean"}


class PoissonNLLLoss(_Loss):
    function = F.poisson_nll_loss
    takes = {"log_input": True, "full": False, "size_average": None, "eps": 1e-8, "reduce": None,
             "reduction": "mean"}


class GaussianNLLLoss(_Loss):
    function, takes = F.gaussian_nll_loss, {"full": False, "eps": 1e-6, "reduction": "mean"}


class CrossEntropyLoss(_Loss):
    function = F.cross_entropy
    takes = {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean",
             "label_smoothing": 0.0}


class MSELoss(_Loss):
    function, takes = F.mse_loss, {"size_average": None, "reduce": None, "reduction": "mean"}


class L1Loss(_Loss):
    function, takes = F.l1_loss, {"size_average": None, "reduce": None, "reduction": "mean"}


class NLLLoss(_Loss):
    function = F.nll_loss
    takes = {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean"}


class BCEWithLogitsLoss(_Loss):
    function = F.binary_cross_entropy_with_logits
    takes = {"weight": None, "size_average": None, "reduce": None, "reduction": "mean", "pos_weight": None}


class Dropout1d(Dropout):
    """Drops whole channels."""

    _dims = (2, 3)

    def forward(self, input):
        if input.ndim not in self._dims:
            raise RuntimeError(f"{type(self).__name__} takes an input of {self._dims[0]} or {self._dims[1]} dimensions, "
                               f"got {input.ndim}")
        if not self.training or self.p == 0:
            return input
        alone = input.ndim == self._dims[0]
        out = F.dropout2d(input.unsqueeze(0) if alone else input, self.p, True)
        return out.squeeze(0) if alone else out


class Dropout2d(Dropout1d):
    _dims = (3, 4)


class Dropout3d(Dropout1d):
    _dims = (4, 5)


class _Pool(_Function):
    """A pool whose windows are side by side unless a stride is given."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.stride is None:
            self.stride = self.kernel_size


class _MaxPool(_Pool):
    takes = {"kernel_size": _NEEDED, "stride": None, "padding": 0, "dilation": 1, "return_indices": False,
             "ceil_mode": False}
    hidden = "return_indices",


class MaxPool1d(_MaxPool):
    function = F.max_pool1d


class MaxPool2d(_MaxPool):
    function = F.max_pool2d


class MaxPool3d(_MaxPool):
    function = F.max_pool3d


class AvgPool1d(_Pool):
    function = F.avg_pool1d
    takes = {"kernel_size": _NEEDED, "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True}
    hidden = "ceil_mode", "count_include_pad"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for key in ("kernel_size", "stride", "padding"):  # torch keeps them as tuples here alone
            value = getattr(self, key)
            setattr(self, key, (value,) if isinstance(value, int) else tuple(value))


class _AvgPool(_Pool):
    takes = {"kernel_size": _NEEDED, "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True,
             "divisor_override": None}
    hidden = "ceil_mode", "count_include_pad", "divisor_override"


class AvgPool2d(_AvgPool):
    function = F.avg_pool2d


class AvgPool3d(_AvgPool):
    function = F.avg_pool3d


class _LPPool(_Function):
    takes = {"norm_type": _NEEDED, "kernel_size": _NEEDED, "stride": None, "ceil_mode": False}


class LPPool1d(_LPPool):
    function = F.lp_pool1d


class LPPool2d(_LPPool):
    function = F.lp_pool2d


class _AdaptiveAvgPool(_Function):
    takes = {"output_size": _NEEDED}


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    function = F.adaptive_avg_pool1d


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    function = F.adaptive_avg_pool2d


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    function = F.adaptive_avg_pool3d


class _AdaptiveMaxPool(_Function):
    takes = {"output_size": _NEEDED, "return_indices": False}
    hidden = "return_indices",


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    function = F.adaptive_max_pool1d


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    function = F.adaptive_max_pool2d


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    function = F.adaptive_max_pool3d
