"""torch.autograd.function."""
from torch.autograd import Function
from torch._autograd import FunctionCtx, once_differentiable
