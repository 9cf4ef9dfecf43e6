"""torch.nn.utils.parametrize: attributes of modules that are computed from parameters whenever they are read."""
import torch
from torch import nn


class ParametrizationList(nn.ModuleList):
    """What an attribute is computed by, one after the other, and the parameters that it is computed of."""

    def __init__(self, modules, original, unsafe=False):
        super().__init__(modules)
        self.is_tensor = True
        for m in reversed(list(modules)):
            if hasattr(m, "right_inverse"):
                with torch.no_grad():
                    original = m.right_inverse(original)
        if isinstance(original, torch.Tensor):
            self.original = nn.Parameter(original.detach())
            return
        self.is_tensor, self.ntensors = False, len(original)
        for i, t in enumerate(original):
            setattr(self, f"original{i}", nn.Parameter(t.detach()))

    def forward(self):
        if self.is_tensor:
            made = self.original
            for m in self:
                made = m(made)
            return made
        made = self[0](*[getattr(self, f"original{i}") for i in range(self.ntensors)])
        for m in list(self)[1:]:
            made = m(made)
        return made


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """From now on module.NAME is parametrization(its parameter)."""
    if is_parametrized(module, tensor_name):
        held = module.parametrizations[tensor_name]
        if hasattr(parametrization, "right_inverse"):
            raise NotImplementedError("a second parametrization with a right_inverse() is not supported")
        held.append(parametrization)
        return module
    if tensor_name not in module._parameters:
        raise ValueError(f"Module '{type(module).__name__}' does not have a parameter with name '{tensor_name}'")
    held = ParametrizationList([parametrization], module._parameters[tensor_name])
    shape = module._parameters[tensor_name].shape
    with torch.no_grad():
        made = held()
    if made.shape != shape and not unsafe:
        raise ValueError(f"a parametrization of '{tensor_name}' gives shape {tuple(made.shape)}, not {tuple(shape)}")
    delattr(module, tensor_name)
    if "parametrizations" not in module._modules:
        module.parametrizations = nn.ModuleDict()
    module.parametrizations[tensor_name] = held
    return module


def is_parametrized(module, tensor_name=None):
    held = module._modules.get("parametrizations")
    return held is not None and (len(held) > 0 if tensor_name is None else tensor_name in held)


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """The attribute is a parameter again: as it was computed, or the original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {type(module).__name__} does not have a parametrization on {tensor_name}")
    held = module.parametrizations[tensor_name]
    if not leave_parametrized and not held.is_tensor:
        raise ValueError("leave_parametrized=False takes a parametrization of one tensor")
    with torch.no_grad():
        value = held() if leave_parametrized else held.original
    del module.parametrizations[tensor_name]
    if len(module.parametrizations) == 0:
        del module.parametrizations
    module.register_parameter(tensor_name, nn.Parameter(value.detach()))
    return module
