"""torch.utils.data.distributed."""
from torch.utils.data import DistributedSampler
