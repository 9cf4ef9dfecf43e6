"""Functions of tensors that are methods too, of places and shapes, made of torch's others. What stays one expression is
marked `lazily`."""
import torch
from torch import _kiln

lazily = _kiln.lazily


_dim = _kiln.dimension


def _dims(dims, rank):
    if isinstance(dims, int):
        dims = (dims,)
    out = [_dim(d, rank) for d in dims]
    if len(set(out)) != len(out):
        raise RuntimeError("a dimension is named twice")
    return out


def _rest(args):
    """What *args holds: ints, or one tuple of them."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)


def _needs_tensor(x, function):
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{function}() takes a tensor, got '{type(x).__name__}'")


def _needs_tensors(function, *xs):
    for x in xs:
        _needs_tensor(x, function)


def _given(args, by_name, function, name):
    """What *args holds where it may be an argument by name too: flip(x, 0), flip(x, dims=(0,))."""
    if by_name is None:
        if not args:
            raise TypeError(f"{function}() needs the argument {name!r}")
        return args
    if args:
        raise TypeError(f"{function}() got the argument {name!r} twice")
    return (by_name,)


def _wide(x):
    """Halves are computed in float32, and rounded once."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _floats(x):
    return x if x.is_floating_point() else x.float()


def _common(*tensors):
    """The dtype of what is made of tensors: one without dimensions counts only where it is of a wider kind."""
    def of(ts):
        dtype = None
        for t in ts:
            dtype = t.dtype if dtype is None else torch.promote_types(dtype, t.dtype)
        return dtype

    wide, small = of([t for t in tensors if t.ndim]), of([t for t in tensors if not t.ndim])
    if wide is None or small is None:
        return small or wide
    return torch.result_type(torch.empty(0, dtype=wide, device="cpu"), torch.empty((), dtype=small, device="cpu"))


def _factor(number, dtype):
    """A factor of tensors of that dtype: as in torch, a float loses its fraction among integers."""
    return number if dtype.is_floating_point or isinstance(number, torch.Tensor) else int(number)


def _of_floats(input, what):
    if not input.is_floating_point():
        raise NotImplementedError(f"{what}() does not apply to tensors of {input.dtype}")
    return input


def _along(places, dim, rank):
    return places.reshape([1] * dim + [-1] + [1] * (rank - dim - 1))  # broadcasts along that dimension alone


def _zero(x):
    return False if x.dtype is torch.bool else 0


def _stays_there(value, input):
    """Whether the number is a tensor that is not read here: it has a gradient, or is on the tensor's GPU."""
    return isinstance(value, torch.Tensor) and (
        _kiln.records(value) or value.ndim == 0 and value.is_cuda and value.device == input.device)


def _fits(value, dtype, what):
    """The number as that dtype's, or torch's error where it has no place for it."""
    if isinstance(value, torch.Tensor):
        if value.ndim > 0:
            raise RuntimeError(f"{what} takes a number or a tensor without dimensions")
        value = value.item()
    if dtype is torch.bool:
        return bool(value)
    torch.full((), value, dtype=dtype, device="cpu")  # an error where it does not fit
    return float(value) if dtype.is_floating_point else int(value)


def _probability(p):
    """It, if it is from 0 to 1; what a GPU holds is not looked at."""
    if not isinstance(p, torch.Tensor):
        if not 0 <= p <= 1:
            raise RuntimeError(f"a probability is from 0 to 1, not {p}")
    elif not p.is_floating_point():
        raise RuntimeError(f"probabilities are floats, not {p.dtype}")
    elif not p.is_cuda and not bool(((p >= 0) & (p <= 1)).all()):
        raise RuntimeError("probabilities are from 0 to 1")
    return p


# --- elements by their places


@lazily
def gather(input, dim, index, *, sparse_grad=False):
    dim = _dim(dim, input.ndim)
    if index.dtype not in (torch.int64, torch.int32):
        raise RuntimeError(f"gather() takes places of int64 or int32, got {index.dtype}")
    x, i = (t.reshape(1) if t.ndim == 0 else t for t in (input, index))
    if x.ndim != i.ndim and index.numel() > 0:
        raise RuntimeError(f"gather() takes places of as many dimensions as the tensor, got {index.ndim} and {input.ndim}")
    if index.numel() == 0:  # torch lets such an index have any dimensions
        return input.new_empty(index.shape)
    for d in range(x.ndim):
        if d != dim and i.shape[d] > x.shape[d]:
            raise RuntimeError(f"gather() of {tuple(input.shape)} at places of {tuple(index.shape)}: dimension {d} is too long")
    _kiln.check_places(i, x.shape[dim], dim, False, True)
    x = x[tuple(slice(None) if d == dim else slice(0, i.shape[d]) for d in range(x.ndim))]
    return _kiln.take(x, [dim], [i]).reshape(index.shape)


