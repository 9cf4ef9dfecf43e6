"""torch.distributions.pareto."""
from torch.distributions import Pareto
