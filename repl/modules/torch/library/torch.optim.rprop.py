"""torch.optim.rprop."""
from torch.optim import Rprop
