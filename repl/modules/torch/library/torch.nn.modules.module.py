"""torch.nn.modules.module."""
from torch.nn import Module