@lazily
def index_select(input, dim, index):
    dim = _dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_select() takes places of one dimension, got {index.ndim}")
    if index.dtype not in (torch.int64, torch.int32):
        raise RuntimeError(f"index_select() takes places of int64 or int32, got {index.dtype}")
    x = input.reshape(1) if input.ndim == 0 else input
    _kiln.check_places(index, x.shape[dim], dim, False)
    out = _kiln.take(x, [dim], [_along(index.reshape(-1), dim, x.ndim)])
    return out.reshape(()) if input.ndim == 0 else out


@lazily
def take_along_dim(input, indices, dim=None):
    if indices.dtype is not torch.int64:
        raise RuntimeError(f"take_along_dim() takes places of int64, got {indices.dtype}")
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.ndim != indices.ndim:
        raise RuntimeError("take_along_dim() takes tensors of as many dimensions")
    dim = _dim(dim, input.ndim)
    if input.ndim == 0:
        return gather(input, dim, indices)
    _kiln.check_places(indices, input.shape[dim], dim, False)
    return _kiln.take(input, [dim], [indices])


@lazily
def take(input, index):
    if index.dtype is not torch.int64:
        raise RuntimeError(f"take() takes places of int64, got {index.dtype}")
    if index.numel() == 0:
        return input.new_empty(index.shape)
    _kiln.check_places(index, input.numel(), 0, True)
    return _kiln.take(input.reshape(-1), [0], [index.reshape(-1)]).reshape(index.shape)


@lazily
def masked_fill(input, mask, value):
    if mask.dtype is not torch.bool:
        raise RuntimeError(f"masked_fill() takes a mask of bool, got {mask.dtype}")
    if not _stays_there(value, input):
        value = _fits(value, input.dtype, "masked_fill()")
    return torch.where(mask, value, input).to(input.dtype)


def masked_select(input, mask):
    if mask.dtype is not torch.bool:
        raise RuntimeError(f"masked_select() takes a mask of bool, got {mask.dtype}")
    x, m = torch.broadcast_tensors(input, mask)
    return x.reshape(-1)[m.reshape(-1)]


def nonzero(input, *, as_tuple=False):
    if as_tuple:
        return _kiln.nonzero(input.reshape(1) if input.ndim == 0 else input)
    places = _kiln.nonzero(input)
    if not places:
        return torch.empty((int(input != 0), 0), dtype=torch.int64, device=input.device)
    return torch.stack(list(places), 1) if len(places) > 1 else places[0].reshape(-1, 1)


def argwhere(input):
    return nonzero(input)


def count_nonzero(input, dim=None):
    return (input != 0).sum() if dim is None else (input != 0).sum(dim)


def select(input, dim, index):
    if input.ndim == 0:
        raise IndexError("select() cannot be applied to a tensor without dimensions")
    dim = _dim(dim, input.ndim)
    if index < -input.shape[dim] or index >= input.shape[dim]:
        raise IndexError(f"select(): index {index} of dimension {dim} with size {input.shape[dim]}")
    return input[(slice(None),) * dim + (index,)]


def narrow(input, dim, start, length):
    if input.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a tensor without dimensions")
    dim = _dim(dim, input.ndim)
    n = input.shape[dim]
    start = int(start)
    if start < -n or start > n:
        raise IndexError(f"narrow(): start {start} of dimension {dim} with size {n}")
    start = start + n if start < 0 else start
    if length < 0 or start + length > n:
        raise RuntimeError(f"narrow(): {length} elements from {start} of dimension {dim} with size {n}")
    return input[(slice(None),) * dim + (slice(start, start + length),)]


def unbind(input, dim=0):
    if input.ndim == 0:
        raise RuntimeError("unbind() cannot be applied to a tensor without dimensions")
    dim = _dim(dim, input.ndim)
    return tuple(select(input, dim, i) for i in range(input.shape[dim]))


