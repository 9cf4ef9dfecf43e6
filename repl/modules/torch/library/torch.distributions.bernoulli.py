"""torch.distributions.bernoulli."""
from torch.distributions import Bernoulli
