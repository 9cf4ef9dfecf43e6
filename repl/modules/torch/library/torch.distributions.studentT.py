"""torch.distributions.studentT."""
from torch.distributions import StudentT
