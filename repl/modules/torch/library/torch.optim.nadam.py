"""torch.optim.nadam."""
from torch.optim import NAdam
