"""torch.optim.adamax."""
from torch.optim import Adamax
