"""Functions of torch that are no methods, made of others, and its settings."""
import math

import torch
from torch import _kiln, _tensor

lazily = _kiln.lazily


# --- dtypes


class finfo:
    """What a float dtype can hold."""

    _OF = {  # bits, digits after the first, least and greatest exponent, resolution
        torch.float16: (16, 10, -14, 15, 1e-3),
        torch.bfloat16: (16, 7, -126, 127, 1e-2),
        torch.float32: (32, 23, -126, 127, 1e-6),
        torch.float64: (64, 52, -1022, 1023, 1e-15),
        torch.float8_e5m2: (8, 2, -14, 15, 1.0),
        torch.float8_e4m3fn: (8, 3, -6, 8, 1.0),
    }

    def __init__(self, type=None):
        type = get_default_dtype() if type is None else type
        if type not in self._OF:
            raise TypeError(f"finfo() takes a float dtype, got {type}")
        self.bits, digits, least, most, self.resolution = self._OF[type]
        self.dtype = str(type)[6:]
        self.eps = 2.0 ** -digits
        self.max = (2.0 - self.eps) * 2.0 ** most if type is not torch.float8_e4m3fn else 448.0
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** least

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})")


class iinfo:
    """What an integer dtype can hold."""

    def __init__(self, type):
        if type.is_floating_point or type is torch.bool:
            raise TypeError(f"iinfo() takes an integer dtype, got {type}")
        self.bits, self.dtype = 8 * type.itemsize, str(type)[6:]
        self.min = -(1 << (self.bits - 1)) if type.is_signed else 0
        self.max = (1 << (self.bits - (1 if type.is_signed else 0))) - 1

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def promote_types(type1, type2):
    return _kiln.promoted(type1, type2)


def result_type(tensor1, tensor2):
    def empty(x):
        if not isinstance(x, torch.Tensor):
            return x
        return torch.zeros((0,) if x.ndim else (), dtype=x.dtype, device="cpu")

    a, b = empty(tensor1), empty(tensor2)
    if not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor):
        return (torch.tensor(a, device="cpu") * b).dtype
    return (a * b).dtype


def can_cast(from_, to):
    def rank(t):
        return 2 if t.is_floating_point else 0 if t is torch.bool else 1

    if from_ is not torch.bool and to is torch.bool:
        return False
    return rank(from_) <= rank(to)


def is_floating_point(input):
    return input.is_floating_point()


def is_complex(input):
    return False


def is_nonzero(input):
    return bool(input != 0)


def as_tensor(data, dtype=None, device=None):
    if not isinstance(data, torch.Tensor):
        return torch.tensor(data, dtype=dtype, device=device)
    return data.to(device=data.device if device is None else device, dtype=data.dtype if dtype is None else dtype)


# --- shapes


def broadcast_shapes(*shapes):
    out = []
    for shape in shapes:
        shape = [shape] if isinstance(shape, int) else list(shape)
        n = max(len(out), len(shape))
        a, b = [1] * (n - len(out)) + out, [1] * (n - len(shape)) + shape
        for x, y in zip(a, b):
            if x != y and x != 1 and y != 1:
                raise RuntimeError(f"the shapes {tuple(out)} and {tuple(shape)} do not broadcast")
        out = [y if x == 1 else x for x, y in zip(a, b)]
    return torch.Size(out)


def broadcast_tensors(*tensors):
    shape = broadcast_shapes(*[t.shape for t in tensors])
    return tuple(t.expand(shape) for t in tensors)


def meshgrid(*tensors, indexing="ij"):
    tensors = _tensor._rest(tensors)
    if any(t.ndim > 1 for t in tensors):
        raise RuntimeError(f"meshgrid() takes vectors and numbers, got {[tuple(t.shape) for t in tensors]}")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid(indexing={indexing!r}): it is 'ij' or 'xy'")
    if any(t.dtype != tensors[0].dtype for t in tensors):
        raise RuntimeError("meshgrid() takes tensors of one dtype")
    swap = indexing == "xy" and len(tensors) > 1
    order = [1, 0] + list(range(2, len(tensors))) if swap else list(range(len(tensors)))
    shape = [tensors[i].numel() for i in order]
    return tuple(_tensor._along(t.reshape(-1), order.index(i), len(tensors)).expand(shape) for i, t in enumerate(tensors))


