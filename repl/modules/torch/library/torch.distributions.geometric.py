"""torch.distributions.geometric."""
from torch.distributions import Geometric
