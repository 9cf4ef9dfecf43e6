"""torch.optim.adagrad."""
from torch.optim import Adagrad