def cartesian_prod(*tensors):
    tensors = _tensor._rest(tensors)
    if any(t.ndim != 1 for t in tensors):
        raise RuntimeError("cartesian_prod() takes vectors")
    if len(tensors) == 1:
        return tensors[0]
    return torch.stack([t.reshape(-1) for t in meshgrid(*tensors)], 1)


def combinations(input, r=2, with_replacement=False):
    """Each way to take r elements of a vector, in order."""
    if input.ndim != 1 or r < 0:
        raise RuntimeError(f"combinations() of {tuple(input.shape)} by {r}: it takes a vector and a number from 0")
    if r == 0:
        return input.new_empty((0,))
    import itertools  # here: most scripts take none
    take = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = [list(c) for c in take(range(input.numel()), r)]
    return input[torch.tensor(places, device=input.device)] if places else input.new_empty((0, r))


def unravel_index(indices, shape):
    """Positions in a row-major tensor of that shape as a tensor per dimension."""
    if not isinstance(indices, torch.Tensor) or indices.is_floating_point() or indices.dtype is torch.bool:
        raise ValueError("unravel_index() takes a tensor of integers")
    shape = [shape] if isinstance(shape, int) else list(shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"unravel_index(): {shape} is no shape")
    indices = indices.long()
    if indices.numel() == 0:  # there may be a dimension without elements
        return tuple(indices.clone() for _ in shape)
    out = []
    for n in reversed(shape):
        out.append(indices % n)
        indices = indices // n
    return tuple(reversed(out))


def pdist(input, p=2.0):
    return torch.nn.functional.pdist(input, p)


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    return torch.tensor(s, dtype=get_default_dtype() if dtype is None else dtype, device=device,
                        requires_grad=requires_grad)


def _made(dtype, data):
    """torch.FloatTensor(2, 3) is not initialised, as of a torch.Size; torch.FloatTensor([2, 3]) has these elements."""
    if not data:
        return torch.empty((0,), dtype=dtype)
    if len(data) == 1 and isinstance(data[0], torch.Size):
        return torch.empty(data[0], dtype=dtype)
    if len(data) == 1 and not isinstance(data[0], int):
        return torch.tensor(data[0], dtype=dtype)
    return torch.empty(data, dtype=dtype)


def FloatTensor(*data):
    return _made(torch.float32, data)


def DoubleTensor(*data):
    return _made(torch.float64, data)


def HalfTensor(*data):
    return _made(torch.float16, data)


def BFloat16Tensor(*data):
    return _made(torch.bfloat16, data)


def LongTensor(*data):
    return _made(torch.int64, data)


def IntTensor(*data):
    return _made(torch.int32, data)


def ShortTensor(*data):
    return _made(torch.int16, data)


def CharTensor(*data):
    return _made(torch.int8, data)


def ByteTensor(*data):
    return _made(torch.uint8, data)


def BoolTensor(*data):
    return _made(torch.bool, data)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    return torch.func.vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)


def _at_least(x, rank):
    if x.ndim >= rank:
        return x
    if rank == 1:
        return x.reshape(1)
    if rank == 2:
        return x.reshape(1, -1)
    return x.reshape(1, 1, 1) if x.ndim == 0 else x.reshape(1, -1, 1) if x.ndim == 1 else x.unsqueeze(-1)


def _each(tensors, f):
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    out = tuple(f(t) for t in tensors)
    return out[0] if len(out) == 1 else out


def atleast_1d(*tensors):
    return _each(tensors, lambda t: _at_least(t, 1))


def atleast_2d(*tensors):
    return _each(tensors, lambda t: _at_least(t, 2))


def atleast_3d(*tensors):
    return _each(tensors, lambda t: _at_least(t, 3))


def concat(tensors, dim=0):
    return torch.cat(tensors, dim)


