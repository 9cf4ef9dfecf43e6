"""torch.nn.modules.container."""
from torch.nn import Module, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
