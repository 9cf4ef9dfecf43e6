"""torch.optim.sgd."""
from torch.optim import SGD
