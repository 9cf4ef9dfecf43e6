"""torch.nn.utils: parameters as one vector, norms of gradients and of weights."""
import torch


def parameters_to_vector(parameters):
    return torch.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Stores the parts of a vector in the parameters, in their order."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    at = 0
    with torch.no_grad():
        for p in parameters:
            p.copy_(vec[at:at + p.numel()].view(p.shape))
            at += p.numel()


def _with_gradients(parameters):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    return [p for p in parameters if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements as one vector."""
    tensors = list(tensors)
    if not tensors:
        return torch.tensor(0.0)
    norms = torch.stack([torch.linalg.vector_norm(t, norm_type, dtype=torch.float32) for t in tensors])
    total = torch.linalg.vector_norm(norms, norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
                           "cannot be clipped.")
    return total


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales gradients so that their norm is at most max_norm; the norm that they had."""
    held = _with_gradients(parameters)
    with torch.no_grad():
        total = get_total_norm([p.grad for p in held], norm_type, error_if_nonfinite)
        scale = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
        for p in held:
            p.grad.mul_(scale.to(p.grad.dtype))
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales gradients of which that is the norm."""
    with torch.no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for p in _with_gradients(parameters):
            p.grad.mul_(scale.to(p.grad.dtype))


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Bounds each element of the gradients."""
    with torch.no_grad():
        for p in _with_gradients(parameters):
            p.grad.clamp_(-float(clip_value), float(clip_value))


def _computed_before(module, name, compute):
    """module.NAME is compute() from now on, anew before each call."""
    hook = module.register_forward_pre_hook(lambda module, args: setattr(module, name, compute(module)))
    module.__dict__.setdefault("_computed", {})[name] = hook
    setattr(module, name, compute(module))
    return module


def _parameter_again(module, name, kind, parts):
    hook = module.__dict__.get("_computed", {}).pop(name, None)
    if hook is None or parts[0] not in module._parameters:
        raise ValueError(f"{kind} of '{name}' not found in {module}")
    hook.remove()
    value = getattr(module, name).detach().clone()
    delattr(module, name)
    for part in parts:
        delattr(module, part)
    module.register_parameter(name, torch.nn.Parameter(value))
    return module


def weight_norm(module, name="weight", dim=0):
    """The parameter as NAME_g times the directions of NAME_v."""
    from torch import _norms_of_weights as norms
    weight = module._parameters[name].detach()
    delattr(module, name)
    module.register_parameter(name + "_g", torch.nn.Parameter(norms.norm_but(weight, dim)))
    module.register_parameter(name + "_v", torch.nn.Parameter(weight))
    by = norms.WeightNorm(dim)
    return _computed_before(module, name, lambda m: by.forward(getattr(m, name + "_g"), getattr(m, name + "_v")))


def remove_weight_norm(module, name="weight"):
    return _parameter_again(module, name, "weight_norm", [name + "_g", name + "_v"])


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """The parameter, NAME_orig from now on, over its largest singular value, which calls in training come nearer."""
    from torch import _norms_of_weights as norms
    weight = module._parameters[name].detach()
    power = norms.Power(n_power_iterations, eps, (1 if norms.transposes(module) else 0) if dim is None else dim)
    delattr(module, name)
    module.register_parameter(name + "_orig", torch.nn.Parameter(weight))
    u, v = power.begin(weight)
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    power.step(weight, u, v, 1)

    def compute(m):
        weight, u, v = [getattr(m, name + part) for part in ("_orig", "_u", "_v")]
        if m.training:
            power.step(weight, u, v)
        return power.divided(weight, u, v)

    return _computed_before(module, name, compute)


def remove_spectral_norm(module, name="weight"):
    return _parameter_again(module, name, "spectral_norm", [name + "_orig", name + "_u", name + "_v"])


# --- layers that become one


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """The weights and the bias of a convolution that does what follows it in eval() too."""
    bias = torch.zeros_like(bn_rm) if conv_b is None else conv_b
    scale = torch.rsqrt(bn_rv + bn_eps) * (torch.ones_like(bn_rm) if bn_w is None else bn_w)
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    bias = (bias - bn_rm) * scale + (torch.zeros_like(bn_rm) if bn_b is None else bn_b)
    return (torch.nn.Parameter(weight.detach(), conv_w.requires_grad),
            torch.nn.Parameter(bias.detach().to(conv_w.dtype), conv_w.requires_grad))


def _fused(module, bn, weights):
    import copy
    if module.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError("Only support fusing a batch norm that tracks its running statistics.")
    made = copy.deepcopy(module)
    with torch.no_grad():
        weight, bias = weights(made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    made._parameters["weight"], made._parameters["bias"] = weight, bias
    return made


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that does what the batch norm behind it does too."""
    return _fused(conv, bn, lambda *args: fuse_conv_bn_weights(*args, transpose=transpose))


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear, bn):
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fused(linear, bn, fuse_linear_bn_weights)


# --- modules


def skip_init(module_cls, *args, **kwargs):
    """The module, whose parameters are to be filled by its user."""
    return module_cls(*args, **kwargs)


def convert_conv2d_weight_memory_format(module, memory_format):
    """The module: results are row-major, whatever order weights have."""
    return module


def convert_conv3d_weight_memory_format(module, memory_format):
    return module
