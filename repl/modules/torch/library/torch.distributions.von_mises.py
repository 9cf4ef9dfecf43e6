"""torch.distributions.von_mises."""
from torch.distributions import VonMises
