"""Operations that are no expressions, as kernels: compaction, counting and binary search on the tensor's device."""
import torch
import triton
import triton.language as tl
from torch import _kiln
from triton.language.extra import kiln as kl


_COUNTED = 1024  # counts of blocks that are added up at once


@triton.jit
def _found(x, at, n, DISTINCT: tl.constexpr):
    """Elements other than 0; with DISTINCT those that differ from the one ahead of them."""
    v = tl.load(x + at, mask=at < n, other=0)
    if DISTINCT:
        return (at < n) & ((at == 0) | (v != tl.load(x + at - 1, mask=(at > 0) & (at < n), other=0)))
    return v != 0


@triton.jit
def _count_kernel(x, ends, turns, n, programs, DISTINCT: tl.constexpr, COUNTED: tl.constexpr, BLOCK: tl.constexpr):
    """ends[b]: how many are found in the blocks up to b. Each program counts its own, and the last one adds them up."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(ends + tl.program_id(0), tl.sum(_found(x, at, n, DISTINCT).to(tl.int32), 0))
    tl.debug_barrier()
    if tl.atomic_add(turns, 1, sem="acq_rel") == programs - 1:
        total = tl.zeros((), tl.int64)
        for begin in range(0, programs, COUNTED):
            block = begin + tl.arange(0, COUNTED)
            count = tl.load(ends + block, mask=block < programs, other=0)
            tl.store(ends + block, total + tl.cumsum(count, 0), mask=block < programs)
            total += tl.sum(count, 0)


@triton.jit
def _compact_kernel(x, ends, values, places, columns, numbers, order, n, width, DISTINCT: tl.constexpr,
                    BLOCK: tl.constexpr):
    """Of what is found, one behind the other: the values, the places (or rows and columns of a matrix of that width),
    and for each element of x, at its place or at that in `order`, which of the found it belongs to. What is None is not
    asked for."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    found = _found(x, at, n, DISTINCT)
    # Its own count off gives where the block starts.
    start = tl.load(ends + tl.program_id(0)) - tl.sum(found.to(tl.int32), 0)
    to = start + tl.cumsum(found.to(tl.int32), 0) - 1
    if values is not None:
        tl.store(values + to, tl.load(x + at, mask=found, other=0), mask=found)
    if columns is not None:
        tl.store(places + to, at // width, mask=found)
        tl.store(columns + to, at % width, mask=found)
    elif places is not None:
        tl.store(places + to, at, mask=found)
    if numbers is not None:
        if order is not None:
            at = tl.load(order + at, mask=at < n, other=n)
        tl.store(numbers + at, to, mask=at < n)


def _blocks_of_found(x, distinct):
    """Blocks of elements, how many there are, and how many elements are found up to the end of each."""
    n = x.numel()
    block = 1024 if n < 2**20 else 4096
    programs = triton.cdiv(n, block)
    ends = torch.empty((programs,), dtype=torch.int64, device=x.device)
    _count_kernel[(programs,)](x, ends, _kiln.zeros(1, torch.int32, x), n, programs, DISTINCT=distinct,
                               COUNTED=_COUNTED, BLOCK=block, num_warps=block // 256)
    return block, programs, ends


def _places(count, x):
    return torch.empty((count,), dtype=torch.int64, device=x.device)


def nonzero(input):
    shape, n, rank = input.shape, input.numel(), input.ndim
    x = input.contiguous().reshape(-1)
    x = x.view(torch.uint8) if x.dtype is torch.bool else x.half() if x.is_floating_point() and x.itemsize == 1 else x
    count = 0
    if n > 0 and rank > 0:
        block, programs, ends = _blocks_of_found(x, False)
        count = int(ends[-1])
    if count == 0:
        return tuple([_places(0, x) for _ in shape])
    flat, columns = _places(count, x), _places(count, x) if rank == 2 else None
    _compact_kernel[(programs,)](x, ends, None, flat, columns, None, None, n, shape[-1], DISTINCT=False, BLOCK=block,
                                 num_warps=block // 256)
    if rank <= 2:
        return (flat, columns)[:rank]
    places, stride = [], 1
    for size in reversed(list(shape)):
        places.append(flat // stride % size)
        stride *= size
    return tuple(reversed(places))


@triton.jit
def _lengths_kernel(begins, out, count, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    end = tl.where(at + 1 < count, tl.load(begins + at + 1, mask=at + 1 < count, other=0), n)
    tl.store(out + at, end - tl.load(begins + at, mask=at < count, other=0), mask=at < count)


def distinct(x, order, inverse, counts):
    """The elements of a vector that differ from the one ahead of them. Then, where asked for, which of these
    each element belongs to (the element that was at order[i] before x was sorted), and how many belong to each."""
    n = x.numel()
    x = x.contiguous()
    block, programs, ends = _blocks_of_found(x, True)
    count = int(ends[-1])
    values = torch.empty((count,), dtype=x.dtype, device=x.device)
    numbers, begins = _places(n, x) if inverse else None, _places(count, x) if counts else None
    _compact_kernel[(programs,)](x, ends, values, begins, None, numbers, order, n, 1, DISTINCT=True, BLOCK=block,
                                 num_warps=block // 256)
    lengths = None
    if counts:
        lengths = torch.empty_like(begins)
        _lengths_kernel[(triton.cdiv(count, 1024),)](begins, lengths, count, n, BLOCK=1024)
    return values, numbers, lengths


@triton.jit
def _is_behind(v, boundary, RIGHT: tl.constexpr):
    """A NaN is behind all boundaries."""
    return ((boundary <= v) if RIGHT else (boundary < v)) | (v != v)


@triton.jit
def _search_kernel(lines, values, out, n, width, per_line, LEVELS: tl.constexpr, RIGHT: tl.constexpr,
                   BLOCK: tl.constexpr):
    """Binary searches. FIRST is the greatest power of two up to the width, which is at least 1: behind the boundary
    width - FIRST there are FIRST places left, and ahead of it fewer, so that every later look is inside."""
    FIRST: tl.constexpr = 1 << (LEVELS - 1)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(values + at, mask=inside, other=0)
    line = lines + at // per_line * width
    boundary = tl.load(line + (width - FIRST), mask=inside, other=0)
    place = tl.where(_is_behind(v, boundary, RIGHT), width - FIRST + 1, 0)
    for i in tl.static_range(1, LEVELS):
        STEP: tl.constexpr = FIRST >> i
        boundary = tl.load(line + place + (STEP - 1), mask=inside, other=0)
        place = tl.where(_is_behind(v, boundary, RIGHT), place + STEP, place)
    tl.store(out + at, place.to(tl.int64), mask=inside)


def searchsorted(sorted, values, right):
    n, width, block = values.numel(), sorted.shape[-1] if sorted.ndim else 1, 1024
    if n == 0 or width == 0:
        return torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    out = torch.empty(values.shape, dtype=torch.int64, device=values.device)
    to = torch.promote_types(sorted.dtype, values.dtype)
    to = torch.uint8 if to is torch.bool else to
    lines, v = sorted.to(to).contiguous(), values.to(to).contiguous()
    per_line = n if sorted.ndim <= 1 else values.shape[-1]
    _search_kernel[(triton.cdiv(n, block),)](lines, v, out, n, width, per_line, LEVELS=width.bit_length(),
                                             RIGHT=bool(right), BLOCK=block)
    return out


@triton.jit
def _counted(bin, inside, first, BINS: tl.constexpr):
    """How many elements are in each of BINS bins from the first on, counted in shared memory."""
    inside &= (bin >= first) & (bin < first + BINS)
    return kl.bucket_place(tl.where(inside, bin - first, BINS).to(tl.int32), BINS)[1]


@triton.jit
def _histogram_kernel(bins, out, n, number, blocks, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Counts over several blocks, of BINS bins from the program's on, and adds them to those of all."""
    first = tl.program_id(1) * BINS
    found = tl.zeros((BINS,), tl.int32)
    for block in range(tl.program_id(0) * blocks, tl.program_id(0) * blocks + blocks):
        at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        b = tl.load(bins + at, mask=at < n, other=0).to(tl.int64)
        found += _counted(b, at < n, first, BINS)
    bin = first + tl.arange(0, BINS)
    tl.atomic_add(out + bin, found.to(tl.int64), mask=(found > 0) & (bin < number), sem="relaxed")


@triton.jit
def _even_histogram_kernel(x, out, n, number, low, high, span, blocks, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """The same of values, in bins of one width from low to high, all of which a program counts."""
    found = tl.zeros((BINS,), tl.int32)
    for block in range(tl.program_id(0) * blocks, tl.program_id(0) * blocks + blocks):
        at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
        bin = tl.minimum(tl.div_rn((v - low) * number, span).to(tl.int32), number - 1)
        found += _counted(bin, (at < n) & (v >= low) & (v <= high), 0, BINS)
    bin = tl.arange(0, BINS)
    tl.atomic_add(out + bin, found.to(tl.float32), mask=(found > 0) & (bin < number), sem="relaxed")


@triton.jit
def _amounts_kernel(bins, weights, out, n, number, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(bins + at, mask=at < n, other=0).to(tl.int64)
    inside = (at < n) & (b >= 0) & (b < number)
    amount = tl.full((BLOCK,), 1, out.dtype.element_ty)
    if WEIGHTED:
        amount = tl.load(weights + at, mask=inside, other=0)
    tl.atomic_add(out + b, amount, mask=inside, sem="relaxed")


@triton.jit
def _bounds_kernel(x, out, n, blocks, BLOCK: tl.constexpr):
    """The greatest of integers, at least 0, and whether there are negative ones."""
    most, least = tl.zeros((BLOCK,), tl.int64), tl.zeros((BLOCK,), tl.int64)
    for block in range(tl.program_id(0) * blocks, tl.program_id(0) * blocks + blocks):
        at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n, other=0).to(tl.int64)
        most, least = tl.maximum(most, v), tl.minimum(least, v)
    tl.atomic_max(out, tl.max(most, 0), sem="relaxed")
    tl.atomic_max(out + 1, (tl.min(least, 0) < 0).to(tl.int64), sem="relaxed")


def bounds(x):
    """As ints, read at once: the greatest element, or 0, and 1 if there are negative ones."""
    x, n, out = x.contiguous(), x.numel(), _kiln.zeros(2, torch.int64, x)
    programs = triton.cdiv(n, 1024)
    blocks = triton.cdiv(programs, 1024)
    _bounds_kernel[(triton.cdiv(programs, blocks),)](x, out, n, blocks, BLOCK=1024)
    return out.tolist()


_MOST_BINS = 1024  # of a program


def even_counts(x, number, low, high):
    """How many of float32 or halves are in each bin of one width, in float32. None where one program does not count
    all bins."""
    if number > _MOST_BINS or x.dtype is torch.float64:
        return None
    out = _kiln.zeros(number, torch.float32, x)
    n, x = x.numel(), x.contiguous()
    if n == 0:
        return out
    # Small blocks for few elements, so that all processors have some; many of them for many, which meet less often.
    block, warps = (1024, 4) if n < 2**20 else (4096, 8)
    programs = triton.cdiv(n, block)
    blocks = max(1, programs // 1024)
    low, high = float(low), float(high)
    _even_histogram_kernel[(triton.cdiv(programs, blocks),)](x, out, n, number, low, high, high - low, blocks,
                                                             BINS=max(16, triton.next_power_of_2(number)),
                                                             BLOCK=block, num_warps=warps)
    return out


def counts(bins, weights, number):
    dtype = torch.int64
    if weights is not None:
        dtype = torch.float32 if weights.dtype is torch.float32 else torch.float64
        if weights.numel() != bins.numel():
            raise RuntimeError("there are as many weights as numbers")
    out = _kiln.zeros(number, dtype, bins)
    n, block = bins.numel(), 4096
    if n == 0 or number == 0:
        return out
    bins = bins.contiguous()
    programs = triton.cdiv(n, block)
    if weights is None and number <= 4096:  # few bins meet often
        wide = min(_MOST_BINS, max(16, triton.next_power_of_2(number)))
        blocks = max(1, programs // 1024)
        _histogram_kernel[(triton.cdiv(programs, blocks), triton.cdiv(number, wide))](bins, out, n, number, blocks,
                                                                                      BINS=wide, BLOCK=block,
                                                                                      num_warps=8)
    else:
        of = bins if weights is None else weights.to(dtype).contiguous()
        _amounts_kernel[(programs,)](bins, of, out, n, number, WEIGHTED=weights is not None, BLOCK=block, num_warps=8)
    return out
