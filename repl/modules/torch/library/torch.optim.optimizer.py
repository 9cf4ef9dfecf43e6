"""torch.optim.optimizer."""
from torch.optim import Optimizer
