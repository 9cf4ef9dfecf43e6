"""torch.distributions.lkj_cholesky."""
from torch.distributions import LKJCholesky
