"""Running logarithms of sums by kernels, and the greatest common divisor."""
import torch
import triton
import triton.language as tl
from torch import _kiln

_NEAR = tl.constexpr(16.0)  # exponents apart by less are added up as they are
_TILE_COST = 64  # of a tile, in elements
_WIDEST = 2048  # elements of a tile, which are scanned at once
_SIDE_BY_SIDE = 32  # rows of a tile of those that lie side by side
_PART = 2048  # elements of a long row's part
_ACROSS = 64  # of the part of rows that lie side by side
_LONG = 1 << 21  # elements that are worth one pass
_MOST_PARTS, _MOST_ACROSS = 8192, 128  # whose totals are not many beside what is scanned


@triton.jit
def _rows(rows, width, apart, ROWS: tl.constexpr, ACROSS: tl.constexpr):
    """Of a program: its rows, which of them there are, and where they begin. Elements of a row are `apart`; ACROSS,
    that is how many rows lie side by side."""
    block, lane = tl.program_id(0), tl.arange(0, ROWS)[:, None]
    if ACROSS:
        blocks = tl.cdiv(apart, ROWS)
        beside = block % blocks * ROWS + lane
        outer = (block // blocks).to(tl.int64) * apart
        return outer + beside, beside < apart, outer * width + beside
    else:
        row = block.to(tl.int64) * ROWS + lane
        return row, row < rows, row * width


@triton.jit
def _place(width, parts, WIDTH: tl.constexpr):
    """Of a program: its part of each row, and where that begins and ends. Parts are multiples of WIDTH."""
    part = tl.program_id(1)
    share = tl.cdiv(tl.cdiv(width, parts), WIDTH) * WIDTH
    return part, part * share, tl.minimum(part * share + share, width)


# A sum of exponentials is s * exp(m), where m is the greatest exponent: one exponential for each addition, of how far the
# other one is below.


@triton.jit
def _joined(m, s, n, t):
    # An exponent is not subtracted from itself: infinities have no difference.
    below = tl.exp(tl.where(m == n, 0.0, -tl.abs(m - n)))
    return (tl.maximum(m, n, propagate_nan=tl.PropagateNan.ALL), tl.where(m >= n, s, t) + tl.where(m >= n, t, s) * below)


@triton.jit
def _tile(x, start, there, at, end, apart, wide: tl.constexpr):
    return tl.load(x + start + at.to(tl.int64) * apart, mask=there & (at < end), other=float("-inf")).to(wide)


@triton.jit
def _part_log_sums_kernel(x, exponents, sums, rows, width, apart, parts, ROWS: tl.constexpr, WIDTH: tl.constexpr,
                          ACROSS: tl.constexpr):
    row, there, start = _rows(rows, width, apart, ROWS, ACROSS)
    column = tl.arange(0, WIDTH)[None, :]
    part, first, end = _place(width, parts, WIDTH)
    wide: tl.constexpr = exponents.dtype.element_ty
    m, s = tl.full((ROWS, 1), float("-inf"), wide), tl.zeros((ROWS, 1), wide)
    v = _tile(x, start, there, first + column, end, apart, wide)
    for begin in range(first, end, WIDTH):
        following = _tile(x, start, there, begin + WIDTH + column, end, apart, wide)
        n = tl.max(v, 1, keep_dims=True)
        m, s = _joined(m, s, n, tl.sum(tl.exp(tl.where(v == n, 0.0, v - n)), 1, keep_dims=True))
        v = following
    tl.store(exponents + row * parts + part, m, mask=there)
    tl.store(sums + row * parts + part, s, mask=there)


@triton.jit
def _log_sums_kernel(x, exponents, sums, out, rows, width, apart, parts, ROWS: tl.constexpr, WIDTH: tl.constexpr,
                     ACROSS: tl.constexpr, PARTS: tl.constexpr, WHOLE: tl.constexpr):
    row, there, start = _rows(rows, width, apart, ROWS, ACROSS)
    column = tl.arange(0, WIDTH)[None, :]
    part, first, end = _place(width, parts, WIDTH)
    wide: tl.constexpr = exponents.dtype.element_ty
    m, s = tl.full((ROWS, 1), float("-inf"), wide), tl.zeros((ROWS, 1), wide)
    following = _tile(x, start, there, first + column, end, apart, wide)
    if PARTS > 1:
        ahead = tl.arange(0, PARTS)[None, :]
        these = there & (ahead < part)
        m, s = tl.reduce((tl.load(exponents + row * parts + ahead, mask=these, other=float("-inf")),
                          tl.load(sums + row * parts + ahead, mask=these, other=0)), 1, _joined, keep_dims=True)
    for begin in range(first, end, WIDTH):
        at = begin + column
        inside = there & (at < end)
        v = following
        if not WHOLE:  # comes while this tile is scanned
            following = _tile(x, start, there, at + WIDTH, end, apart, wide)
        # Numbers near each other have one exponent: a sum of their exponentials loses nothing. Infinities and NaNs have
        # no difference that is less.
        top = tl.maximum(tl.max(v, 1, keep_dims=True), m)
        low = tl.minimum(tl.min(tl.where(inside, v, top), 1, keep_dims=True), tl.where(s > 0, m, top))
        between = tl.where(there, top - low, 0.0)
        if tl.min((between < _NEAR).to(tl.int32)) > 0:
            n = top + tl.zeros((ROWS, WIDTH), wide)
            t = tl.cumsum(tl.exp(v - top), 1) + s * tl.exp(m - top)
        else:
            n, t = tl.associative_scan((v, tl.full((ROWS, WIDTH), 1, wide)), 1, _joined)
            if not WHOLE:
                n, t = _joined(m, s, n, t)
        tl.store(out + start + at.to(tl.int64) * apart, (n + tl.log(t)).to(out.dtype.element_ty), mask=inside)
        if not WHOLE:
            last = column == WIDTH - 1
            m = tl.sum(tl.where(last, n, 0), 1, keep_dims=True)
            s = tl.sum(tl.where(last, t, 0), 1, keep_dims=True)


# Parts of rows in one pass: each tells its total of every row in two words, whose upper halves say that it is told, and
# waits for those of the parts before it, whose programs begin earlier.


@triton.jit
def _tell(words, half, there, m, s):
    tl.atomic_xchg(words, m.to(tl.uint32, bitcast=True).to(tl.int64) | (1 << 32), mask=there, sem="relaxed")
    tl.atomic_xchg(words + half, s.to(tl.uint32, bitcast=True).to(tl.int64) | (1 << 32), mask=there, sem="relaxed")


@triton.jit
def _told_halves(words, inside):
    word = tl.load(words, mask=inside, other=1 << 32, volatile=True)
    while tl.min(tl.min(word >> 32, 1), 0) == 0:
        missing = word >> 32 == 0
        word = tl.where(missing, tl.load(words, mask=missing, other=0, volatile=True), word)
    return word.to(tl.uint32).to(tl.float32, bitcast=True)


@triton.jit
def _told(words, apart, half, there, first, count, MOST: tl.constexpr):
    """The total of so many parts or groups, once all are told."""
    at = tl.arange(0, MOST)[None, :]
    words, inside = words + (first + at) * apart, there & (at < count)
    m = tl.where(inside, _told_halves(words, inside), float("-inf"))
    return tl.reduce((m, tl.where(inside, _told_halves(words + half, inside), 0.0)), 1, _joined, keep_dims=True)


@triton.jit
def _log_sums_in_one_pass_kernel(x, out, words, rows, width, apart, parts, blocks, words_of_row, words_apart, half,
                                 ROWS: tl.constexpr, WIDTH: tl.constexpr, ACROSS: tl.constexpr, GROUP: tl.constexpr,
                                 GROUPS: tl.constexpr):
    # The first parts of all rows come first.
    part, block, lane = tl.program_id(0) // blocks, tl.program_id(0) % blocks, tl.arange(0, ROWS)[:, None]
    if ACROSS:
        beside = block % tl.cdiv(apart, ROWS) * ROWS + lane
        outer, there = (block // tl.cdiv(apart, ROWS)).to(tl.int64) * apart, beside < apart
        row, start = outer + beside, outer * width + beside
    else:
        row, there = block.to(tl.int64) + lane, block + lane < rows
        start = row * width
    words += row * words_of_row
    first, at = part.to(tl.int64) * WIDTH, tl.arange(0, WIDTH)[None, :]
    inside, start = there & (at < width - first), start + first * apart
    v = tl.load(x + start + at * apart, mask=inside, other=float("-inf")).to(tl.float32)
    top = tl.max(v, 1, keep_dims=True)
    total = tl.sum(tl.exp(tl.where(v == top, 0.0, v - top)), 1, keep_dims=True)
    _tell(words + part * words_apart, half, there, top, total)
    group, in_group = part // GROUP, part % GROUP
    m, s = _told(words, words_apart, half, there, group * GROUP, in_group, GROUP)
    if in_group == GROUP - 1:
        n, t = _joined(m, s, top, total)
        _tell(words + (parts + group) * words_apart, half, there, n, t)
    n, t = _told(words, words_apart, half, there, parts, group, GROUPS)
    m, s = _joined(n, t, m, s)
    # As in the kernel above.
    low = tl.min(tl.where(inside, v, top), 1, keep_dims=True)
    if tl.min((tl.where(there, top - low, 0.0) < _NEAR).to(tl.int32)) > 0:
        most = tl.maximum(top, m)
        t = tl.cumsum(tl.exp(v - top), 1) * tl.exp(top - most) + s * tl.exp(tl.where(m == most, 0.0, m - most))
        tl.store(out + start + at * apart, (most + tl.log(t)).to(out.dtype.element_ty), mask=inside)
    else:
        n, t = tl.associative_scan((v, tl.full((ROWS, WIDTH), 1, tl.float32)), 1, _joined)
        n, t = _joined(m, s, n, t)
        tl.store(out + start + at * apart, (n + tl.log(t)).to(out.dtype.element_ty), mask=inside)


def _in_one_pass(x, out, rows, width, apart):
    across = apart > 1
    wide, group = (_ACROSS, 8) if across else (_PART, 128)
    parts = triton.cdiv(width, wide)
    groups = triton.cdiv(parts, group)
    blocks = rows // apart * triton.cdiv(apart, _SIDE_BY_SIDE) if across else rows
    places = (1, 2 * rows, rows) if across else (2 * (parts + groups), 2, 1)
    words = torch.zeros(rows * 2 * (parts + groups), dtype=torch.int64, device=x.device)
    _log_sums_in_one_pass_kernel[(blocks * parts,)](x, out, words, rows, width, apart, parts, blocks, *places,
                                                    ROWS=_SIDE_BY_SIDE if across else 1, WIDTH=wide, ACROSS=across,
                                                    GROUP=group, GROUPS=triton.next_power_of_2(groups), num_warps=4)


def _shape(rows, width, apart):
    """Rows to a program, the elements of each that are scanned at once, and warps."""
    together = 1 if apart == 1 else min(_SIDE_BY_SIDE, triton.next_power_of_2(apart))
    wide = least = min(_WIDEST // together, max(16, triton.next_power_of_2(width)))
    while least > 128:  # shorter tiles where less of the last one lies beyond the row; each has a cost of its own
        least //= 2
        if triton.cdiv(width, least) * (least + _TILE_COST) < triton.cdiv(width, wide) * (wide + _TILE_COST):
            wide = least
    if apart == 1:
        together = min(max(1, _WIDEST // wide), triton.next_power_of_2(rows))
    return together, wide, max(1, min(8, together * wide // 256))


def _parts(x, programs, width, wide):
    """In how many parts rows are scanned, so that there are programs for all processors: each reads the totals of those
    ahead of it, which a kernel of their own computes."""
    places = 4 * _kiln.processors(x, 4)
    return max(1, min(places // programs, triton.cdiv(width, wide), 1024))


def logcumsumexp(input, dim):
    x = (input.reshape(1) if input.ndim == 0 else input).contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        width, apart = x.shape[dim], 1
        for n in x.shape[dim % x.ndim + 1:]:
            apart *= n
        rows = x.numel() // width
        together, wide, warps = _shape(rows, width, apart)
        programs = triton.cdiv(rows, together) if apart == 1 else rows // apart * triton.cdiv(apart, together)
        parts = _parts(x, programs, width, wide)
        wider = torch.float64 if x.dtype is torch.float64 else torch.float32
        # Where the launches do not take the time, nor many totals (an H200: 1000 x 25001 floats in 109 us, in two
        # passes 137; columns of 5000 x 3000 halves in 114 and 155; of 30000 x 100 floats in 46 and 41).
        if ((parts > 1 or (apart == 1 and width >= 8 * _PART)) and wider is torch.float32 and x.numel() >= _LONG and
                width <= (_PART * _MOST_PARTS if apart == 1 else _ACROSS * _MOST_ACROSS)):
            _in_one_pass(x, out, rows, width, apart)
            return out.reshape(()) if input.ndim == 0 else out
        totals = torch.empty((2, rows * parts), dtype=wider, device=x.device)
        if parts > 1:
            _part_log_sums_kernel[(programs, parts)](x, totals[0], totals[1], rows, width, apart, parts, ROWS=together,
                                                     WIDTH=wide, ACROSS=apart > 1, num_warps=warps)
        _log_sums_kernel[(programs, parts)](x, totals[0], totals[1], out, rows, width, apart, parts, ROWS=together,
                                            WIDTH=wide, ACROSS=apart > 1, PARTS=triton.next_power_of_2(parts),
                                            WHOLE=width <= wide, num_warps=warps)
    return out.reshape(()) if input.ndim == 0 else out


@triton.jit
def _gcd_kernel(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(a + at, mask=at < n, other=0), tl.load(b + at, mask=at < n, other=0)
    while tl.max((y != 0).to(tl.int32), 0) > 0:  # Euclid's algorithm, for all until the last is done
        rest = tl.where(y == 0, 0, x % tl.where(y == 0, 1, y)).to(y.dtype)
        x = tl.where(y == 0, x, y)
        y = rest
    tl.store(out + at, x, mask=at < n)


def gcd(a, b):
    """Of two tensors of integers, not negative, of one shape and dtype."""
    a, b = a.contiguous(), b.contiguous()
    out, n, block = torch.empty(a.shape, dtype=a.dtype, device=a.device), a.numel(), 256
    if n > 0:
        _gcd_kernel[(triton.cdiv(n, block),)](a, b, out, n, BLOCK=block)
    return out
