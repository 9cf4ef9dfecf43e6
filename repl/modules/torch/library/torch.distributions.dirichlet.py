"""torch.distributions.dirichlet."""
from torch.distributions import Dirichlet