def concatenate(tensors, dim=0):
    return torch.cat(tensors, dim)


def hstack(tensors):
    tensors = [_at_least(t, 1) for t in tensors]
    return torch.cat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(tensors):
    return torch.cat([_at_least(t, 2) for t in tensors], 0)


def dstack(tensors):
    return torch.cat([_at_least(t, 3) for t in tensors], 2)


def column_stack(tensors):
    return torch.cat([t.reshape(-1, 1) if t.ndim <= 1 else t for t in tensors], 1)


def _triangle(row, col, offset, backwards, device):
    """Rows and columns of the elements on and below a diagonal, in order: how many these are follows from the sizes, so
    that no device is asked. `backwards`: numbered from the last element, and from the last row and column."""
    if row < 0 or col < 0:
        raise RuntimeError(f"a triangle of {row} x {col} elements")
    empty = min(max(-offset, 0), row)  # rows above
    first = min(max(offset + empty + 1, 0), col)  # elements of the first row that has some
    growing = max(min(col - first, row - empty), 0) if first > 0 else 0  # rows each an element longer than the last
    slope = growing * (2 * first + growing - 1) // 2  # elements of these
    length = col if growing > 0 else first  # of the rows below them
    n = slope + (row - empty - growing) * length
    place = _kiln.iota(n, torch.empty((0,), device=device), torch.int64)
    if backwards:
        place = n - 1 - place
    # Row r begins at r·first + r·(r-1)/2: r is the largest number for which that is no more than the place.
    b = 2 * first - 1
    r = ((((b * b + 8 * place).double().sqrt() - b) * 0.5).floor()).to(torch.int64)
    inside = place < slope
    rest = place - slope
    r = torch.where(inside, r, growing + rest // max(length, 1))
    c = torch.where(inside, place - r * (b + r) // 2, rest % max(length, 1))
    r = r + empty
    return [row - 1 - r, col - 1 - c] if backwards else [r, c]


def tril_indices(row, col, offset=0, *, dtype=None, device=None):
    return torch.stack(_triangle(row, col, offset, False, device)).to(dtype or torch.int64)


def triu_indices(row, col, offset=0, *, dtype=None, device=None):
    # Turned by half a circle, what is above a diagonal is below it.
    return torch.stack(_triangle(row, col, col - row - offset, True, device)).to(dtype or torch.int64)


# --- products


def _equation(lists):
    """einsum()'s text of lists of numbers, each a letter, with Ellipsis for the dimensions that have none."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for l in lists:
        if any(n is not Ellipsis and not 0 <= n < len(letters) for n in l):
            raise RuntimeError(f"einsum(): labels are numbers from 0 to {len(letters) - 1}, got {l}")
    return ["".join("..." if n is Ellipsis else letters[n] for n in l) for l in lists]


def einsum(equation, *operands):
    if isinstance(equation, torch.Tensor):  # (tensor, labels, tensor, labels, …, labels of the result)
        given = [equation] + list(operands)
        ends = len(given) // 2 * 2
        operands = given[:ends:2]
        equation = ",".join(_equation(given[1:ends:2])) + "".join("->" + t for t in _equation(given[ends:]))
    operands = _kiln.narrowed(*_tensor._rest(operands))
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(f"einsum('{equation}') takes {len(terms)} tensors, got {len(operands)}")
    # Dimensions of an ellipsis are labels of their own: numbers, from the last on.
    labels = []
    most = 0
    for term, x in zip(terms, operands):
        before, dots, after = term.partition("...")
        n = x.ndim - len(before) - len(after)
        if n < 0 or (n > 0 and not dots):
            raise RuntimeError(f"einsum('{equation}'): '{term}' does not fit {x.ndim} dimensions")
        most = max(most, n)
        labels.append(list(before) + list(range(n, 0, -1)) + list(after))
    if not all(isinstance(l, int) or l.isalpha() for term in labels for l in term):
        raise RuntimeError(f"einsum('{equation}'): labels are letters")
    every = [l for term in labels for l in term]
    if arrow:
        before, dots, after = right.partition("...")
        result = list(before) + (list(range(most, 0, -1)) if dots else []) + list(after)
    else:
        result = list(range(most, 0, -1)) + sorted(l for l in set(every) if not isinstance(l, int) and every.count(l) == 1)
    if len(set(result)) != len(result) or any(l not in every for l in result):
        raise RuntimeError(f"einsum('{equation}'): the result has a label twice, or one that no tensor has")
    sizes = {}
    for term, x in zip(labels, operands):
        for l, n in zip(term, x.shape):
            if sizes.get(l, 1) != 1 and n != 1 and sizes[l] != n:
                raise RuntimeError(f"einsum('{equation}'): '{l}' is {sizes[l]} and {n}")
            sizes[l] = n if sizes.get(l, 1) == 1 else sizes[l]
    return _contracted(labels, operands, result, sizes)


@lazily
def _contracted(labels, operands, result, sizes):
    parts = [_distinct(x, term) for x, term in zip(operands, labels)]
    x, have = parts[0]
    for k in range(1, len(parts)):
        y, other = parts[k]
        needed = set(result)
        for _, term in parts[k + 1:]:
            needed.update(term)
        x, have = _summed(x, have, needed.union(other))
        y, other = _summed(y, other, needed.union(have))
        x, have = _multiplied(x, have, y, other, needed, sizes, result)
    x, have = _summed(x, have, set(result))
    return x.permute([have.index(l) for l in result]) if have != result else x


def _distinct(x, term):
    """With each label once: a label that comes again takes the diagonal."""
    for l in list(term):
        while term.count(l) > 1:
            a, b = [i for i, t in enumerate(term) if t == l][:2]
            if x.shape[a] != x.shape[b]:
                raise RuntimeError(f"einsum(): '{l}' is {x.shape[a]} and {x.shape[b]} in one tensor")
            x = torch.diagonal(x, 0, a, b)
            term = [t for i, t in enumerate(term) if i not in (a, b)] + [l]
    return x, term


def _summed(x, have, needed):
    gone = [i for i, l in enumerate(have) if l not in needed]
    if gone:
        x = x.sum(gone)
    return x, [l for l in have if l in needed]


def _order(batch, mine, theirs, result):
    """Whether a product's factors change places, and which labels of one are a batch for both, for the product to have
    the order of `result`, as "bchw,oc->bohw" does with a batch of b."""
    pairs = [(False, mine, theirs), (True, theirs, mine)]
    for swapped, a, b in pairs:
        if batch + a + b == result:
            return swapped, []
    for swapped, a, b in pairs if not batch else []:
        for owner in (a, b):
            for n in range(1, len(owner)):
                lead = result[:n]
                rows, columns = [[l for l in ls if l not in lead] for ls in (a, b)]
                if rows and columns and lead + rows + columns == result and all(l in owner for l in lead):
                    return swapped, lead
    return False, []


def _multiplied(x, have, y, other, needed, sizes, wanted):
    both = [l for l in have if l in other]
    batch, depth = [l for l in both if l in needed], [l for l in both if l not in needed]
    mine, theirs = [l for l in have if l not in both], [l for l in other if l not in both]
    if not depth:
        result = batch + mine + theirs
        a = x.permute([have.index(l) for l in batch + mine])
        a = a.reshape(list(a.shape) + [1] * len(theirs))
        b = y.permute([other.index(l) for l in batch + theirs])
        b = b.reshape(list(b.shape[:len(batch)]) + [1] * len(mine) + list(b.shape[len(batch):]))
        return a * b, result

    def count(ls):
        n = 1
        for l in ls:
            n *= sizes[l]
        return n

    def ready(t, names, order):
        t = t.permute([names.index(l) for l in order])
        return t.expand([sizes[l] for l in order])

    swapped, lead = _order(batch, mine, theirs, wanted)
    if swapped:
        x, have, mine, y, other, theirs = y, other, theirs, x, have, mine
    rows, columns = [l for l in mine if l not in lead], [l for l in theirs if l not in lead]

    def factor(t, names, own, order, shape):
        ahead = batch + [l for l in lead if l in own]
        t = ready(t, names, ahead + order)
        return t.reshape(([count(ahead)] if ahead else [1] if lead else []) + shape)

    a = factor(x, have, mine, rows + depth, [count(rows), count(depth)])
    b = factor(y, other, theirs, depth + columns, [count(depth), count(columns)])
    result = batch + lead + rows + columns
    return (a @ b).reshape([sizes[l] for l in result]), result


def tensordot(a, b, dims=2):
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot(dims={dims}) of tensors with {a.ndim} and {b.ndim} dimensions")
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = [[d] if isinstance(d, int) else list(d) for d in dims]
    left, right = _tensor._dims(left, a.ndim), _tensor._dims(right, b.ndim)
    if len(left) != len(right):
        raise RuntimeError("tensordot() takes as many dimensions of one tensor as of the other")
    for d, e in zip(left, right):
        n, m = a.shape[d], b.shape[e]
        if n != m and n != 1 and m != 1:
            raise RuntimeError("tensordot(): the dimensions to sum over differ")
        # One element is a factor of the other's sum.
        if n != m:
            a, b = (a.sum(d, True, dtype=a.dtype), b) if m == 1 else (a, b.sum(e, True, dtype=b.dtype))
    mine, theirs = [d for d in range(a.ndim) if d not in left], [d for d in range(b.ndim) if d not in right]
    rows, depth, columns = [_count(t, dims) for t, dims in ((a, mine), (a, left), (b, theirs))]
    out = a.permute(mine + left).reshape(rows, depth) @ b.permute(right + theirs).reshape(depth, columns)
    return out.reshape([a.shape[d] for d in mine] + [b.shape[d] for d in theirs])


def _count(x, dims):
    n = 1
    for d in dims:
        n *= x.shape[d]
    return n


def chain_matmul(*matrices):
    out = matrices[0]
    for m in matrices[1:]:
        out = out @ m
    return out


_FEW, _SHORT = 25, 8  # vectors, and numbers in each: more than those of more than these are compared by a product


@lazily
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    if compute_mode not in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
                            "donot_use_mm_for_euclid_dist"):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1] or x1.dtype != x2.dtype:
        raise RuntimeError("cdist() takes two sets of vectors of one length and dtype")
    if not x1.is_floating_point():
        raise RuntimeError(f"cdist() does not apply to tensors of {x1.dtype}")
    if p == 2 and x1.shape[-1] > _SHORT and max(x1.shape[-2], x2.shape[-2]) > _FEW:
        # As in torch, from the squares of both and their product. Of shorter vectors the differences take less time.
        a, b = _tensor._wide(x1), _tensor._wide(x2)
        squares = (a * a).sum(-1).unsqueeze(-1) + (b * b).sum(-1).unsqueeze(-2)
        return (squares - 2 * (a @ b.mT)).clamp(min=0).sqrt().to(x1.dtype)
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)


@lazily
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"cosine_similarity() does not apply to tensors of {dtype}")
    a, b = [_tensor._wide(x.to(dtype)) for x in broadcast_tensors(x1, x2)]
    lengths = [x.norm(2, dim, True).clamp(min=eps) for x in (a, b)]
    return ((a / lengths[0]) * (b / lengths[1])).sum(dim).to(dtype)


@lazily
def trapezoid(y, x=None, *, dx=1, dim=-1):
    dim = _tensor._dim(dim, y.ndim)
    if y.ndim == 0:
        raise IndexError("trapezoid() takes a tensor of one dimension or more")
    n = y.shape[dim]
    if n == 0:
        return torch.zeros([s for d, s in enumerate(y.shape) if d != dim], dtype=y.dtype, device=y.device)
    if y.dtype is torch.bool or (x is not None and x.dtype is torch.bool):
        raise NotImplementedError("trapezoid() does not apply to tensors of bool")
    if x is None:
        return (y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * dx
    sums = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)
    if x.ndim == 1:
        if x.numel() != n:
            raise RuntimeError(f"trapezoid() of {n} values at {x.numel()} places")
        return (sums * _tensor._along(x[1:] - x[:-1], dim, y.ndim)).sum(dim) / 2
    x = x.reshape([1] * (y.ndim - x.ndim) + list(x.shape))
    return (sums * (x.narrow(dim, 1, x.shape[dim] - 1) - x.narrow(dim, 0, x.shape[dim] - 1))).sum(dim) / 2


def trapz(y, x=None, *, dx=1, dim=-1):
    return trapezoid(y, x, dx=dx, dim=dim)


# --- sorting


def searchsorted(sorted_sequence, input, *, right=False, side=None, out_int32=False, sorter=None):
    if sorter is not None:
        if sorter.dtype is not torch.int64 or sorter.shape != sorted_sequence.shape:
            raise RuntimeError(f"searchsorted(): sorter= is the order of {tuple(sorted_sequence.shape)} elements in "
                               f"int64, got {sorter.dtype} {tuple(sorter.shape)}")
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    number = not isinstance(input, torch.Tensor)
    x = torch.tensor(input, device=sorted_sequence.device) if number else input
    if sorted_sequence.ndim != 1 and list(sorted_sequence.shape[:-1]) != list(x.shape[:-1]):
        raise RuntimeError("searchsorted(): the leading dimensions differ")
    if side not in (None, "left", "right") or (side == "left" and right):
        raise RuntimeError(f"searchsorted(side={side!r}, right={right})")
    return _search(x, sorted_sequence, right or side == "right", out_int32)


def bucketize(input, boundaries, *, out_int32=False, right=False):
    number = not isinstance(input, torch.Tensor)
    x = torch.tensor(input, device=boundaries.device) if number else input
    if boundaries.ndim != 1:
        raise RuntimeError("bucketize() takes boundaries of one dimension")
    return _search(x, boundaries, right, out_int32)


_MOST_BOUNDARIES = 512  # more steps would be more operations than wait for each other


@lazily
def _search(x, lines, right, out_int32):
    if lines.ndim and x.ndim and 0 < lines.shape[-1] < _MOST_BOUNDARIES and x.numel() > 0:
        return _places(x, lines, right).to(torch.int32 if out_int32 else torch.int64)
    out = _kiln.searchsorted(lines, x, right)
    return out.int() if out_int32 else out


def _places(x, lines, right):
    """Binary searches as an expression, so that what makes the values and what reads the places share its kernel: in
    the line of all, or each row in its own. A NaN is behind all boundaries."""
    dtype = torch.promote_types(x.dtype, lines.dtype)
    dtype = torch.uint8 if dtype is torch.bool else dtype
    shape, n = x.shape, lines.shape[-1]
    x = x.to(dtype).reshape([-1] if lines.ndim == 1 else [-1, shape[-1]])
    lines = lines.to(dtype).reshape([n] if lines.ndim == 1 else [-1, n])
    step = 1 << (n.bit_length() - 1)

    def is_behind(place):
        boundary = _kiln.take(lines, [lines.ndim - 1], [place], True)
        found = boundary <= x if right else boundary < x
        return found | (x != x) if dtype.is_floating_point else found

    # Behind the boundary n - step there are step places left, and ahead of it fewer: every later look is inside.
    first = torch.full([1] * lines.ndim, n - step, dtype=torch.int32, device=x.device)
    place = torch.where(is_behind(first), n - step + 1, 0).to(torch.int32)
    while step > 1:
        step //= 2
        place = torch.where(is_behind(place + (step - 1)), place + step, place)
    return place.reshape(shape)


@lazily
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    a = elements if isinstance(elements, torch.Tensor) else torch.tensor(elements, device=test_elements.device)
    b = test_elements if isinstance(test_elements, torch.Tensor) else torch.tensor(test_elements, device=a.device)
    if b.numel() == 0:
        return torch.full(a.shape, invert, dtype=torch.bool, device=a.device)
    found = (a.unsqueeze(-1) == b.reshape(-1)).any(-1)
    return ~found if invert else found


# --- numbers


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None):
    dtype = dtype or get_default_dtype()
    if dtype.is_floating_point:
        return (float(base) ** torch.linspace(start, end, steps, dtype=torch.float64, device=device)).to(dtype)
    # As in torch, the bounds are whole.
    powers = torch.linspace(int(start), int(end), steps, dtype=torch.float64, device=device)
    return (float(base) ** powers).trunc().to(dtype)


def normal(mean=0.0, std=1.0, size=None, *, generator=None, device=None):
    if isinstance(std, torch.Tensor):
        if (std < 0).any():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if size is None:
        like = mean if isinstance(mean, torch.Tensor) else std
        return torch.randn(like.shape, device=like.device, generator=generator) * std + mean
    return torch.randn(size, device=device, generator=generator) * std + mean


# --- settings


def compile(model=None, **options):
    """The same: Kiln compiles expressions anyway."""
    return model if model is not None else lambda f: f


_precision = "highest"


def set_float32_matmul_precision(precision):
    """'high' and 'medium' let products of float32 round their operands to tf32."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"set_float32_matmul_precision({precision!r}): it is 'highest', 'high' or 'medium'")
    _precision = precision
    _kiln.set_tf32(precision != "highest")


def get_float32_matmul_precision():
    return _precision


def set_default_device(device):
    _kiln.set_default_device(device)


def get_default_device():
    return torch.empty((0,)).device


def set_default_dtype(d):
    _kiln.set_default_dtype(d)


def get_default_dtype():
    return _kiln.get_default_dtype()


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    profiles = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, float("inf"), 3, 80)}
    if profile is not None:
        if profile not in profiles:
            raise ValueError(f"set_printoptions(profile={profile!r}): it is 'default', 'short' or 'full'")
        _kiln.set_print(*profiles[profile], None)
    _kiln.set_print(precision, threshold, edgeitems, linewidth, sci_mode)


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Sums that fast kernels make by atomic additions, in any order, are made in one order: the gradients of attention.
    Reductions of expressions have one anyhow; index_add_, scatter_add_ and their like keep their atomic additions."""
    _kiln.set_deterministic(mode)


def are_deterministic_algorithms_enabled():
    return _kiln.is_deterministic()


def is_grad_enabled():
    return not _kiln.is_no_grad()


class _GradMode:
    """Whether results have gradients, in a `with` block or a function that this decorates."""

    mode = False

    def __new__(cls, func=None):
        # @torch.no_grad without parentheses: the function, so that it can be a method.
        return super().__new__(cls) if func is None else cls()(func)

    def __init__(self, func=None):
        self.before = []

    def __enter__(self):
        self.before.append(_kiln.set_no_grad(not self.mode))

    def __exit__(self, *args):
        _kiln.set_no_grad(self.before.pop())
        return False

    def __call__(self, func):
        import functools  # here: most scripts decorate nothing
        mode = self.mode

        @functools.wraps(func)
        def decorated(*args, **kwargs):
            before = _kiln.set_no_grad(not mode)
            try:
                return func(*args, **kwargs)
            finally:
                _kiln.set_no_grad(before)

        return decorated


class no_grad(_GradMode):
    pass


class inference_mode(_GradMode):
    def __new__(cls, mode=True):
        return super().__new__(cls, None if isinstance(mode, bool) else mode)

    def __init__(self, mode=True):
        super().__init__()
        self.mode = mode is False


class enable_grad(_GradMode):
    mode = True


class set_grad_enabled(_GradMode):
    """As a call alone it sets the mode."""

    def __new__(cls, mode):
        return super().__new__(cls)

    def __init__(self, mode):
        super().__init__()
        self.mode = bool(mode)
        self.before.append(_kiln.set_no_grad(not mode))  # stays: one object is for any number of blocks and functions

    def __enter__(self):
        _kiln.set_no_grad(not self.mode)

    def __exit__(self, *args):
        _kiln.set_no_grad(self.before[-1])
        return False

    def __call__(self, func):
        _kiln.set_no_grad(self.before[-1])  # a function that it decorates sets the mode alone
        return super().__call__(func)
