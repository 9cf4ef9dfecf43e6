"""torch.distributions.wishart."""
from torch.distributions import Wishart