def split(tensor, split_size_or_sections=None, dim=0, *, split_size=None):
    input = tensor
    split_size_or_sections, = _given(() if split_size_or_sections is None else (split_size_or_sections,), split_size,
                                     "split", "split_size_or_sections")
    if input.ndim == 0:
        raise RuntimeError("split() takes a tensor with dimensions")
    dim = _dim(dim, input.ndim)
    n, sizes = input.shape[dim], split_size_or_sections
    if isinstance(sizes, int):
        if sizes < 0 or (sizes == 0 and n > 0):
            raise RuntimeError(f"split() into parts of {sizes}")
        if n == 0:
            return (input.narrow(dim, 0, 0), )  # another tensor, as each part is
        sizes = [min(sizes, n - i) for i in range(0, n, sizes)]
    if sum(sizes) != n or any(s < 0 for s in sizes):
        raise RuntimeError(f"split() into parts of {list(sizes)} of a dimension of {n}")
    parts, start = [], 0
    for size in sizes:
        parts.append(narrow(input, dim, start, size))
        start += size
    return tuple(parts)


def chunk(input, chunks, dim=0):
    if input.ndim == 0:
        raise RuntimeError("chunk() takes a tensor with dimensions")
    if chunks <= 0:
        raise RuntimeError(f"chunk() into {chunks} parts")
    dim = _dim(dim, input.ndim)
    n = input.shape[dim]
    if n == 0:
        return tuple(input for _ in range(chunks))  # torch gives all parts, each of them empty
    return split(input, (n + chunks - 1) // chunks, dim)


def tensor_split(input, indices_or_sections, dim=0):
    dim = _dim(dim, input.ndim)
    n, at = input.shape[dim], indices_or_sections
    if isinstance(at, torch.Tensor):
        at = at.tolist()
    if isinstance(at, int):
        if at <= 0:
            raise RuntimeError(f"tensor_split() into {at} parts")
        sizes = [n // at + (1 if i < n % at else 0) for i in range(at)]
        return split(input, sizes, dim)
    bounds = [0] + [max(0, min(n, i + n if i < 0 else i)) for i in at] + [n]
    return tuple(input[(slice(None),) * dim + (slice(a, max(a, b)),)] for a, b in zip(bounds, bounds[1:]))


@lazily
def flip(input, *args, dims=None):
    dims = _dims(_rest(_given(args, dims, "flip", "dims")), input.ndim)
    dims = [d for d in dims if input.ndim > 0 and input.shape[d] > 1]
    if not dims:
        return input.clone()  # torch gives a new tensor in any case
    places = [_along(input.shape[d] - 1 - _kiln.iota(input.shape[d], input), d, input.ndim) for d in dims]
    return _kiln.take(input, dims, places)


def fliplr(input):
    if input.ndim < 2:
        raise RuntimeError("fliplr() takes a tensor of two dimensions or more")
    return flip(input, 1)


def flipud(input):
    if input.ndim < 1:
        raise RuntimeError("flipud() takes a tensor of one dimension or more")
    return flip(input, 0)


@lazily
def roll(input, shifts, dims=None):
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None or (isinstance(dims, (tuple, list)) and len(dims) == 0):
        if len(shifts) != 1:
            raise RuntimeError("roll() without dims takes one shift")
        return roll(input.reshape(-1), shifts, 0).reshape(input.shape)
    dims = [_dim(d, input.ndim) for d in ((dims,) if isinstance(dims, int) else dims)]
    if len(dims) != len(shifts):
        raise RuntimeError(f"roll() of {len(shifts)} shifts along {len(dims)} dims")
    if input.numel() == 0 or input.ndim == 0:
        return input.clone()
    by = {}
    for d, s in zip(dims, shifts):
        by[d] = by.get(d, 0) + s  # two shifts of one dimension add up
    # A place below 0 counts from the end.
    places = [_along(_kiln.iota(input.shape[d], input) - s % input.shape[d], d, input.ndim) for d, s in by.items()]
    return _kiln.take(input, list(by), places)


@lazily
def tril(input, diagonal=0):
    if input.ndim < 2:
        raise RuntimeError("tril() takes a tensor of two dimensions or more")
    return torch.where(_offset(input) <= diagonal, input, _zero(input))


@lazily
def triu(input, diagonal=0):
    if input.ndim < 2:
        raise RuntimeError("triu() takes a tensor of two dimensions or more")
    return torch.where(_offset(input) >= diagonal, input, _zero(input))


def _offset(x):
    """The column less the row."""
    return _kiln.iota(x.shape[-1], x) - _kiln.iota(x.shape[-2], x).unsqueeze(1)


@lazily
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    n, rank = input.shape[-1] + abs(offset), input.ndim + 1
    i = _kiln.iota(n, input)
    rows, columns = (i, i - offset) if offset < 0 else (i + offset, i)
    values = _kiln.take(input.unsqueeze(-1), [input.ndim - 1], [columns.reshape(-1, 1)], True)
    on = i == rows.unsqueeze(1) if offset >= 0 else i.unsqueeze(1) == (i - offset).unsqueeze(0)
    if offset < 0:
        values = _kiln.take(input.unsqueeze(-2), [input.ndim], [i.reshape(1, -1)], True)
    return movedim(torch.where(on, values, _zero(input)), (-2, -1), (_dim(dim1, rank), _dim(dim2, rank)))


def diagonal(input, offset=0, dim1=0, dim2=1):
    """A view, as torch's."""
    if input.ndim < 2:
        raise IndexError("diagonal() takes a tensor of two dimensions or more")
    a, b = _dim(dim1, input.ndim), _dim(dim2, input.ndim)
    if a == b:
        raise RuntimeError("diagonal() takes two different dimensions")
    if _kiln.records(input):  # strides would hide from the gradient where elements come from
        return _diagonal(input, offset, a, b)
    shape, strides, start = list(input.shape), list(input.stride()), input.storage_offset()
    n = min(shape[a], shape[b] - offset) if offset >= 0 else min(shape[a] + offset, shape[b])
    n = max(n, 0)
    if n > 0:
        start += offset * strides[b] if offset >= 0 else -offset * strides[a]
    kept = [d for d in range(input.ndim) if d not in (a, b)]
    return input.as_strided([shape[d] for d in kept] + [n], [strides[d] for d in kept] + [strides[a] + strides[b]], start)


@lazily
def _diagonal(input, offset, a, b):
    """By places instead of strides."""
    rows, columns = max(-offset, 0), max(offset, 0)
    n = max(min(input.shape[a] - rows, input.shape[b] - columns), 0)
    x = movedim(input, (a, b), (-2, -1))
    if n == 0:
        return x[..., 0, :0]  # an empty result takes no places
    i = _kiln.iota(n, input).reshape(-1, 1)
    return _kiln.take(x, [x.ndim - 2, x.ndim - 1], [i + rows, i + columns]).squeeze(-1)


def diag(input, diagonal=0):
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError("diag() takes a vector or a matrix")
    return torch.diagonal(input, diagonal).clone()


def trace(input):
    if input.ndim != 2:
        raise RuntimeError("trace() takes a matrix")
    return diagonal(input).sum()


@lazily
def tile(input, *args, dims=None):
    dims = _rest(_given(args, dims, "tile", "dims"))
    dims = [1] * (input.ndim - len(dims)) + dims
    return _repeated(input, dims).contiguous()


def _repeated(x, repeats):
    if any(r < 0 for r in repeats):
        raise RuntimeError(f"a tensor cannot be repeated {repeats} times")
    x = x.reshape([1] * (len(repeats) - x.ndim) + list(x.shape))
    if 0 in repeats or x.numel() == 0:
        return x.new_empty([n * r for n, r in zip(x.shape, repeats)])
    dims = [d for d, r in enumerate(repeats) if r != 1 and x.shape[d] != 1]  # one element is expanded below
    if dims:
        places = [_along(_kiln.iota(x.shape[d] * repeats[d], x) % x.shape[d], d, x.ndim) for d in dims]
        x = _kiln.take(x, dims, places)
    shape = [n if d in dims else n * r for d, (n, r) in enumerate(zip(x.shape, repeats))]
    return x.expand(shape) if list(x.shape) != shape else x if dims else x.clone()


def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    if dim is None:
        input, dim = input.reshape(-1), 0
    elif input.ndim == 0:
        raise IndexError("repeat_interleave() along a dimension of a tensor without any")
    dim = _dim(dim, input.ndim)
    if isinstance(repeats, torch.Tensor) and repeats.numel() == 1:
        repeats = repeats.item()
    if isinstance(repeats, int):
        if repeats < 0:
            raise RuntimeError(f"an element cannot be repeated {repeats} times")
        return _interleaved(input, repeats, dim)
    if repeats.ndim > 1 or repeats.is_floating_point() or repeats.dtype is torch.bool:
        raise RuntimeError("repeat_interleave() takes a vector of integers")
    if repeats.is_cuda and repeats.numel() > 0:
        return index_select(input, dim, _repeated_places(repeats, input.shape[dim], output_size))
    counts = repeats.tolist()
    if any(n < 0 for n in counts):
        raise RuntimeError("repeat_interleave() takes counts that are not negative")
    if output_size not in (None, sum(counts)):
        raise RuntimeError(f"repeat_interleave() of {sum(counts)} elements into {output_size}")
    if len(counts) != input.shape[dim]:
        raise RuntimeError(f"repeat_interleave() by {len(counts)} counts of a dimension of {input.shape[dim]}")
    places = [i for i, n in enumerate(counts) for _ in range(n)]
    return index_select(input, dim, torch.tensor(places, dtype=torch.int64, device=input.device))


def _repeated_places(repeats, n, output_size):
    """Each place as often as it is repeated. Of the GPU the size of the result is read, unless it is given."""
    if repeats.numel() != n:
        raise RuntimeError(f"repeat_interleave() by {repeats.numel()} counts of a dimension of {n}")
    ends = repeats.long().cumsum(0)
    if output_size is None:
        output_size, least = torch.stack([ends[-1], repeats.long().min()]).tolist()
        if least < 0:
            raise RuntimeError("repeat_interleave() takes counts that are not negative")
    return torch.searchsorted(ends, torch.arange(output_size, device=ends.device), right=True)


@lazily
def _interleaved(input, repeats, dim):
    if repeats == 1 or input.ndim == 0:
        return input.clone()
    n = input.shape[dim] * repeats
    if n == 0 or input.numel() == 0:
        return input.new_empty([n if d == dim else s for d, s in enumerate(input.shape)])
    return _kiln.take(input, [dim], [_along(_kiln.iota(n, input) // repeats, dim, input.ndim)])


# --- shapes


def movedim(input, source, destination):
    rank = input.ndim
    if isinstance(source, int) and isinstance(destination, int) and rank > 0:  # most calls
        order = list(range(rank))
        order.insert(_dim(destination, rank), order.pop(_dim(source, rank)))
        return input.permute(order)  # the result is never the very tensor
    source, destination = _dims(source, rank), _dims(destination, rank)
    if len(source) != len(destination):
        raise RuntimeError("movedim() takes as many destinations as sources")
    if rank == 0:
        return input
    if source == destination:
        return input.view(input.shape)  # the result is never the very tensor
    order = [None] * input.ndim
    for s, d in zip(source, destination):
        order[d] = s
    rest = iter([d for d in range(input.ndim) if d not in source])  # what is not named keeps its order
    return input.permute([next(rest) if d is None else d for d in order])


def moveaxis(input, source, destination):
    return movedim(input, source, destination)


def swapaxes(input, axis0, axis1):
    return input.transpose(axis0, axis1)


def _parts(input, indices_or_sections, dim, what):
    at = indices_or_sections
    if isinstance(at, int) and (at <= 0 or input.shape[dim] % at):
        raise RuntimeError(f"{what}() of {input.shape[dim]} elements into {at} equal parts")
    return tensor_split(input, at, dim)


def hsplit(input, indices_or_sections):
    if input.ndim < 1:
        raise RuntimeError("hsplit() takes a tensor of one dimension or more")
    return _parts(input, indices_or_sections, 0 if input.ndim == 1 else 1, "hsplit")


def vsplit(input, indices_or_sections):
    if input.ndim < 2:
        raise RuntimeError("vsplit() takes a tensor of two dimensions or more")
    return _parts(input, indices_or_sections, 0, "vsplit")


def dsplit(input, indices_or_sections):
    if input.ndim < 3:
        raise RuntimeError("dsplit() takes a tensor of three dimensions or more")
    return _parts(input, indices_or_sections, 2, "dsplit")


def fix(input):
    return input.trunc()


def as_strided(input, size, stride, storage_offset=None):
    return input.as_strided(size, stride, storage_offset)


def swapdims(input, dim0, dim1):
    return input.transpose(dim0, dim1)


def broadcast_to(input, *args, size=None):
    return input.expand(*_given(args, size, "broadcast_to", "size"))


def flatten(input, start_dim=0, end_dim=-1):
    a, b = _dim(start_dim, input.ndim), _dim(end_dim, input.ndim)
    if a > b:
        raise RuntimeError("flatten(): start_dim comes after end_dim")
    if input.ndim == 0:
        return input.reshape(1)
    if a == b:
        return input
    n = 1
    for d in range(a, b + 1):
        n *= input.shape[d]
    return input.reshape(list(input.shape[:a]) + [n] + list(input.shape[b + 1:]))


def unflatten(input, dim, sizes):
    dim = _dim(dim, input.ndim)
    return input.reshape(list(input.shape[:dim]) + _sizes(input.shape[dim], sizes) + list(input.shape[dim + 1:]))


def _sizes(n, sizes):
    sizes, known = list(sizes), 1
    for s in sizes:
        known *= 1 if s == -1 else s
    sizes = [n // known if s == -1 and known else s for s in sizes]
    total = 1
    for s in sizes:
        total *= s
    if total != n:
        raise RuntimeError(f"unflatten(): {sizes} does not multiply to {n}")
    return sizes


def ravel(input):
    return input.contiguous().reshape(-1)
