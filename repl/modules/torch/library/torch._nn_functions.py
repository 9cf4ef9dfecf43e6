"""Modules of torch.nn without parameters, whose arguments go to the function of torch.nn.functional."""
import torch.nn.functional as F
from torch._nn import _Function


class LogSigmoid(_Function):
    function = F.logsigmoid


class SELU(_Function):
    function = F.selu


class CELU(_Function):
    function = F.celu


class ReLU6(_Function):
    function = F.relu6


class Hardtanh(_Function):
    function = F.hardtanh


class Hardsigmoid(_Function):
    function = F.hardsigmoid


class Hardswish(_Function):
    function = F.hardswish


class Hardshrink(_Function):
    function = F.hardshrink


class Softshrink(_Function):
    function = F.softshrink


class Softsign(_Function):
    function = F.softsign


class Softmin(_Function):
    function = F.softmin


class Tanhshrink(_Function):
    function = F.tanhshrink


class Threshold(_Function):
    function = F.threshold


class Mish(_Function):
    function = F.mish


class GLU(_Function):
    function = F.glu


class PixelShuffle(_Function):
    function = F.pixel_shuffle


class PixelUnshuffle(_Function):
    function = F.pixel_unshuffle


class ChannelShuffle(_Function):
    function = F.channel_shuffle


class LocalResponseNorm(_Function):
    function = F.local_response_norm


class Upsample(_Function):
    function = F.interpolate


class Fold(_Function):
    function = F.fold


class Unfold(_Function):
    function = F.unfold


class CosineSimilarity(_Function):
    function = F.cosine_similarity


class PairwiseDistance(_Function):
    function = F.pairwise_distance


class BCELoss(_Function):
    function = F.binary_cross_entropy


class KLDivLoss(_Function):
    function = F.kl_div


class SmoothL1Loss(_Function):
    function = F.smooth_l1_loss


class HuberLoss(_Function):
    function = F.huber_loss


class TripletMarginLoss(_Function):
    function = F.triplet_margin_loss


class MarginRankingLoss(_Function):
    function = F.margin_ranking_loss


class CosineEmbeddingLoss(_Function):
    function = F.cosine_embedding_loss


class HingeEmbeddingLoss(_Function):
    function = F.hinge_embedding_loss


class SoftMarginLoss(_Function):
    function = F.soft_margin_loss


class MultiMarginLoss(_Function):
    function = F.multi_margin_loss


class MultiLabelSoftMarginLoss(_Function):
    function = F.multilabel_soft_margin_loss


class PoissonNLLLoss(_Function):
    function = F.poisson_nll_loss


class GaussianNLLLoss(_Function):
    function = F.gaussian_nll_loss
