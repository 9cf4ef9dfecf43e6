"""The first elements of long rows: one pass over them keeps those up to a threshold, which a sample gives.

Elements are in the order of a stable sort: of equal ones the first is ahead, so that no two have the same place and the
threshold is an element, by its order and its column. However many are equal to it, about as many elements are up to it
as the sample says: it is so far behind that they are k or more, and few enough for each to be compared with each. That
gives their places in the result. Where they are many, more elements of the sample part them first, and each is compared
with those of its part.

Nothing is known on the host: where the sample has misled, which random columns make as rare as six standard deviations,
one program finds the first k of its row (_find_exact).
"""
import math

import torch
import triton
import triton.language as tl
from torch import _kiln
from torch._sort import _digit_of_rank, _first, _key, _order, _SIZES
from triton.language.extra import kiln as kl

_SHORTEST = 2**17  # elements of a row of which a sample pays
_GROUP = 256       # elements of the sample that a program ranks
_MINE = 32         # elements that a program ranks among all candidates
_AT_ONCE = tl.constexpr(256)  # candidates that it compares them with
# Words behind those of a row: the last ones are the threshold, and ahead of it how many candidates there are; ahead of
# these as many for each part, of which the first two are its last element, and the next column how many it has.
_BEHIND = tl.constexpr(16)


@triton.jit
def _joined(order, column):
    """One number for both: less than 2**63, so that the top bit of a difference says which one is less."""
    return (order.to(tl.uint64) << 31) | column.to(tl.uint64)


@triton.jit
def _ahead(order, column, of_order, of_column, BITS: tl.constexpr):
    order, column = order[None, :], column[None, :]
    of_order, of_column = of_order[:, None], of_column[:, None]
    if BITS == 64:
        return ((order < of_order) | ((order == of_order) & (column < of_column))).to(tl.int32)
    return ((_joined(order, column) - _joined(of_order, of_column)) >> 63).to(tl.int32)


@triton.jit
def _rank(orders, columns, order, column, count, MINE: tl.constexpr, AT_ONCE: tl.constexpr, BITS: tl.constexpr):
    """How many of the first `count` are ahead of each of MINE elements."""
    ahead = tl.zeros((MINE, AT_ONCE), tl.int32)
    i = tl.arange(0, AT_ONCE)
    whole = count // AT_ONCE * AT_ONCE
    # What is outside is behind all there is. The loads of the next ones run beside the comparisons.
    other = tl.load(orders + i, mask=i < count, other=2**BITS - 1)
    place = tl.load(columns + i, mask=i < count, other=2**31 - 1)
    for at in range(AT_ONCE, whole, AT_ONCE):
        next_other, next_place = tl.load(orders + at + i), tl.load(columns + at + i)
        ahead += _ahead(other, place, order, column, BITS)
        other, place = next_other, next_place
    ahead += _ahead(other, place, order, column, BITS)
    if (whole > 0) & (whole < count):
        other = tl.load(orders + whole + i, mask=whole + i < count, other=2**BITS - 1)
        place = tl.load(columns + whole + i, mask=whole + i < count, other=2**31 - 1)
        ahead += _ahead(other, place, order, column, BITS)
    return tl.sum(ahead, 1)


