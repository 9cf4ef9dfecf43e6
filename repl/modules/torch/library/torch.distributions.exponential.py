"""torch.distributions.exponential."""
from torch.distributions import Exponential
