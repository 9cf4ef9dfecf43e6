"""torch.nn.modules.linear."""
from torch.nn import Bilinear, Identity, LazyLinear, Linear
