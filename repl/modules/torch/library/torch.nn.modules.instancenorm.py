"""torch.nn.modules.instancenorm."""
from torch._nn_layers import _InstanceNorm
from torch.nn import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
