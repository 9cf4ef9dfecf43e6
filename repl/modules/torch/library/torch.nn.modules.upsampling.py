"""torch.nn.modules.upsampling."""
from torch.nn import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d
