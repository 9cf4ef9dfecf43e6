"""Methods of tensors that torch does not have as functions: in place, and what makes a tensor like this one."""
import torch
from torch import _hooks, _kiln, _tape, _tensor


def _into(self, result):
    """Stored where the tensor is."""
    if result.shape != self.shape:
        raise RuntimeError(f"a result of shape {tuple(result.shape)} does not fit into {tuple(self.shape)} in place")
    # torch's rule for operations in place: a result may lose precision and not its kind.
    if result.dtype.is_floating_point and not self.dtype.is_floating_point:
        raise RuntimeError(f"a result of {result.dtype} cannot be stored in place in a tensor of {self.dtype}")
    if self.dtype is torch.bool and result.dtype is not torch.bool:
        raise RuntimeError(f"a result of {result.dtype} cannot be stored in place in a tensor of bool")
    # copy_() keeps the memory, so views of the tensor see the result.
    return self.copy_(result)


def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of this tensor to `.grad` of the leaves that it is made of."""
    _tape.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def retain_grad(self):
    """backward() keeps the gradient of this result too."""
    _kiln.retain(self)


def register_hook(self, hook):
    """hook(gradient) is called by backward(); what it returns other than None is the gradient."""
    return _hooks.register_hook(self, hook)


def repeat(self, *args, repeats=None):
    sizes = _tensor._rest(_tensor._given(args, repeats, "repeat", "repeats"))
    if len(sizes) < self.ndim:
        raise RuntimeError(f"repeat() takes a number for each of the {self.ndim} dimensions")
    return _repeat(self, sizes)


@_kiln.lazily
def _repeat(self, sizes):
    return _tensor._repeated(self, sizes).contiguous()


def adjoint(self):
    return self.mH  # no tensor here is complex


def put_(self, index, source, accumulate=False):
    """Stores the elements of `source` at row-major positions."""
    if index.numel() != source.numel():
        raise RuntimeError(f"put_() of {source.numel()} elements at {index.numel()} places")
    if source.dtype != self.dtype:
        raise RuntimeError(f"put_() of {source.dtype} in a tensor of {self.dtype}")
    at = index.reshape(-1)
    _kiln.check_places(at, self.numel(), 0, True)
    target = self
    if self.ndim == 0:
        _kiln.runs_kernels(self)  # before it is viewed
        target = self.unsqueeze(0)
    # Of a place from the end too: its quotients and remainders are rounded down.
    target.index_put_(torch.unravel_index(at, target.shape), source.reshape(-1), accumulate)
    return self


def expand_as(self, other):
    return self.expand(other.shape)


def view_as(self, other):
    return self.view(other.shape)


def reshape_as(self, other):
    return self.reshape(other.shape)


def type_as(self, other):
    return self.to(other.dtype)


def where(self, condition, other):
    return torch.where(condition, self, other)


def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    return torch.full(size, fill_value, dtype=dtype or self.dtype, device=device or self.device,
                      requires_grad=requires_grad)


def new(self, *args, device=None):
    """A tensor of this dtype: of data, or of these sizes."""
    if len(args) == 1 and not isinstance(args[0], (int, torch.Size)):
        return torch.tensor(args[0], dtype=self.dtype, device=device or self.device)
    sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    return torch.empty(tuple(sizes) if args else (0,), dtype=self.dtype, device=device or self.device)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    return torch.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def cfloat(self, memory_format=None):
    return self.to(torch.complex64)


def cdouble(self, memory_format=None):
    return self.to(torch.complex128)


def unfold(self, dimension, size, step):
    """A view of windows."""
    if self.ndim == 0:
        raise RuntimeError("unfold() takes a tensor with dimensions")
    d = _tensor._dim(dimension, self.ndim)
    if size < 0 or size > self.shape[d] or step <= 0:
        raise RuntimeError(f"unfold() by windows of {size}, {step} apart, of a dimension of {self.shape[d]}")
    # Strides would hide the windows' elements from the gradient.
    if _kiln.records(self):
        return _windows(self, d, size, step)
    shape, strides = list(self.shape), list(self.stride())
    shape[d] = (shape[d] - size) // step + 1
    # A window moves by the step and its elements by one: two strides over the same memory.
    return self.as_strided(shape + [size], strides[:d] + [strides[d] * step] + strides[d + 1:] + [strides[d]],
                           self.storage_offset())


@_kiln.lazily
def _windows(x, d, size, step):
    """By places instead of strides."""
    count = (x.shape[d] - size) // step + 1
    at = _kiln.iota(count, x).unsqueeze(1) * step + _kiln.iota(size, x)
    return _tensor.movedim(x.index_select(d, at.reshape(-1)).unflatten(d, (count, size)), d + 1, -1)


def masked_fill_(self, mask, value):
    return _into(self, self.masked_fill(mask, value))


def masked_scatter_(self, mask, source):
    return self.copy_(torch.masked_scatter(self, mask, source))


@_kiln.lazily
def _positions(self, dim, index):
    """Where each element of `index` leads, in row-major order of the tensor; -1 outside."""
    out, stride = 0, 1
    for d in range(self.ndim - 1, -1, -1):
        if d == dim:
            place = index
        else:
            place = _tensor._along(_kiln.iota(index.shape[d], index, torch.int64), d, index.ndim)
        out = out + place * stride
        stride *= self.shape[d]
    # -1 is no place of any tensor: put() refuses it, where a number past the row would lead to the next row.
    return torch.where((index >= 0) & (index < self.shape[dim]), out, -1)


_FEW_PLACES = 4  # of a row, to be compared with each of its elements while the tensor is not computed yet


def _scattered(self, dim, index, src, how, include_self=True):
    dim = _tensor._dim(dim, self.ndim)
    if index.dtype not in (torch.int64, torch.int32):
        raise RuntimeError(f"places are of int64 or int32, not {index.dtype}")
    if index.numel() == 0:
        return self
    # One that is not computed yet can take the elements into its expression, without running a kernel.
    waiting = self.is_lazy()
    if not waiting:
        _kiln.runs_kernels(self)  # before it is viewed
    x = self.view(1) if self.ndim == 0 else self
    i = index.reshape(1) if index.ndim == 0 else index
    if not isinstance(src, torch.Tensor):
        # A number as a tensor of one element that is expanded: no memory for its copies.
        src = torch.full((1,) * i.ndim, src, dtype=self.dtype, device=self.device).expand(i.shape)
    elif src.dtype != self.dtype:
        raise RuntimeError(f"the elements to put are of {src.dtype}, and the tensor of {self.dtype}")
    src = src.reshape(1) if src.ndim == 0 else src
    if i.ndim != x.ndim or src.ndim != x.ndim:
        raise RuntimeError("the tensor, the places and the elements to put have as many dimensions")
    for d in range(x.ndim):
        if i.shape[d] > src.shape[d] or (d != dim and i.shape[d] > x.shape[d]):
            raise RuntimeError(f"places of {tuple(i.shape)} do not fit {tuple(x.shape)} and {tuple(src.shape)}")
    _kiln.check_places(i, x.shape[dim], dim, False, True)
    # Elements behind the places are allowed and never read.
    src = src[tuple(slice(0, n) for n in i.shape)]
    if waiting and how == "set" and i.shape[dim] <= _FEW_PLACES and all(d == dim or i.shape[d] == x.shape[d]
                                                                        for d in range(x.ndim)):
        at = _tensor._along(_kiln.iota(x.shape[dim], x, i.dtype), dim, x.ndim)
        value = x
        # In the order of the places, so that the last of equal ones wins.
        for k in range(i.shape[dim]):
            value = torch.where(at == i.narrow(dim, k, 1), src.narrow(dim, k, 1), value)
        return self.copy_(value.reshape(self.shape))
    if waiting:
        _kiln.runs_kernels(self)
        x = self.view(1) if self.ndim == 0 else self
    # Whole: each row has its own places, and a kernel of rows can put them without conflicts with others.
    whole = all(d == dim or i.shape[d] == x.shape[d] for d in range(x.ndim))
    if not include_self:
        # The old element must not count: it is set to what changes nothing, at the places that are named.
        _put(x, dim, i, whole, torch.full((), _neutral(x.dtype, how), dtype=x.dtype, device=x.device), "set")
    _put(x, dim, i, whole, src, how)
    return self


def _neutral(dtype, how):
    # What leaves a sum, a product, a maximum or a minimum as it is.
    if how in ("add", "prod"):
        return 0 if how == "add" else 1
    if dtype.is_floating_point:
        return float("-inf") if how == "amax" else float("inf")
    if dtype is torch.bool:
        return how == "amin"
    return torch.iinfo(dtype).min if how == "amax" else torch.iinfo(dtype).max


def _put(x, dim, index, whole, src, how):
    """By kernels or on the host. The order of additions to one place is open, as in torch on a GPU."""
    if not _kiln.runs_kernels(x, src):
        _kiln.put(x, _positions(x, dim, index), src, how)
        return
    # Imported here: only what puts elements needs those kernels.
    from torch import _put as kernels
    if whole:
        kernels.along(x, dim, index, src, how)
    else:
        kernels.at(x, _positions(x, dim, index), src, how, ordered=False)


def scatter_(self, dim, index, src=None, *, value=None, reduce=None):
    how = {None: "set", "add": "add", "multiply": "prod"}
    if reduce not in how:
        raise RuntimeError(f"scatter_(reduce={reduce!r}): it is 'add' or 'multiply'")
    given = value if src is None else src
    if given is None:
        raise TypeError("scatter_() takes src or value")
    return _scattered(self, dim, index, given, how[reduce])


def scatter_add_(self, dim, index, src):
    return _scattered(self, dim, index, src, "add")


def scatter_reduce_(self, dim, index, src, reduce, *, include_self=True):
    how = {"sum": "add", "prod": "prod", "amax": "amax", "amin": "amin"}
    if reduce == "mean":
        _scattered(self, dim, index, src, "add", include_self)
        ones = torch.ones(index.shape, dtype=torch.int64, device=self.device)
        # With the old elements each place counts one more.
        count = torch.full(self.shape, 1 if include_self else 0, dtype=torch.int64, device=self.device)
        # At least 1, so that a place without elements is divided by it and stays.
        count = count.scatter_add_(dim, index, ones).clamp(min=1)
        return self.copy_(self / count if self.dtype.is_floating_point else self // count)
    if reduce not in how:
        raise RuntimeError(f"scatter_reduce_(reduce={reduce!r}): it is sum, prod, mean, amax or amin")
    if reduce in ("amax", "amin") and _kiln.records(self, src) and not _kiln.is_no_grad():
        return self.copy_(_extremes_scattered(self.clone(), dim, index, src, reduce, include_self))
    return _scattered(self, dim, index, src, how[reduce], include_self)


def _extremes_scattered(x, dim, index, src, reduce, include_self):
    def rule(gradient, x, src):
        # Equal elements share the gradient.
        here, there = found == x, found.gather(dim, index) == src[tuple([slice(0, n) for n in index.shape])]
        count = here.to(x.dtype)
        if not include_self:
            count = count.scatter(dim, index, 0.0)
        shared = gradient / count.scatter_add(dim, index, there.to(x.dtype)).clamp(min=1)
        to_x = torch.where(here, shared, 0)
        if not include_self:
            to_x = to_x.scatter(dim, index, 0.0)
        to_src = torch.where(there, shared.gather(dim, index), 0)
        for d, n in enumerate(src.shape):
            if n > to_src.shape[d]:  # elements that no place names
                rest = list(to_src.shape)
                rest[d] = n - rest[d]
                to_src = torch.cat([to_src, to_src.new_zeros(rest)], d)
        return to_x, to_src

    with torch.no_grad():
        found = x.detach().clone().scatter_reduce_(dim, index, src.detach(), reduce, include_self=include_self)
    return _tape.with_rule(lambda *_: found, (x, src), rule)


def _indexed(self, dim, index, source, how):
    dim = _tensor._dim(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError("the places have one dimension")
    _kiln.runs_kernels(self)  # before it is viewed
    x = self.view(1) if self.ndim == 0 else self
    i = index.reshape(-1)
    shape = list(x.shape)
    shape[dim] = i.numel()
    if isinstance(source, torch.Tensor) and source.ndim == 0:
        source = source.reshape(1)
    if isinstance(source, torch.Tensor) and list(source.shape) != shape:
        raise RuntimeError(f"elements of {tuple(source.shape)} do not fit {i.numel()} places along dimension {dim} of "
                           f"{tuple(self.shape)}")
    # Rows by a kernel or on the host; with gradients each place is spelled out for every element.
    by_kernel = _kiln.runs_kernels(x, source)
    if i.numel() > 0 and (by_kernel or not _kiln.records(x, source)):
        if not isinstance(source, torch.Tensor):
            source = torch.full((), source, dtype=self.dtype, device=self.device)
        if source.dtype != self.dtype:
            raise RuntimeError(f"the elements to put are of {source.dtype}, and the tensor of {self.dtype}")
        if i.dtype not in (torch.int64, torch.int32):
            raise RuntimeError(f"places are of int64 or int32, not {i.dtype}")
        _kiln.check_places(i, x.shape[dim], dim, False)
        if not by_kernel:
            _kiln.put_items(x, (slice(None),) * dim + (i,), source, how)
            return self
        from torch import _put as kernels
        kernels.along(x, dim, i, source, how)
        return self
    _scattered(x, dim, _tensor._along(i, dim, x.ndim).expand(shape), source, how)
    return self


def index_add_(self, dim, index, source, *, alpha=1):
    return _indexed(self, dim, index, source if alpha == 1 else source * alpha, "add")


def index_copy_(self, dim, index, source):
    if index.dtype is not torch.int64:
        raise RuntimeError(f"index_copy_() takes places of int64, got {index.dtype}")
    return _indexed(self, dim, index, source, "set")


def index_fill_(self, dim, index, value):
    if index.dtype is not torch.int64:
        raise RuntimeError(f"index_fill_() takes places of int64, got {index.dtype}")
    n = self.shape[dim] if self.ndim else 1
    _kiln.check_places(index, n, 0, True)
    if _tensor._stays_there(value, self):
        shape = list(self.shape) or [1]
        shape[dim] = index.numel()
        value = value.to(self.dtype).expand(shape)
    else:
        value = _tensor._fits(value, self.dtype, "index_fill_()")
    return _indexed(self, dim, torch.where(index < 0, index + n, index), value, "set")


def index_put_(self, indices, values, accumulate=False):
    indices = tuple(indices)
    if not all(isinstance(i, torch.Tensor) for i in indices):
        raise TypeError("index_put_() takes a tuple of tensors")
    if not accumulate:
        # Without accumulation it is an assignment, which has kernels of its own.
        self[indices] = values
        return self
    if values.dtype != self.dtype:
        raise RuntimeError(f"the elements to put are of {values.dtype}, and the tensor of {self.dtype}")
    if _kiln.runs_kernels(self, values):
        from torch import _put as kernels
        at = kernels.positions(self, indices)
        kernels.at(self, at, values if values.numel() == 1 else values.expand(at.shape), "add")
        return self
    if _kiln.records(self, values):
        # The places of a tensor are taken from one that has its own numbers as elements.
        at = torch.arange(self.numel(), device=self.device).reshape(self.shape)[indices]
        _kiln.put(self, at, values.expand(at.shape), "add")
        return self
    return _kiln.put_items(self, indices, values, "add")


def fill_diagonal_(self, fill_value, wrap=False):
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    rows, columns = self.shape[0], self.shape[1]
    if self.ndim > 2 and any(n != rows for n in self.shape):
        raise RuntimeError("all dimensions of input must be of equal length")
    if self.ndim == 2 and not (wrap and rows > columns + 1):
        self.diagonal().fill_(fill_value)
    elif self.ndim == 2:
        # Of a tall matrix the diagonal starts again behind a row without an element of it.
        # One step down and one to the right, in row-major numbers.
        places = torch.arange(0, rows * columns, columns + 1, device=self.device)
        self[places // columns, places % columns] = fill_value
    else:
        self[(torch.arange(rows, device=self.device), ) * self.ndim] = fill_value
    return self


def bernoulli_(self, p=0.5):
    return self.copy_(_kiln.uniform(self.shape, self) < _tensor._probability(p))


def exponential_(self, lambd=1.0):
    if not self.is_floating_point():
        raise RuntimeError(f"exponential_() does not apply to tensors of {self.dtype}")
    # By the inverse of the distribution; 1 - u is above 0, as u is from 0 to below 1.
    return self.copy_(-torch.log(1 - _kiln.uniform(self.shape, self)) / lambd)


def random_(self, low=0, high=None):
    if high is None:
        low, high = 0, low or _most_random(self.dtype)
    return self.copy_(torch.randint(low, high, self.shape, device=self.device))


def _most_random(dtype):
    """Above what random_() gives: up to the last integer below which a float leaves none out, or the largest."""
    if dtype.is_floating_point:
        return int(2 / torch.finfo(dtype).eps) + 1
    return 2 if dtype is torch.bool else min(torch.iinfo(dtype).max + 1, 2**63 - 1)


def subtract_(self, other, *, alpha=1):
    return self.sub_(other, alpha=alpha)


def clip_(self, min=None, max=None):
    return self.clamp_(min, max)


def squeeze_(self, dim=None, *more):
    # The tensor itself becomes the view; a copy could not change its shape.
    return _kiln.become(self, self.squeeze(dim, *more))


def unsqueeze_(self, dim):
    return _kiln.become(self, self.unsqueeze(dim))


def transpose_(self, dim0, dim1):
    return _kiln.become(self, self.transpose(dim0, dim1))


def swapaxes_(self, axis0, axis1):
    return transpose_(self, axis0, axis1)


def t_(self):
    return _kiln.become(self, self.t())


def detach_(self):
    # A tensor keeps no history outside of torch.func.grad.
    return self


def maximum(self, other):
    return torch.maximum(self, other)


def minimum(self, other):
    return torch.minimum(self, other)


def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return torch.allclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


def equal(self, other):
    return torch.equal(self, other)


# --- what complex tensors have (torch._complex), of real ones


def is_complex(self):
    return False


def is_conj(self):
    return False


def conj(self):
    return self


def conj_physical(self):
    return self


def resolve_conj(self):
    return self


def resolve_neg(self):
    return self


def stft(self, n_fft, **kwargs):
    return torch.stft(self, n_fft, **kwargs)


def angle(self):
    return torch.angle(self)


def isreal(self):
    return torch.isreal(self)


# --- what other libraries' tensors have


def register_post_accumulate_grad_hook(self, hook):
    """hook(leaf) is called by backward() once `.grad` has all of it."""
    return _hooks.register_post_accumulate_grad_hook(self, hook)


def sum_to_size(self, *size):
    """The sum over the dimensions that were broadcast from that shape."""
    shape = list(_tensor._rest(size))
    more = self.ndim - len(shape)
    if more < 0 or any(n != m and n != 1 for n, m in zip(shape, self.shape[max(more, 0):])):
        raise RuntimeError(f"size {{{shape}}} is not expandable to size {{{list(self.shape)}}}.")
    dims = list(range(more)) + [more + d for d, n in enumerate(shape) if n == 1 and self.shape[more + d] != 1]
    return (self.sum(dims, True) if dims else self).reshape(shape) if dims or more else self


def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False):
    return torch.empty_strided(size, stride, dtype=dtype or self.dtype, device=device or self.device)


def dim_order(self, *, ambiguity_check=False):
    """The dimensions from the outermost in memory on."""
    strides, order = self.stride(), list(range(self.ndim))
    return tuple(sorted(order, key=lambda d: (-strides[d], d)))


def get_device(self):
    return torch.get_device(self)


def is_nonzero(self):
    return torch.is_nonzero(self)


def is_signed(self):
    return torch.is_signed(self)


def is_same_size(self, other):
    return self.shape == other.shape


def is_set_to(self, tensor):
    """Is it the same memory in the same order?"""
    return (self.data_ptr() == tensor.data_ptr() and self.shape == tensor.shape and self.stride() == tensor.stride()
            and self.dtype == tensor.dtype)


def is_inference(self):
    return False


def is_neg(self):
    return False


def is_shared(self):
    return self.is_cuda


def is_distributed(self):
    return False


def has_names(self):
    return False


def to_dense(self, dtype=None):
    return self if dtype is None else self.to(dtype)


def ipu(self):
    raise RuntimeError("tensors are on the CPU or on GPUs of CUDA")


def xpu(self):
    raise RuntimeError("tensors are on the CPU or on GPUs of CUDA")


def numpy(self, *, force=False):
    raise RuntimeError("numpy() needs Python and numpy; a script has x.tolist(), and torch.save(x, 'file.npy') writes "
                       "a file that numpy.load() reads")


def storage(self):
    raise RuntimeError("storages are no values of their own: x.untyped_storage().nbytes() is x.nbytes for a tensor of "
                       "its own, x.data_ptr() the address of a tensor, x.as_strided() other views of its memory")


def untyped_storage(self):
    storage(self)


def to_sparse(self, *args, **kwargs):
    raise NotImplementedError("tensors are dense: x.nonzero() has the places of elements that are not 0, and "
                              "index_add_() and scatter_add_() add at places")
