"""torch.distributions.half_cauchy."""
from torch.distributions import HalfCauchy
