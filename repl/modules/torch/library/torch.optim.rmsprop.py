"""torch.optim.rmsprop."""
from torch.optim import RMSprop
