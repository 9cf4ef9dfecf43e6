"""torch.optim.adam."""
from torch.optim import Adam
