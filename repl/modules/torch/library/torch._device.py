"""Operations that are no expressions, as kernels: compaction, counting and binary search on the tensor's device."""
import torch
import triton
import triton.language as tl
from triton.language.extra import kiln as kl


@triton.jit
def _count_kernel(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    found = tl.load(x + at, mask=at < n, other=0) != 0
    tl.store(counts + tl.program_id(0), tl.sum(found.to(tl.int32), 0))


@triton.jit
def _compact_kernel(x, ends, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    found = tl.load(x + at, mask=at < n, other=0) != 0
    rank = tl.cumsum(found.to(tl.int32), 0)
    # ends[b] is how many the blocks up to b have: its own count off gives where the block starts.
    start = tl.load(ends + tl.program_id(0)) - tl.sum(found.to(tl.int32), 0)
    tl.store(out + start + rank - 1, at, mask=found)


def nonzero(input):
    n, block = input.numel(), 1024
    x = input.contiguous().reshape(-1)
    x = x.view(torch.uint8) if x.dtype is torch.bool else x
    flat = torch.empty((0,), dtype=torch.int64, device=input.device)
    if n > 0:
        programs = (n + block - 1) // block
        counts = torch.empty((programs,), dtype=torch.int64, device=input.device)
        _count_kernel[(programs,)](x, counts, n, BLOCK=block)
        ends = counts.cumsum(0)
        flat = torch.empty((int(ends[-1]),), dtype=torch.int64, device=input.device)
        if flat.numel() > 0:
            _compact_kernel[(programs,)](x, ends, flat, n, BLOCK=block)
    places, stride = [], 1
    for size in reversed(list(input.shape)):
        places.append(flat // stride % size if size > 0 else flat)
        stride *= size if size > 0 else 1
    return tuple(reversed(places))


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


_MOST_BINS = 1024  # of a program


def even_counts(x, number, low, high):
    """How many of float32 or halves are in each bin of one width, in float32. None where one program does not count
    all bins."""
    if number > _MOST_BINS or x.dtype is torch.float64:
        return None
    out = torch.zeros((number,), dtype=torch.float32, device=x.device)
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
    out = torch.zeros((number,), dtype=dtype, device=bins.device)
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
