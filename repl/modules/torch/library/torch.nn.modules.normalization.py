"""torch.nn.modules.normalization."""
from torch.nn import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm
