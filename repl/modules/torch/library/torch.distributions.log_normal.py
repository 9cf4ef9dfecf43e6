"""torch.distributions.log_normal."""
from torch.distributions import LogNormal
