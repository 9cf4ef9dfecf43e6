"""torch.distributions.kl."""
from torch.distributions import kl_divergence, register_kl
