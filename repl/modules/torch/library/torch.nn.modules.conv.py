"""torch.nn.modules.conv."""
from torch._nn_layers import _Conv as _ConvNd
from torch._nn_layers import _ConvTranspose as _ConvTransposeNd
from torch.nn import (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, LazyConv1d,
                      LazyConv2d, LazyConv3d)
