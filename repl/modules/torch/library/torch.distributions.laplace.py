"""torch.distributions.laplace."""
from torch.distributions import Laplace
