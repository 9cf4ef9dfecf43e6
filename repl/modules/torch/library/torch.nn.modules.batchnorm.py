"""torch.nn.modules.batchnorm."""
from torch._nn import _BatchNorm
from torch.nn import (BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm, LazyBatchNorm1d, LazyBatchNorm2d,
                      LazyBatchNorm3d)
