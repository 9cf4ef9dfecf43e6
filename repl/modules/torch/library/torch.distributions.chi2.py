"""torch.distributions.chi2."""
from torch.distributions import Chi2
