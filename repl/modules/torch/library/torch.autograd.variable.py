"""torch.autograd.variable."""
from torch.autograd import Variable
