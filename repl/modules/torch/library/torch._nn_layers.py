"""Modules of torch.nn with parameters whose operation is a function of torch.nn.functional: convolutions, further norms
and pads; and lists of parameters."""
import torch
import torch.nn.functional as F
from torch._nn import Module, Parameter, _BatchNorm, _ByName, _InOrder, _Uniform


def _tuple(n, x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,) * n


class _Conv(_Uniform):
    """What convolutions of one to three dimensions and their transposes have in common."""

    rank, transposed, output_padding = 0, False, ()

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__()
        n = self.rank
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} and {out_channels} channels are no multiples of {groups} groups")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode={padding_mode!r}: it is 'zeros', 'reflect', 'replicate' or 'circular'")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = _tuple(n, kernel_size), _tuple(n, stride), _tuple(n, dilation)
        self.padding, self.padding_mode = padding if isinstance(padding, str) else _tuple(n, padding), padding_mode
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self._empty_parameter("weight", channels + self.kernel_size, device, dtype)
        self._empty_parameter("bias", (out_channels,), device, dtype, bias)
        self.reset_parameters()

    def _convolved(self, function, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            around = []
            for d in range(self.rank - 1, -1, -1):  # pad() begins with the last dimension
                total = self.dilation[d] * (self.kernel_size[d] - 1)
                sides = {"same": (total // 2, total - total // 2), "valid": (0, 0)}
                around += sides[padding] if isinstance(padding, str) else (padding[d], padding[d])
            input, padding = F.pad(input, around, self.padding_mode), 0
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        n = self.rank
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, plain in (("padding", (0,) * n), ("dilation", (1,) * n), ("output_padding", (0,) * n), ("groups", 1)):
            value = getattr(self, name)
            if value != plain and value != ():
                text += f", {name}={value}"
        text += ", bias=False" if self.bias is None else ""
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class Conv1d(_Conv):
    rank = 1

    def forward(self, input):
        return self._convolved(F.conv1d, input)


class Conv2d(_Conv):
    rank = 2

    def forward(self, input):
        return self._convolved(F.conv2d, input)


class Conv3d(_Conv):
    rank = 3

    def forward(self, input):
        return self._convolved(F.conv3d, input)


class _ConvTranspose(_Conv):
    transposed, function = True, None

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None):
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}(padding_mode={padding_mode!r}): it is 'zeros'")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                         device, dtype)
        self.output_padding = _tuple(self.rank, output_padding)

    def forward(self, input, output_size=None):
        more = self.output_padding if output_size is None else self._padding_to(input, output_size)
        return type(self).function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
                                   self.dilation)

    def _padding_to(self, input, output_size):
        """The output_padding that gives this size."""
        wanted = list(output_size)
        if len(wanted) not in (self.rank, input.ndim):
            raise ValueError(f"{type(self).__name__}: output_size has {self.rank} elements (or {input.ndim}), got "
                             f"{len(wanted)}")
        more, padding = [], _tuple(self.rank, self.padding)
        for i, size in enumerate(wanted[-self.rank:]):
            least = (input.shape[i - self.rank] - 1) * self.stride[i] - 2 * padding[i] + (
                self.dilation[i] * (self.kernel_size[i] - 1) + 1)
            if not least <= size < least + self.stride[i]:
                raise ValueError(f"requested an output size of {wanted}, but dimension {i} may have {least} to "
                                 f"{least + self.stride[i] - 1} elements (for an input of {list(input.shape)})")
            more.append(size - least)
        return tuple(more)


class ConvTranspose1d(_ConvTranspose):
    rank, function = 1, F.conv_transpose1d


class ConvTranspose2d(_ConvTranspose):
    rank, function = 2, F.conv_transpose2d


class ConvTranspose3d(_ConvTranspose):
    rank, function = 3, F.conv_transpose3d


class BatchNorm3d(_BatchNorm):
    dims = (5,)


class _InstanceNorm(_BatchNorm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None,
                 dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input):
        self._check_input_dim(input)
        alone = input.ndim == self.dims[0]
        x = input.unsqueeze(0) if alone else input
        use_input = self.training or self.running_mean is None
        out = F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias, use_input,
                              0.0 if self.momentum is None else self.momentum, self.eps)
        return out.squeeze(0) if alone else out


class InstanceNorm1d(_InstanceNorm):
    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    dims = (4, 5)


class PReLU(Module):
    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(torch.full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class Bilinear(_Uniform):
    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self._empty_parameter("weight", (out_features, in1_features, in2_features), device, dtype)
        self._empty_parameter("bias", (out_features,), device, dtype, bias)
        self.reset_parameters()

    def _inputs(self):
        return self.in1_features  # as torch draws them

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")


class Unflatten(Module):
    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Softmax2d(Module):
    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d takes an input of 3 or 4 dimensions, got {input.ndim}")
        return F.softmax(input, -3)


class _Pad(Module):
    rank, mode, value = 2, "constant", 0.0

    def __init__(self, padding):
        super().__init__()
        self.padding = _tuple(2 * self.rank, padding)

    def forward(self, input):
        return F.pad(input, self.padding, self.mode, self.value if self.mode == "constant" else None)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_Pad):
    rank = 1


class ZeroPad2d(_Pad):
    pass


class ReflectionPad1d(_Pad):
    rank, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    mode = "reflect"


class ReplicationPad1d(_Pad):
    rank, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    mode = "replicate"


class ConstantPad1d(_Pad):
    rank = 1

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    rank = 2


def _parameter(value):
    return value if value.is_parameter else Parameter(value)


class ParameterList(_InOrder):
    _held = property(lambda self: self._parameters)

    def __init__(self, values=None):
        super().__init__()
        self.extend(values or [])

    def append(self, value):
        self._parameters[str(len(self))] = _parameter(value)
        return self

    def __setitem__(self, i, value):
        self._parameters[self._name_at(i)] = _parameter(value)


class ParameterDict(_ByName):
    _held = property(lambda self: self._parameters)

    def __init__(self, parameters=None):
        super().__init__()
        self.update(parameters or {})

    def __setitem__(self, key, value):
        self._parameters[key] = _parameter(value)


class EmbeddingBag(Module):
    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 mode="mean", sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm = max_norm
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        if _weight is None:
            _weight = torch.empty((num_embeddings, embedding_dim), device=device, dtype=dtype).normal_()
            if padding_idx is not None:
                _weight[padding_idx] = 0
        self.weight = Parameter(_weight)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, mode=self.mode,
                               per_sample_weights=per_sample_weights, include_last_offset=self.include_last_offset,
                               padding_idx=self.padding_idx)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}{padding}"
