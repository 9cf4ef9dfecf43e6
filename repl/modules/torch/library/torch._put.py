"""Putting elements by kernels: scatter and the index functions, with atomics where places may come twice.

A place outside is left out: to raise an error for it, the host would have to wait for the device.
"""
import torch
import triton
import triton.language as tl
from torch import _kiln, _sort
from triton.language.extra import kiln as kl

lazily = _kiln.lazily
_BLOCK = 1024
_MOST_BINS = 1024  # places of which a program adds up its own sums first
# Of fewer, adding them one by one takes less: those of one address take turns (0.09 us each on an H200; bins take 9).
_LEAST_PER_BIN = 80


@triton.jit
def _combine(x, place, value, these, HOW: tl.constexpr):
    """Extremes and products. What is stored or added is so by the kernel of the expression that gives it."""
    if HOW == "amax" and not value.dtype.is_floating():
        tl.atomic_max(x + place, value, mask=these, sem="relaxed")
    elif HOW == "amin" and not value.dtype.is_floating():
        tl.atomic_min(x + place, value, mask=these, sem="relaxed")
    elif HOW == "prod":
        # Compare and swap until nothing else has changed the element in between. Lanes that are done, or have no place,
        # put back what is there.
        word: tl.constexpr = tl.core.get_int_dtype(value.dtype.primitive_bitwidth, True)
        at = x + tl.where(these, place, 0)
        words = at.to(tl.pointer_type(word), bitcast=True)
        old = tl.load(at)
        left = these
        while tl.max(left.to(tl.int32), 0) > 0:
            new = old * value
            bits = old.to(word, bitcast=True)
            found = tl.atomic_cas(words, bits, tl.where(left, new, old).to(word, bitcast=True), sem="relaxed")
            left = left & (found != bits)
            old = tl.where(left, found.to(value.dtype, bitcast=True), old)
    else:
        # The words of floats are ordered as they are: of those from 0 up as integers with a sign, of others the other
        # way round as integers without one, which are above all of those. So is a NaN beyond the infinity, with the
        # sign that wins. What is no better than what is there leaves it as it is, and so does all where that is a NaN.
        signed: tl.constexpr = tl.core.get_int_dtype(value.dtype.primitive_bitwidth, True)
        unsigned: tl.constexpr = tl.core.get_int_dtype(value.dtype.primitive_bitwidth, False)
        at = x + place
        old = tl.load(at, mask=these, other=0)
        better = value > old if HOW == "amax" else value < old
        these = these & (better | (value != value)) & (old == old)
        bits = value.to(signed, bitcast=True)
        magnitude: tl.constexpr = (1 << (value.dtype.primitive_bitwidth - 1)) - 1
        if HOW == "amax":
            bits = tl.where(value != value, bits & magnitude, bits)
            tl.atomic_max(at.to(tl.pointer_type(signed), bitcast=True), bits, mask=these & (bits >= 0), sem="relaxed")
            tl.atomic_min(at.to(tl.pointer_type(unsigned), bitcast=True), bits.to(unsigned, bitcast=True),
                          mask=these & (bits < 0), sem="relaxed")
        else:
            bits = tl.where(value != value, bits | (-1 - magnitude), bits)
            tl.atomic_min(at.to(tl.pointer_type(signed), bitcast=True), bits, mask=these & (bits >= 0), sem="relaxed")
            tl.atomic_max(at.to(tl.pointer_type(unsigned), bitcast=True), bits.to(unsigned, bitcast=True),
                          mask=these & (bits < 0), sem="relaxed")


