"""torch.nn: modules as containers of tensors, and the common layers."""
import math
import torch
import torch.nn.functional as F
from torch import _hooks, _kiln, _tape


class Parameter:
    """The tensor itself; a module that gets it as an attribute lists it among its parameters."""

    def __new__(cls, data=None, requires_grad=True):
        data = torch.empty((0,)) if data is None else data
        if data.requires_grad:
            data = data.detach()  # a leaf of its own over the same memory: what it was computed of gets no gradient
        data.is_parameter = True  # before: a model that is only asked keeps nothing for gradients
        data.requires_grad = requires_grad
        return data

    @classmethod
    def __class_instancecheck__(cls, obj):
        return isinstance(obj, torch.Tensor) and obj.is_parameter


class Buffer:
    """A tensor that becomes a buffer of the module that gets it as an attribute."""

    def __init__(self, data=None, *, persistent=True):
        self.data, self.persistent = torch.empty((0,)) if data is None else data.detach(), persistent


class _Keys(tuple):
    # Properties over a tuple, as torch's named tuple is unpacked and read by name.
    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])

    def __repr__(self):
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


class Module:
    training = True

    def __init__(self):
        self._made()

    def _made(self):
        # At the first use rather than in __init__: a class may set attributes before it calls super().__init__().
        d = self.__dict__
        if "_parameters" not in d:
            d["_parameters"], d["_buffers"], d["_modules"] = {}, {}, {}
            d["_non_persistent_buffers_set"] = set()

    def __setattr__(self, name, value):
        self._made()
        if isinstance(value, Buffer):
            for other in (self._parameters, self._modules, self.__dict__):
                other.pop(name, None)
            self.register_buffer(name, value.data, value.persistent)
            return
        groups = self._parameters, self._buffers, self._modules
        parameter = isinstance(value, torch.Tensor) and value.is_parameter
        # A name moves between the groups with the kind of its value, so that a layer never counts twice.
        if parameter or (isinstance(value, Module) and name not in self._parameters):
            group = self._parameters if parameter else self._modules
            for other in groups + (self.__dict__,):
                if other is not group:
                    other.pop(name, None)
            group[name] = value
            return
        kinds = ("parameter", "nn.Parameter"), ("buffer", "Tensor"), ("child module", "nn.Module")
        # A name that stands in a group keeps its kind: a plain list in place of a weight would silently leave the
        # parameters.
        for group, (what, kind) in zip(groups, kinds):
            if name in group:
                if value is not None and not (what == "buffer" and isinstance(value, torch.Tensor)):
                    raise TypeError(f"cannot assign '{type(value).__name__}' as {what} '{name}' (torch.{kind} or None "
                                    "expected)")
                group[name] = value
                return
        if name == "__class__":
            object.__setattr__(self, name, value)
            return
        self.__dict__[name] = value

    def __getattr__(self, name):
        for group in ("_parameters", "_buffers", "_modules"):
            # The group may be missing while the object is being made.
            held = self.__dict__.get(group, {})
            if name in held:
                return held[name]
        computed = self.__dict__.get("_modules", {}).get("parametrizations")
        if computed is not None and name in computed:
            return computed[name]()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        for group in (self._parameters, self._buffers, self._modules, self.__dict__):
            if name in group:
                del group[name]
                self._non_persistent_buffers_set.discard(name)
                return
        raise AttributeError(name)

    def __call__(self, *args, **kwargs):
        d = self.__dict__
        if not (d.get("_forward_pre_hooks") or d.get("_forward_hooks") or d.get("_backward_hooks")):
            return self.forward(*args, **kwargs)
        return _hooks.called(self, args, kwargs)

    def _hook(self, group, hook, prepend):
        return _hooks.Handle(self.__dict__.setdefault(group, {}), hook, prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """hook(module, args, output) after each call; what it returns other than None is the output."""
        if always_call:
            raise NotImplementedError("register_forward_hook(always_call=True) is not supported")
        return self._hook("_forward_hooks", hook if with_kwargs else _hooks.without_kwargs(hook), prepend)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """hook(module, args) before each call; what it returns other than None are the arguments."""
        return self._hook("_forward_pre_hooks", hook if with_kwargs else _hooks.of_arguments(hook), prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """hook(module, grad_input, grad_output) when backward() has both; what it returns are the gradients of the
        inputs."""
        return self._hook("_backward_hooks", hook, prepend)

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"'{type(self).__name__}' has no forward()")

    def register_parameter(self, name, param):
        self._made()
        self._parameters[name] = param

    def _empty_parameter(self, name, shape, device, dtype, wanted=True):
        """A parameter that is not filled yet. One that is not wanted is None, which keeps its name readable."""
        self.register_parameter(name, Parameter(torch.empty(shape, device=device, dtype=dtype)) if wanted else None)

    def register_buffer(self, name, tensor, persistent=True):
        self._made()
        self._buffers[name] = tensor
        # state_dict() leaves these out.
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name, module):
        self.add_module(name, module)

    def add_module(self, name, module):
        self._made()
        self._modules[name] = module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        # A module that stands at two places is given once, by the first of its names.
        memo = set() if memo is None else memo
        if remove_duplicate:
            if id(self) in memo:
                return
            memo.add(id(self))
        yield prefix, self
        for name, m in self._modules.items():
            if m is not None:
                yield from m.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def modules(self):
        for _, m in self.named_modules():
            yield m

    def named_children(self):
        seen = set()
        for name, m in self._modules.items():
            if m is not None and id(m) not in seen:
                seen.add(id(m))
                yield name, m

    def children(self):
        for _, m in self.named_children():
            yield m

    def _named(self, group, prefix, recurse=True, remove_duplicate=True):
        seen = set()
        for path, m in self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]:
            for name, t in m.__dict__.get(group, {}).items():
                if t is not None and not (remove_duplicate and id(t) in seen):
                    seen.add(id(t))
                    yield path + ("." if path else "") + name, t

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        for _, p in self.named_parameters("", recurse):
            yield p

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, b in self.named_buffers("", recurse):
            yield b

    def state_dict(self):
        out = {}
        # By all its names, so that what is shared is found under each.
        for path, m in self.named_modules(remove_duplicate=False):
            # Parameters before buffers, as torch lists them.
            for group in ("_parameters", "_buffers"):
                for name, t in m.__dict__.get(group, {}).items():
                    if t is not None and name not in m._non_persistent_buffers_set:
                        out[path + ("." if path else "") + name] = t
        return out

    def load_state_dict(self, state_dict, strict=True):
        own = self.state_dict()
        missing, unexpected = [k for k in own if k not in state_dict], [k for k in state_dict if k not in own]
        wrong = []
        for what, keys in (("Missing", missing), ("Unexpected", unexpected)):
            if strict and keys:
                listed = ", ".join(f'"{k}"' for k in keys)
                wrong.append(f"{what} key(s) in state_dict: {listed}. ")
        # All shapes are compared before the first copy, so that a state that does not fit changes nothing.
        for k, t in own.items():
            if k in state_dict and state_dict[k].shape != t.shape:
                wrong.append(f"size mismatch for {k}: copying a param with shape {state_dict[k].shape} from "
                             f"checkpoint, the shape in current model is {t.shape}.")
        if wrong:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(wrong))
        with torch.no_grad():
            for k, t in own.items():
                if k in state_dict:
                    # Into the tensors that there are: whoever holds one sees the new values.
                    t.copy_(state_dict[k])
        return _Keys((missing, unexpected))

    def _apply(self, f):
        done = {}  # what became of each, so that a tensor of two names stays one
        for m in self.modules():
            for group in (m._parameters, m._buffers):
                for name, t in group.items():
                    if t is None:
                        continue
                    if id(t) not in done:
                        if group is not m._parameters:
                            made = f(t)
                        elif _kiln.records(t):
                            made = _tape.converted(t, f)
                        else:
                            made = Parameter(f(t), t.requires_grad)  # again: what `f` gives is a plain tensor
                        # The old one is kept, or the next one might get its id.
                        done[id(t)] = t, made
                    group[name] = done[id(t)][1]
        return self

    def apply(self, fn):
        for m in self.children():
            m.apply(fn)
        fn(self)
        return self

    def to(self, *args, memory_format=None, **options):
        def moved(t):
            kwargs = dict(options)
            if t.ndim in (4, 5) and memory_format is not None:
                kwargs["memory_format"] = memory_format
            dtypes = [a for a in args if isinstance(a, torch.dtype)] + [v for k, v in kwargs.items() if k == "dtype"]
            # Integers, as the count of batches, go to the device and keep their type.
            if not t.is_floating_point() and dtypes:
                places = [a for a in args if not isinstance(a, torch.dtype)]
                return t.to(*places, **{k: v for k, v in kwargs.items() if k != "dtype"})
            return t.to(*args, **kwargs)

        return self._apply(moved)

    def to_empty(self, *, device, recurse=True):
        return self._apply(lambda t: torch.empty_like(t, device=device))

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def share_memory(self):
        return self

    def compile(self, *args, **kwargs):
        """Nothing to do: what a module computes is compiled as it is."""

    def get_submodule(self, target):
        m = self
        for name in target.split(".") if target else []:
            m = getattr(m, name)
            if not isinstance(m, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return m

    def _held_in(self, group, target, what):
        path, _, name = target.rpartition(".")
        m = self.get_submodule(path)
        if name not in m.__dict__[group]:
            raise AttributeError(f"`{name}` is not {what} of {type(m).__name__}")
        return m.__dict__[group][name]

    def get_parameter(self, target):
        return self._held_in("_parameters", target, "a parameter")

    def get_buffer(self, target):
        return self._held_in("_buffers", target, "a buffer")

    def _floats(self, dtype):
        # Only the floats change: a table of places must stay one of integers.
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def half(self):
        return self._floats(torch.float16)

    def bfloat16(self):
        return self._floats(torch.bfloat16)

    def float(self):
        return self._floats(torch.float32)

    def double(self):
        return self._floats(torch.float64)

    def cuda(self, device=None):
        return self._apply(lambda t: t.cuda(device))

    def cpu(self):
        return self._apply(lambda t: t.cpu())

    def train(self, mode=True):
        for m in self.modules():
            # Past __setattr__, which would look through the groups first.
            m.__dict__["training"] = mode
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        _tape.clear(self.parameters(), set_to_none)

    def extra_repr(self):
        return ""

    def _named_texts(self):
        return [(name, repr(m)) for name, m in self._modules.items()]

    def __repr__(self):
        inner = [self.extra_repr()] if self.extra_repr() else []
        # Indented by two columns a level, as torch's repr is.
        rows = [f"({name}): " + text.replace("\n", "\n  ") for name, text in self._named_texts()]
        if not rows:
            return f"{type(self).__name__}({', '.join(inner)})"
        return f"{type(self).__name__}(\n  " + "\n  ".join(inner + rows) + "\n)"


class _InOrder(Module):
    """What Sequential, ModuleList and ParameterList have in common: modules or parameters by their places."""

    _held = property(lambda self: self._modules)

    def _name_at(self, i):
        if not -len(self) <= i < len(self):
            raise IndexError(f"index {i} is out of range")
        return list(self._held)[i]

    def __len__(self):
        return len(self._held)

    def __iter__(self):
        # A copy, since a loop may append to the container that it goes through.
        return iter(list(self._held.values()))

    def __getitem__(self, i):
        if isinstance(i, slice):
            return type(self)(list(self._held.values())[i])
        return self._held[self._name_at(i)]

    def __setitem__(self, i, module):
        self._held[self._name_at(i)] = module

    def __delitem__(self, i):
        held = list(self._held.values())
        del held[i]
        self._renumber(held)

    def _renumber(self, held):
        self._held.clear()
        for m in held:
            self.append(m)

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for m in list(modules):
            self.append(m)
        return self

    def __iadd__(self, modules):
        return self.extend(modules)

    def insert(self, i, module):
        held = list(self._held.values())
        held.insert(i, module)
        self._renumber(held)
        return self

    def pop(self, i):
        module = self[i]
        del self[i]
        return module


class Sequential(_InOrder):
    def __init__(self, *modules):
        super().__init__()
        # Of a dict the layers have the names that it gives.
        if len(modules) == 1 and isinstance(modules[0], dict):
            named = list(modules[0].items())
        else:
            named = [(str(i), m) for i, m in enumerate(modules)]
        for name, m in named:
            self.add_module(name, m)

    def forward(self, input):
        for m in self._modules.values():
            input = m(input)
        return input

    def __getitem__(self, i):
        # A slice shares its layers with the whole, and with them the weights and the names.
        if isinstance(i, slice):
            return type(self)(dict(list(self._modules.items())[i]))
        return self._modules[self._name_at(i)]


class ModuleList(_InOrder):
    def __init__(self, modules=None):
        super().__init__()
        self.extend(modules or [])

    def _named_texts(self):
        """Equal neighbours as one, as torch shows them."""
        rows = []
        for i, m in enumerate(self):
            text = repr(m)
            if rows and rows[-1][2] == text:
                rows[-1][1] = i
            else:
                rows.append([i, i, text])
        return [(str(i), text) if i == j else (f"{i}-{j}", f"{j - i + 1} x {text}") for i, j, text in rows]


class _ByName(Module):
    """What ModuleDict and ParameterDict have in common: modules or parameters by names."""

    _held = property(lambda self: self._modules)

    def __getitem__(self, name):
        return self._held[name]

    def __contains__(self, name):
        return name in self._held

    def __len__(self):
        return len(self._held)

    def __iter__(self):
        return iter(list(self._held))

    def __delitem__(self, name):
        del self._held[name]

    def update(self, given):
        """Of a mapping, or of pairs of a name and what it names."""
        for name, value in list(given.items() if hasattr(given, "items") else given):
            self[name] = value

    def pop(self, name):
        return self._held.pop(name)

    def keys(self):
        return self._held.keys()

    def values(self):
        return self._held.values()

    def items(self):
        return self._held.items()


class ModuleDict(_ByName):
    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def __setitem__(self, name, module):
        self.add_module(name, module)


class Identity(Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class _Uniform(Module):
    """A module whose parameters are drawn evenly from -bound to bound, all with the same one."""

    def _inputs(self):
        """The inputs of one output."""
        return math.prod(self.weight.shape[1:])

    def reset_parameters(self):
        # torch's kaiming_uniform_ with a = sqrt(5) is this bound too.
        n = self._inputs()
        bound = 1 / math.sqrt(n) if n > 0 else 0.0
        with torch.no_grad():
            for p in self.parameters(recurse=False):
                p.uniform_(-bound, bound)


class Linear(_Uniform):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._empty_parameter("weight", (out_features, in_features), device, dtype)
        self._empty_parameter("bias", (out_features,), device, dtype, bias)
        self.reset_parameters()

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,
                 scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        made = _weight is None
        if made:
            _weight = torch.empty((num_embeddings, embedding_dim), device=device, dtype=dtype).normal_()
        self.weight = Parameter(_weight, not _freeze)
        if made and padding_idx is not None:
            # As torch begins; it is no mask, so training may move the row away from zero.
            with torch.no_grad():
                self.weight[padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0,
                        scale_grad_by_freq=False, sparse=False):
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        return cls(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, plain in (("padding_idx", None), ("max_norm", None), ("norm_type", 2.0),
                            ("scale_grad_by_freq", False)):
            value = getattr(self, name)
            text += "" if value == plain else f", {name}={value}"
        return text + (", sparse=True" if self.sparse else "")


def _shape(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        ones = Parameter(torch.ones(shape, device=device, dtype=dtype)) if elementwise_affine else None
        zeros = Parameter(torch.zeros(shape, device=device, dtype=dtype)) if elementwise_affine and bias else None
        self.register_parameter("weight", ones)
        self.register_parameter("bias", zeros)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        ones = torch.ones(self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(ones) if elementwise_affine else None)

    # Without eps F.rms_norm takes the smallest of the input's dtype.
    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        super().__init__()
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        ones = torch.ones((num_channels,), device=device, dtype=dtype)
        zeros = torch.zeros((num_channels,), device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(ones) if affine else None)
        self.register_parameter("bias", Parameter(zeros) if affine else None)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class _BatchNorm(Module):
    dims = ()  # of the inputs that it takes

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None,
                 dtype=None, *, bias=True):
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        self.track_running_stats = track_running_stats

        def filled(make):
            return make((num_features,), device=device, dtype=dtype)

        self.register_parameter("weight", Parameter(filled(torch.ones)) if affine else None)
        self.register_parameter("bias", Parameter(filled(torch.zeros)) if affine and bias else None)
        self.register_buffer("running_mean", filled(torch.zeros) if track_running_stats else None)
        self.register_buffer("running_var", filled(torch.ones) if track_running_stats else None)
        # An int64 of no dimensions on the device: it is a buffer and moves with the others.
        batches = torch.zeros((), dtype=torch.int64, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", batches)

    def _check_input_dim(self, input):
        if input.ndim not in self.dims:
            wanted = " or ".join([f"{n}D" for n in self.dims])
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # the mean of all batches
                momentum = self.num_batches_tracked.float().reciprocal()
        # Without statistics of its own each batch is normed by itself, also in eval().
        training = self.training or self.running_mean is None
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, training,
                            0.0 if momentum is None else momentum, self.eps)

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")


class BatchNorm1d(_BatchNorm):
    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    dims = (4,)


class Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Flatten(Module):
    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


_NEEDED = object()  # in place of the default of an argument that has none


class _Function(Module):
    """A module without parameters: its arguments are attributes, and go to the function by their names."""

    function = None
    takes = None  # arguments with their defaults, in torch's order; None: they go to the function as they are given
    hidden = ()  # arguments that torch's repr leaves out

    def __init__(self, *args, **kwargs):
        super().__init__()
        self.args, self.kwargs = args, kwargs
        if self.takes is None:
            return
        name, names = type(self).__name__, list(self.takes)
        if len(args) > len(names):
            raise TypeError(f"{name}() takes at most {len(names)} arguments, got {len(args)}")
        given = dict(zip(names, args))
        for key, value in kwargs.items():
            if key not in self.takes or key in given:
                raise TypeError(f"{name}() has no argument {key!r}" if key not in self.takes else
                                f"{name}() got the argument {key!r} twice")
            given[key] = value
        for key, default in self.takes.items():
            if key not in given and default is _NEEDED:
                raise TypeError(f"{name}() needs the argument {key!r}")
            setattr(self, key, given.get(key, default))

    def extra_repr(self):
        given = [(key, getattr(self, key)) for key in self.takes or {} if key not in self.hidden]
        return ", ".join([f"{key}={value!r}" for key, value in given if key != "inplace" or value])

    def forward(self, *inputs):
        # Through the class: of the instance it would be a method and get the module as its input.
        if self.takes is None:
            return type(self).function(*inputs, *self.args, **self.kwargs)
        return type(self).function(*inputs, **{key: getattr(self, key) for key in self.takes})


class ReLU(_Function):
    function, takes = F.relu, {"inplace": False}


class GELU(_Function):
    function, takes = F.gelu, {"approximate": "none"}


class SiLU(_Function):
    function, takes = F.silu, {"inplace": False}


class Sigmoid(_Function):
    def forward(self, input):
        return torch.sigmoid(input)


class Tanh(_Function):
    def forward(self, input):
        return torch.tanh(input)


class Softplus(_Function):
    function, takes = F.softplus, {"beta": 1.0, "threshold": 20.0}


class LeakyReLU(_Function):
    function, takes = F.leaky_relu, {"negative_slope": 0.01, "inplace": False}


class ELU(_Function):
    function, takes = F.elu, {"alpha": 1.0, "inplace": False}


class Softmax(_Function):
    function, takes = F.softmax, {"dim": None}


class LogSoftmax(_Function):
    function, takes = F.log_softmax, {"dim": None}
