"""torch.nn.parameter."""
from torch.nn import Buffer, Parameter