@triton.jit
def _along_kernel(x, index, src, total, size, length, inner, outer_stride, stride, HOW: tl.constexpr,
                  BY_ROW: tl.constexpr, ONE: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """x is [outer, size, inner], what is put [outer, length, inner] or one element; so is the index, or [length]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WIDE:
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    line = at // inner
    place = tl.load(index + (line % length if BY_ROW else at), mask=inside, other=-1)
    these = inside & (place >= 0) & (place < size)
    value = tl.load(src + (at * 0 if ONE else at), mask=these, other=0)
    to = (line // length).to(tl.int64) * outer_stride + place.to(tl.int64) * stride + at % inner
    _combine(x, to, value, these, HOW)


@triton.jit
def _from_last_start(start, a, other_start, b):
    return start | other_start, tl.where(other_start != 0, b, a + b)


@triton.jit
def _bins_kernel(x, places, src, total, size, stride, blocks, ONE: tl.constexpr, BINS: tl.constexpr,
                 BLOCK: tl.constexpr):
    """Sums for few places over several blocks, which then are added to those of all: atomics to one address take turns.
    Each block is sorted by place, and a scan that begins anew at each place adds up what goes there."""
    bin = tl.arange(0, BINS)
    element: tl.constexpr = src.dtype.element_ty
    wide: tl.constexpr = tl.float32 if element.is_floating() and element.primitive_bitwidth < 32 else element
    sums = tl.zeros((BINS,), wide)
    for block in range(tl.program_id(0) * blocks, tl.program_id(0) * blocks + blocks):
        at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        place = tl.load(places + at, mask=at < total, other=-1)
        these = (place >= 0) & (place < size)
        place = tl.where(these, place, -1).to(tl.int32)
        value = tl.load(src + (at * 0 if ONE else at), mask=these, other=0).to(wide)
        to, count, begin = kl.bucket_place(place, BINS)
        value = kl.scatter(value, to, 0)
        place = kl.scatter(place, to, 0)
        # Behind the last of those that are there nothing is defined, and nothing is read.
        start = (tl.gather(begin, place & (BINS - 1), 0) == tl.arange(0, BLOCK)).to(tl.int32)
        start, value = tl.associative_scan((start, value), 0, _from_last_start)
        last = tl.gather(value, tl.maximum(begin + count - 1, 0), 0)
        sums += tl.where(count > 0, last, 0).to(wide)
    tl.atomic_add(x + bin.to(tl.int64) * stride, sums.to(x.dtype.element_ty), mask=(bin < size) & (sums != 0),
                  sem="relaxed")


@triton.jit
def _sums_kernel(x, places, order, src, total, size, ONE: tl.constexpr, BLOCK: tl.constexpr):
    """The first of equal places adds up what is put there, in its order."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    place = tl.load(places + at, mask=inside, other=-1)
    before = tl.load(places + at - 1, mask=inside & (at > 0), other=-1)
    left = inside & (place >= 0) & (place < size) & (place != before)
    these = left
    sum = tl.load(x + place, mask=these, other=0)
    while tl.max(left.to(tl.int32), 0) > 0:
        source = tl.load(order + at, mask=left, other=0)
        value = tl.load(src + (source * 0 if ONE else source), mask=left, other=0)
        sum = tl.where(left, sum + value, sum).to(sum.dtype)
        at += 1
        left = left & (at < total) & (tl.load(places + at, mask=left & (at < total), other=-1) == place)
    tl.store(x + place, sum, mask=these)


def _atomic(dtype, how):
    """The dtype in which elements are combined: atomics have 32 or 64 bits, additions of floats 16 as well."""
    if how == "set" or dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
        return dtype
    if dtype.is_floating_point:
        return dtype if how == "add" and dtype in (torch.float16, torch.bfloat16) else torch.float32
    return torch.int32 if dtype.itemsize < 4 else torch.int64


def _strides(x, dim):
    """Of the dimensions ahead as one, and of this one, where those behind are a run of elements; else None."""
    run = 1
    for d in range(x.ndim - 1, dim, -1):
        if x.shape[d] != 1 and x.stride(d) != run:
            return None
        run *= x.shape[d]
    outer, known = 0, None  # the stride of one more element ahead, and what the next dimension's has to be
    for d in range(dim - 1, -1, -1):
        if x.shape[d] == 1:
            continue
        if known is None:
            outer = x.stride(d)
        elif x.stride(d) != known:
            return None
        known = x.stride(d) * x.shape[d]
    return outer, x.stride(dim)


def _changed(x, dim, how, put, src):
    """Runs put(elements, outer stride, stride, src) on the tensor, or on a copy of it where atomics or strides want
    one."""
    dtype, strides = _atomic(x.dtype, how), _strides(x, dim)
    src = src.to(x.dtype)
    if how == "set" and (x.dtype is torch.bool or x.dtype.itemsize == 1):
        x, src, dtype = x.view(torch.uint8), src.view(torch.uint8), torch.uint8
    if dtype == x.dtype and strides is not None:
        return put(x, *strides, src)
    words = x.contiguous() if dtype == x.dtype else x.to(dtype).contiguous()
    put(words, *_strides(words, dim), src.to(dtype))
    x.copy_(words != 0 if x.dtype is torch.bool else words)


def _count(sizes):
    n = 1
    for s in sizes:
        n *= s
    return n


@lazily
def _lines(shape, strides, index, size, like):
    """Where elements of [outer, length, inner] go, counted from a tensor's first one, and which go anywhere. The index
    has as many, or is one of [length]."""
    outer, length, inner = shape
    index = index.reshape(shape if index.numel() == outer * length * inner else [1, length, 1])
    reach = (outer - 1) * abs(strides[0]) + size * abs(strides[1]) + inner
    dtype = torch.int32 if reach < 2**31 else torch.int64
    place = index.to(dtype) * strides[1]
    if outer > 1:
        place = place + (_kiln.iota(outer, like, dtype) * strides[0])[:, None, None]
    if inner > 1:
        place = place + _kiln.iota(inner, like, dtype)
    return place, (index >= 0) & (index < size)


def along(x, dim, index, src, how):
    """Puts elements at places of one dimension. The index has the shape of what is put, or one dimension; the sizes of
    other dimensions are the tensor's."""
    outer, size, inner = _count(x.shape[:dim]), x.shape[dim], _count(x.shape[dim + 1:])
    by_row = index.ndim == 1 and x.ndim > 1
    length = index.shape[0] if by_row else index.shape[dim]
    total = outer * length * inner
    if total == 0 or x.numel() == 0:
        return
    one = src.numel() == 1 and total > 1

    def put(words, outer_stride, stride, values):
        if how == "add" and outer == inner == 1 and size <= _MOST_BINS and total >= _LEAST_PER_BIN * size:
            blocks = max(1, triton.cdiv(total, 4096) // 1024)
            _bins_kernel[(triton.cdiv(triton.cdiv(total, 4096), blocks),)](
                words, index.contiguous(), values.contiguous(), total, size, stride, blocks, ONE=one,
                BINS=max(16, triton.next_power_of_2(size)), BLOCK=4096, num_warps=8)
            return
        if how in ("set", "add"):
            place, inside = _lines([outer, length, inner], [outer_stride, stride], index, size, words)
            values = values.reshape([1, 1, 1] if one else [outer, length, inner])
            _kiln.store(words, place, inside, values, how == "add")
            return
        _along_kernel[(triton.cdiv(total, _BLOCK),)](
            words, index.contiguous(), values.contiguous(), total, size, length, inner, outer_stride, stride, HOW=how,
            BY_ROW=by_row, ONE=one, WIDE=total >= 2**31 - _BLOCK, BLOCK=_BLOCK)

    _changed(x, dim, how, put, src)


def at(x, places, src, how, ordered=True):
    """Puts elements at row-major positions. `ordered`: those of one position are added up in their order."""
    total, size = places.numel(), x.numel()
    if total == 0 or size == 0:
        return
    one = src.numel() == 1 and total > 1
    src = src if one else src.expand(places.shape).reshape(-1)
    places, flat = places.reshape(-1), x if x.is_contiguous() else x.contiguous()
    if how != "add" or not ordered:
        along(flat.reshape(-1), 0, places, src, how)
    else:
        places, order = _sort.sort(places.contiguous(), 0, False)
        words = flat.to(torch.int32) if x.dtype is torch.bool else flat
        _sums_kernel[(triton.cdiv(total, 256),)](words, places, order, src.to(words.dtype).contiguous(), total, size,
                                                 ONE=one, BLOCK=256)
        if words is not flat:
            flat.copy_(words != 0)
    if flat is not x:
        x.copy_(flat)


@lazily
def _counted(x):
    """The elements' row-major positions, from 1 on: what is looked up outside is 0."""
    return (_kiln.iota(x.numel(), x, torch.int64) + 1).reshape(x.shape)


def positions(x, index):
    """Of what an index names; -1 outside."""
    parts = list(index) if isinstance(index, tuple) else [index]
    counted, dim = _counted(x), 0
    for i, part in enumerate(parts):
        if part is Ellipsis:
            dim = x.ndim - sum(_width(p) for p in parts[i + 1:])
        elif _looks_up(part) and part.ndim == 0:
            # One place on the GPU is no int of the host: it is looked up, and then the only one of its dimension.
            counted, parts[i] = counted[tuple([slice(None)] * dim + [part.reshape(1)])], 0
        dim += _width(part)
    return counted[tuple(parts)] - 1


def _width(part):
    """How many dimensions a part of an index names."""
    if part is None or part is Ellipsis:
        return 0
    part = torch.tensor(part) if isinstance(part, list) else part
    return part.ndim if isinstance(part, torch.Tensor) and part.dtype in (torch.bool, torch.uint8) else 1


def _looks_up(part):
    return isinstance(part, torch.Tensor) and part.dtype in (torch.int64, torch.int32)


def put_items(x, index, values):
    """x[index] = values, with tensors in the index."""
    parts = list(index) if isinstance(index, tuple) else [index]
    looked = [i for i, part in enumerate(parts) if _looks_up(part)]
    first = looked[0] if looked else 0
    whole = all(_looks_up(part) or isinstance(part, slice) and part == slice(None) for part in parts)
    if looked and whole and looked == list(range(first, first + len(looked))) and len(parts) <= x.ndim:
        return _put_rows(x, first, [parts[i].to(x.device) for i in looked], values)
    places = positions(x, index)
    if list(torch.broadcast_shapes(values.shape, places.shape)) != list(places.shape):
        raise RuntimeError(f"a value of shape {tuple(values.shape)} does not fit into {tuple(places.shape)}")
    at(x, places, values, "set")


def _put_rows(x, first, indices, values):
    """x[:, …, indices, …] = values, with `first` whole dimensions ahead and others behind."""
    sizes, behind = x.shape[first:first + len(indices)], list(x.shape[first + len(indices):])
    for d, (n, i) in enumerate(zip(sizes, indices)):
        _kiln.check_places(i, n, first + d, True)
    place = _row(sizes, indices)
    shape = list(x.shape[:first]) + list(place.shape) + behind
    if list(torch.broadcast_shapes(values.shape, shape)) != shape:
        raise RuntimeError(f"a value of shape {tuple(values.shape)} does not fit into {tuple(shape)}")
    if values.numel() != 1:
        values = values.expand(shape)
    flat = x if len(indices) == 1 else x.reshape(list(x.shape[:first]) + [_count(sizes)] + behind)
    along(flat, first, place.reshape(-1), values, "set")
    if flat is not x and not x.is_contiguous():
        x.copy_(flat.reshape(x.shape))


@lazily
def _row(sizes, indices):
    """The indices of several dimensions as one, below 0 where one of them is outside."""
    row, good = None, None
    for n, i in zip(sizes, indices):
        i = i.long()
        i = torch.where(i < 0, i + n, i)
        inside = (i >= 0) & (i < n)
        row = i if row is None else row * n + i
        good = inside if good is None else good & inside
    return torch.where(good, row, -1)
