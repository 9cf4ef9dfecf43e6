"""torch.nn.modules.flatten."""
from torch.nn import Flatten, Unflatten