@triton.jit
def _mixed(x):
    """A random number for each number (the finalizer of MurmurHash3)."""
    x = x.to(tl.uint32)
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit(do_not_specialize=_SIZES)
def _sample_kernel(x, orders, columns, width, room, sample, nearest, keep, groups, log_size,
                   GROUP: tl.constexpr, BITS: tl.constexpr, FLOATS: tl.constexpr, DESCENDING: tl.constexpr):
    """The first `keep` of each group of the sample.

    The row has 2**log_size parts of equal length, of which each gives an element from a random place: neither a slope
    nor a period of the row shows in the sample. Of as many parts in a row as there are groups each has one, which
    one is random too."""
    row, group = (tl.program_id(0) // groups).to(tl.int64), tl.program_id(0) % groups
    i = tl.arange(0, GROUP)
    part = i * groups + ((group + _mixed(i).to(tl.int32)) & (groups - 1))
    jitter = (_mixed(part + GROUP).to(tl.uint64) * (width >> log_size).to(tl.uint64)) >> 32
    column = ((part.to(tl.int64) * width) >> log_size).to(tl.int32) + jitter.to(tl.int32)
    word: tl.constexpr = tl.uint64 if BITS == 64 else tl.uint32
    order = _order(_key(tl.load(x + row * width + column), BITS), FLOATS, DESCENDING, BITS).to(word)
    at = row * room + sample + group * GROUP
    tl.store(orders + at + i, order)
    tl.store(columns + at + i, column)
    tl.debug_barrier()
    rank = _rank(orders + at, columns + at, order, column, GROUP, GROUP, 32, BITS)
    to = row * room + nearest + group * keep + rank
    tl.store(orders + to, order, mask=rank < keep)
    tl.store(columns + to, column, mask=rank < keep)


@triton.jit(do_not_specialize=_SIZES)
def _threshold_kernel(orders, columns, room, nearest, count, programs, gap, PARTS: tl.constexpr, MINE: tl.constexpr,
                      BITS: tl.constexpr):
    """Finds the last element of each part in what groups have kept: each `gap`-th one. There is no candidate yet."""
    row, program = (tl.program_id(0) // programs).to(tl.int64), tl.program_id(0) % programs
    at = row * room + nearest
    i = program * MINE + tl.arange(0, MINE)
    order = tl.load(orders + at + i, mask=i < count, other=0)
    column = tl.load(columns + at + i, mask=i < count, other=0)
    rank = _rank(orders + at, columns + at, order, column, count, MINE, _AT_ONCE, BITS) + 1
    end = row * room + room
    last = (i < count) & (rank == gap * PARTS)
    tl.store(orders + end - 1 + 0 * i, order, mask=last)
    tl.store(columns + end - 1 + 0 * i, column, mask=last)
    if program == 0:
        tl.store(columns + end - 2, 0)
    if PARTS > 1:
        parts = end - _BEHIND * (PARTS + 1)
        these = (i < count) & (rank % gap == 0) & (rank <= gap * PARTS)
        to = parts + (rank // gap - 1) * _BEHIND
        tl.store(orders + to, order, mask=these)
        tl.store(columns + to, column, mask=these)
        if program == 0:
            tl.store(columns + parts + tl.arange(0, PARTS) * _BEHIND + 1, 0)


@triton.jit
def _greater(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL).to(a.dtype)


@triton.jit
def _best(v, DESCENDING: tl.constexpr):
    """The first one in the order of the sort; NaN is the greatest."""
    if DESCENDING:
        return tl.reduce(v, 0, _greater)
    return tl.min(v, 0).to(v.dtype)


@triton.jit
def _append(elements, inside, column, last, border, orders, columns, count, capacity, BITS: tl.constexpr,
            FLOATS: tl.constexpr, DESCENDING: tl.constexpr):
    """Adds those up to the threshold to the candidates, of which `count` is the number."""
    order = _order(_key(elements, BITS), FLOATS, DESCENDING, BITS).to(orders.dtype.element_ty)
    these = (inside & ((order < last) | ((order == last) & (column <= border)))).to(tl.int32)
    found = tl.sum(these)
    if found > 0:
        place = tl.atomic_add(count, found, sem="relaxed") + tl.cumsum(these) - 1
        kept = (these > 0) & (place < capacity)
        tl.store(orders + place, order, mask=kept)
        tl.store(columns + place, column, mask=kept)


@triton.jit(do_not_specialize=_SIZES)
def _candidates_kernel(x, orders, columns, width, room, capacity, programs, BITS: tl.constexpr, FLOATS: tl.constexpr,
                       DESCENDING: tl.constexpr, TILE: tl.constexpr, PIECE: tl.constexpr, EDGE: tl.constexpr):
    """All elements up to the threshold, in any order. Most tiles have none: that takes one maximum to see.

    A warp is a program, which waits for no other one. Tiles begin where vectors do, wherever the row begins: what is
    ahead of them and behind them is looked at in short pieces."""
    row, program = (tl.program_id(0) // programs).to(tl.int64), tl.program_id(0) % programs
    to, behind = row * room, row * room + room
    last, border = tl.load(orders + behind - 1), tl.load(columns + behind - 1)
    aligned = (row * width + 15) // 16 * 16
    head = (aligned - row * width).to(tl.int32)
    tiles = (width - head) // TILE
    for tile in range(program, tiles, programs):
        first = head + tile * TILE
        from_ = x + aligned + tile * TILE
        best = _order(_key(_best(tl.load(from_ + tl.arange(0, TILE)), DESCENDING), BITS), FLOATS, DESCENDING, BITS)
        if (best < last) | ((best == last) & (first <= border)):
            for piece in range(0, TILE, PIECE):
                i = piece + tl.arange(0, PIECE)
                _append(tl.load(from_ + i), True, first + i, last, border, orders + to, columns + to,
                        columns + behind - 2, capacity, BITS, FLOATS, DESCENDING)
    tail = head + tiles * TILE
    for edge in range(programs - 1 - program, 1 + tl.cdiv(width - tail, EDGE), programs):
        column = tl.where(edge == 0, 0, tail + (edge - 1) * EDGE) + tl.arange(0, EDGE)
        inside = column < tl.where(edge == 0, head, width)
        _append(tl.load(x + row * width + column, mask=inside, other=0), inside, column, last, border, orders + to,
                columns + to, columns + behind - 2, capacity, BITS, FLOATS, DESCENDING)


@triton.jit
def _find_exact(x, orders, columns, width, k, BITS: tl.constexpr, FLOATS: tl.constexpr, DESCENDING: tl.constexpr,
                CHUNK: tl.constexpr):
    """The first k of a row as the candidates, by one program."""
    i = tl.arange(0, CHUNK)
    word: tl.constexpr = tl.uint64 if BITS == 64 else tl.uint32
    need, last = k, tl.full((), 0, word)  # which element of those with the last one's digits so far it is, from 1
    for pass_ in tl.static_range(BITS // 8):
        SHIFT: tl.constexpr = BITS - 8 - 8 * pass_
        found = tl.zeros((256,), tl.int32)
        for begin in range(0, width, CHUNK):
            order = _order(_key(tl.load(x + begin + i, mask=begin + i < width, other=0), BITS), FLOATS, DESCENDING,
                           BITS).to(word)
            these = begin + i < width
            if pass_ > 0:
                these = these & (order >> (SHIFT + 8) == last)
            found += kl.bucket_place(tl.where(these, ((order >> SHIFT) & 255).to(tl.int32), 256), 256)[1]
        digit, need = _digit_of_rank(found, need)
        last = (last << 8) | digit.to(word)
    taken = 0
    for begin in range(0, width, CHUNK):
        order = _order(_key(tl.load(x + begin + i, mask=begin + i < width, other=0), BITS), FLOATS, DESCENDING,
                       BITS).to(word)
        equal = (begin + i < width) & (order == last)
        these = (begin + i < width) & ((order < last) | (equal & (_first(equal) < need)))
        place = taken + _first(these)
        tl.store(orders + place, order, mask=these)
        tl.store(columns + place, begin + i, mask=these)
        need -= tl.minimum(need, tl.sum(equal.to(tl.int32)))
        taken += tl.sum(these.to(tl.int32))


@triton.jit(do_not_specialize=_SIZES)
def _exact_kernel(x, orders, columns, width, room, capacity, k, BITS: tl.constexpr, FLOATS: tl.constexpr,
                  DESCENDING: tl.constexpr, CHUNK: tl.constexpr):
    """Where there are too few candidates, or more than there is room for: exactly k of them instead."""
    row = tl.program_id(0).to(tl.int64)
    count = tl.load(columns + row * room + room - 2)
    if (count < k) | (count > capacity):
        _find_exact(x + row * width, orders + row * room, columns + row * room, width, k, BITS, FLOATS, DESCENDING,
                    CHUNK)
        tl.store(columns + row * room + room - 2, k)


@triton.jit(do_not_specialize=_SIZES)
def _part_kernel(orders, columns, room, of_parts, capacity, programs, LOG_PARTS: tl.constexpr, SIZE: tl.constexpr):
    """Copies each candidate to those of its part, in any order."""
    row, program = (tl.program_id(0) // programs).to(tl.int64), tl.program_id(0) % programs
    at = row * room
    count = tl.load(columns + at + room - 2)
    if program * SIZE < count:
        i = program * SIZE + tl.arange(0, SIZE)
        order = tl.load(orders + at + i, mask=i < count, other=0)
        column = tl.load(columns + at + i, mask=i < count, other=0)
        parts = at + room - _BEHIND * (2**LOG_PARTS + 1)
        part = tl.zeros((SIZE,), tl.int32)
        for bit in tl.static_range(LOG_PARTS):  # what is behind all of them is of the last part too
            STEP: tl.constexpr = 2**(LOG_PARTS - 1 - bit)
            at_end = parts + (part + STEP - 1) * _BEHIND
            end, border = tl.load(orders + at_end), tl.load(columns + at_end)
            part += tl.where((order > end) | ((order == end) & (column > border)), STEP, 0)
        place = tl.atomic_add(columns + parts + part * _BEHIND + 1, 1, mask=i < count, sem="relaxed")
        kept = (i < count) & (place < capacity)
        to = at + of_parts + part * capacity + place
        tl.store(orders + to, order, mask=kept)
        tl.store(columns + to, column, mask=kept)


@triton.jit
def _put_ranked(x, orders, columns, values, places, begin, count, ahead, k, MINE: tl.constexpr, BITS: tl.constexpr):
    """Puts MINE of `count` candidates where those ahead of them end."""
    i = begin + tl.arange(0, MINE)
    order = tl.load(orders + i, mask=i < count, other=0)
    column = tl.load(columns + i, mask=i < count, other=0)
    # Loaded again, because orders do not tell -0.0 from 0.0, or one NaN from another.
    value = tl.load(x + column)
    rank = ahead + _rank(orders, columns, order, column, count, MINE, _AT_ONCE, BITS)
    kept = (i < count) & (rank < k)
    tl.store(values + rank, value, mask=kept)
    tl.store(places + rank, column.to(tl.int64), mask=kept)


@triton.jit(do_not_specialize=_SIZES)
def _ranked_kernel(x, orders, columns, values, places, width, room, capacity, k, programs, MINE: tl.constexpr,
                   BITS: tl.constexpr, FLOATS: tl.constexpr, DESCENDING: tl.constexpr, CHUNK: tl.constexpr):
    """Compares each candidate with each. Where the sample has misled, a row's first program alone finds all: k are few
    then, and a launch less for all others."""
    row, program = (tl.program_id(0) // programs).to(tl.int64), tl.program_id(0) % programs
    x, orders, columns = x + row * width, orders + row * room, columns + row * room
    values, places = values + row * k, places + row * k
    count = tl.load(columns + room - 2)
    if (count < k) | (count > capacity):
        if program == 0:
            _find_exact(x, orders, columns, width, k, BITS, FLOATS, DESCENDING, CHUNK)
            tl.debug_barrier()
            for begin in range(0, k, MINE):
                _put_ranked(x, orders, columns, values, places, begin, k, 0, k, MINE, BITS)
    elif program * MINE < count:
        _put_ranked(x, orders, columns, values, places, program * MINE, count, 0, k, MINE, BITS)


@triton.jit(do_not_specialize=_SIZES)
def _ranked_parts_kernel(x, orders, columns, values, places, width, room, k, of_parts, capacity, programs,
                         PARTS: tl.constexpr, MINE: tl.constexpr, BITS: tl.constexpr):
    """Compares each candidate with each of its part; those of the parts ahead are ahead of it."""
    row, program = (tl.program_id(0) // programs).to(tl.int64), tl.program_id(0) % programs
    at, part = row * room, tl.arange(0, PARTS)
    counts = tl.load(columns + at + room - _BEHIND * (PARTS + 1) + part * _BEHIND + 1)
    count, ahead = tl.load(columns + at + room - 2), 0
    if tl.max(counts) <= capacity:  # else not all are there
        mine = program // (programs // PARTS)
        ahead = tl.sum(tl.where(part < mine, counts, 0))
        count = tl.sum(tl.where(part == mine, counts, 0))
        at += of_parts + mine * capacity
        program = program % (programs // PARTS)
    if (program * MINE < count) & (ahead < k):
        _put_ranked(x + row * width, orders + at, columns + at, values + row * k, places + row * k, program * MINE,
                    count, ahead, k, MINE, BITS)


_PARTS = (1, 8, 64, 512)
_LAUNCH = 2**25  # comparisons that take as long as one more launch
_plans = {}


class _Plan:
    """How many elements the sample has; in how many parts candidates are, and of how many elements of the sample each
    is; how many of a group of the sample may be up to the threshold; for how many candidates there is room, in all and
    in each part; how long all but the pass takes, in comparisons; and where in a row's words what is.

    Of the first k elements, `share` are in the sample on average, as many as a Poisson distribution has. A
    threshold behind all of them but once in 10**9 times, of rank r, has as many elements ahead of it as a gamma
    distribution: again that many standard deviations are the room. A large sample has few candidates."""

    def __init__(self, x, rows, width, k):
        self.cost = None
        for log_size in range(11, min(19, (width // 32).bit_length() - 1) + 1):
            size = 2**log_size
            if self.cost is not None and size * (_GROUP + 128) > self.cost:
                break
            share = k / width * size
            least = math.ceil(share + 6 * math.sqrt(share) + 3 + min(3, 10 * share))
            for parts in _PARTS:
                gap = triton.cdiv(least, parts)
                if parts > 1 and gap < 4:  # parts that differ much
                    break
                of_group = gap * parts * _GROUP / size
                keep = min(_GROUP, math.ceil(of_group + 3 * math.sqrt(of_group) + 2))
                # Those of a group, of what groups have kept and of a part are compared with each other, and a sector of
                # memory for each element of the sample takes as long as 128 comparisons.
                candidates = gap * parts * width / size
                cost = size * (_GROUP + 128) + (size // _GROUP * keep)**2 + candidates**2 / parts
                cost += candidates * parts + 2 * _LAUNCH / rows if parts > 1 else 0
                if self.cost is None or cost < self.cost:
                    self.log_size, self.parts, self.gap, self.keep, self.cost = log_size, parts, gap, keep, cost
        self.capacity, self.of_part = [
            math.ceil((rank + 6 * math.sqrt(rank) + 12) * width / 2**self.log_size / 64) * 64
            for rank in (self.gap * self.parts, self.gap)
        ]
        self.pays = rows * self.cost <= 16 * _LAUNCH + 64 * rows * width
        self.groups = 2**self.log_size // _GROUP
        self.nearest = self.groups * self.keep
        # Behind the candidates are those that groups have kept, the sample, and the candidates by parts.
        self.sample = self.capacity + triton.cdiv(self.nearest, 16) * 16
        self.of_parts = self.sample + 2**self.log_size
        self.room = self.of_parts + (self.parts * (self.of_part + 16) if self.parts > 1 else 0) + 16
        # Elements of 4 KiB, in 32 of the 64 registers that a thread has when a processor takes 32 programs, its most.
        self.tile = min(2048, 4096 // x.element_size())
        self.programs = max(1, min(triton.cdiv(width, self.tile), 32 * _kiln.processors(x, 4) // rows))
        # Each launch begins while the one ahead of it ends: of short rows the launches are most of the time.
        self.early = x.is_cuda and torch.cuda.get_device_capability(x.device)[0] >= 9


def plan(x, rows, width, k):
    """How the first k of rows are found so, or None where other roads take less time: some twenty launches, and in them
    as long as 64 comparisons for each element."""
    if width < _SHORTEST or width >= 2**31 - 2**13 or k > width // 16:
        return None
    key = rows, width, k, x.element_size(), x.device
    found = _plans.get(key)
    if found is None:
        if len(_plans) == 1000:
            _plans.clear()
        found = _plans[key] = _Plan(x, rows, width, k)
    return found if found.pays else None


def first_of_long(p, x, rows, width, k, shape, common):
    """The first k of each row in the order of a stable sort, and their places, as tensors of this shape."""
    bits, device, room, capacity, early = common["BITS"], x.device, p.room, p.capacity, p.early
    orders = torch.empty((rows * room, ), dtype=torch.uint64 if bits == 64 else torch.uint32, device=device)
    columns = torch.empty((rows * room, ), dtype=torch.int32, device=device)
    values = torch.empty(shape, dtype=x.dtype, device=device)
    places = torch.empty(shape, dtype=torch.int64, device=device)
    _sample_kernel[(rows * p.groups, )](x, orders, columns, width, room, p.sample, capacity, p.keep, p.groups,
                                        p.log_size, GROUP=_GROUP, num_warps=8, launch_pdl=early, **common)
    programs = triton.cdiv(p.nearest, _MINE)
    _threshold_kernel[(rows * programs, )](orders, columns, room, capacity, p.nearest, programs, p.gap, PARTS=p.parts,
                                           MINE=_MINE, BITS=bits, num_warps=8, launch_pdl=early)
    _candidates_kernel[(rows * p.programs, )](x, orders, columns, width, room, capacity, p.programs, TILE=p.tile,
                                              PIECE=256, EDGE=128, num_warps=1, launch_pdl=early, maxnreg=64, **common)
    if p.parts == 1:
        programs = triton.cdiv(capacity, _MINE)
        _ranked_kernel[(rows * programs, )](x, orders, columns, values, places, width, room, capacity, k, programs,
                                            MINE=_MINE, CHUNK=4096, num_warps=8, maxnreg=80 if bits < 64 else 104,
                                            launch_pdl=early, **common)
        return values, places
    _exact_kernel[(rows, )](x, orders, columns, width, room, capacity, k, CHUNK=4096, num_warps=16,
                           launch_pdl=early, **common)
    programs = triton.cdiv(capacity, 256)
    _part_kernel[(rows * programs, )](orders, columns, room, p.of_parts, p.of_part, programs,
                                      LOG_PARTS=p.parts.bit_length() - 1, SIZE=256, num_warps=4, launch_pdl=early)
    # As many as a part's candidates need, and all of them where a part has no room.
    programs = p.parts * triton.cdiv(max(p.of_part, triton.cdiv(capacity, p.parts)), _MINE)
    _ranked_parts_kernel[(rows * programs, )](x, orders, columns, values, places, width, room, k, p.of_parts, p.of_part,
                                              programs, PARTS=p.parts, MINE=_MINE, BITS=bits, num_warps=8,
                                              launch_pdl=early)
    return values, places
