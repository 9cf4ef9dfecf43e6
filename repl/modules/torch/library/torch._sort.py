"""Sorting by kernels: stable radix sorts by digits of eight bits, the lowest first (kl.bucket_place).

Rows that fit one tile are sorted by one program each, or several to a program; short ones by exchanges. Longer ones
take one pass over memory for each digit, in which every tile finds out where its elements go by looking back at the
tiles ahead of it (Merrill and Garland's decoupled look-back, as in Adinets and Merrill's onesweep sort).
"""
import math

import torch
import triton
import triton.language as tl
from torch import _kiln
from triton.language.extra import kiln as kl

_NARROWEST = 256  # elements of a row up to which exchanges take less time than digits (an H100: 42 and 96 us for 4M
                  # floats in rows of 64, 67 and 90 of 256, 88 and 86 of 512)
_NARROWEST_KEYS = 1024  # the same of keys alone that have 32 bits or more (an H200: 31 us for 4M floats in rows of 64,
                        # 38 and 83 of 255, 44 and 79 of 512, 56 and 78 of 1000); shorter ones have fewer digits
_PAIRED = 32    # elements of a row up to which each is compared with each, where keys have 64 bits
_WIDEST = 8192  # elements of a row that one program sorts
_MANY = 32      # long rows of which each program takes one
_CHUNK = 4096   # of a row that is read in a loop
_TILE = 8192    # of a pass: 32 elements to a thread, in registers
# Numbers that follow from lengths and k, which no address has as a factor: kernels would be compiled for multiples of
# 16 and others of each, and each pass for its own number.
_SIZES = ("rows", "keep", "beside", "rank", "tiles", "share", "shares", "number", "chunks", "groups", "log_size",
          "count", "programs", "gap", "k")


@triton.jit
def _key(x, BITS: tl.constexpr):
    """Unsigned numbers in the order of the values, NaN the greatest. Those of -0.0 and 0.0 are different neighbours."""
    TOP: tl.constexpr = 1 << (BITS - 1)
    word: tl.constexpr = tl.uint64 if BITS == 64 else tl.uint32
    if x.dtype.is_floating():
        bits = x.to(tl.core.get_int_dtype(BITS, False), bitcast=True).to(word)
        key = tl.where((bits & TOP) != 0, bits ^ (2 * TOP - 1), bits | TOP)
        return tl.where(x != x, 2 * TOP - 1, key).to(word)
    bits = x.to(tl.core.get_int_dtype(BITS, False), bitcast=True).to(word)
    if x.dtype.is_int_signed():
        bits = bits ^ TOP
    return bits


@triton.jit
def _value(key, DTYPE: tl.constexpr, BITS: tl.constexpr):
    TOP: tl.constexpr = 1 << (BITS - 1)
    if DTYPE.is_floating():
        key = tl.where((key & TOP) != 0, key ^ TOP, key ^ (2 * TOP - 1))
    elif DTYPE.is_int_signed():
        key = key ^ TOP
    return key.to(tl.core.get_int_dtype(BITS, False)).to(DTYPE, bitcast=True)


@triton.jit
def _order(key, FLOATS: tl.constexpr, DESCENDING: tl.constexpr, BITS: tl.constexpr):
    """The numbers that are sorted: equal for -0.0 and 0.0, and the least first."""
    TOP: tl.constexpr = 1 << (BITS - 1)
    if FLOATS:
        key = tl.where(key == TOP - 1, TOP, key).to(key.dtype)
    if DESCENDING:
        key = key ^ (2 * TOP - 1)
    return key


@triton.jit
def _digit(key, shift, FLOATS: tl.constexpr, DESCENDING: tl.constexpr, BITS: tl.constexpr):
    return ((_order(key, FLOATS, DESCENDING, BITS) >> shift) & 255).to(tl.int32)


@triton.jit
def _first(these):
    """For each element, how many of these are ahead of it; right for these alone."""
    return kl.bucket_place(tl.where(these, 0, 1), 1)[0]


@triton.jit
def _by_digit(key, place, digit, BINS: tl.constexpr):
    to = kl.bucket_place(digit, BINS)[0]
    return kl.scatter(key, to, 0), kl.scatter(place, to, 0)


@triton.jit
def _loaded_key(from_, mask, BITS: tl.constexpr, IS_KEY: tl.constexpr):
    if IS_KEY:
        return tl.load(from_, mask=mask, other=0).to(tl.uint64 if BITS == 64 else tl.uint32)
    return _key(tl.load(from_, mask=mask, other=0), BITS)


@triton.jit(do_not_specialize=_SIZES)
def _rows_kernel(x, in_places, values, out_places, rows, width, keep, ROWS: tl.constexpr, WIDTH: tl.constexpr,
                 BITS: tl.constexpr, FLOATS: tl.constexpr, DESCENDING: tl.constexpr, IN_KEYS: tl.constexpr,
                 VALUES: tl.constexpr, PLACES: tl.constexpr):
    """Sorts ROWS rows of at most WIDTH elements, and keeps the first ones of each. Values and places are written where
    they are asked for."""
    at = tl.arange(0, ROWS * WIDTH)
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = first + at // WIDTH
    inside = (row < rows) & (at % WIDTH < width)
    word: tl.constexpr = tl.uint64 if BITS == 64 else tl.uint32
    LAST: tl.constexpr = 0 if DESCENDING else 2**BITS - 1  # what is outside comes last
    key = tl.where(inside, _loaded_key(x + row * width + at % WIDTH, inside, BITS, IN_KEYS), LAST).to(word)
    order = at
    for shift in tl.static_range(0, BITS, 8):
        digit = _digit(key, shift, FLOATS, DESCENDING, BITS)
        if BITS < 64:
            key, order = _by_digit(key, order, digit, 256)
        else:  # most are places or identifiers, whose high digits are all 0
            held = (first + order // WIDTH < rows) & (order % WIDTH < width)
            if tl.max(tl.where(held, digit, 0)) != tl.min(tl.where(held, digit, 255)):
                key, order = _by_digit(key, order, digit, 256)
    if ROWS > 1:
        key, order = _by_digit(key, order, order // WIDTH, ROWS)
    kept = (row < rows) & (at % WIDTH < keep)
    to = row * keep + at % WIDTH
    if VALUES:
        tl.store(values + to, _value(key, values.dtype.element_ty, BITS), mask=kept)
    if PLACES:
        place = order % WIDTH
        if IN_KEYS:
            place = tl.load(in_places + row * width + place, mask=kept, other=0)
        tl.store(out_places + to, place.to(tl.int64), mask=kept)


@triton.jit
def _by_network(key, column):
    """Where each element of sorted rows was: keys leave the upper 16 bits of their words free."""
    return (tl.sort((key << 16) | column.to(key.dtype), 1) & 0xffff).to(tl.int32)


@triton.jit(do_not_specialize=_SIZES)
def _narrow_kernel(x, values, out_places, rows, width, keep, beside, ROWS: tl.constexpr, WIDTH: tl.constexpr,
                   BITS: tl.constexpr, FLOATS: tl.constexpr, DESCENDING: tl.constexpr, VALUES: tl.constexpr,
                   PLACES: tl.constexpr, KEYS: tl.constexpr):
    """The same for short rows: numbers that have a key above and its place below, in a network of exchanges. With KEYS
    the keys alone, of which -0.0 is less than 0.0. `beside` rows lie side by side, element by element."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    inside = (row < rows) & (column < width)
    kept = (row < rows) & (column < keep)
    from_ = x + row // beside * beside * width + row % beside
    to = row // beside * beside * keep + row % beside + column * beside
    key = _loaded_key(from_ + column * beside, inside, BITS, False)
    if KEYS:
        ALL: tl.constexpr = 2**BITS - 1 if DESCENDING else 0
        key = tl.where(inside, key ^ ALL, 2**BITS - 1).to(tl.uint64 if BITS == 64 else tl.uint32)
        if BITS == 64:  # most are places, counts or identifiers, of whose bits few differ
            least = tl.min(key)
            most = tl.max(tl.where(inside, key, least)) - least
            if most < 2**32:
                key = tl.sort(tl.where(inside, key - least, 2**32 - 1).to(tl.uint32), 1).to(tl.uint64) + least
            else:
                key = tl.sort(key, 1)
        else:
            key = tl.sort(key, 1)
        tl.store(values + to, _value(key ^ ALL, values.dtype.element_ty, BITS), mask=kept)
        return
    key = _order(key, FLOATS, DESCENDING, BITS)
    key = tl.where(inside, key, 2**BITS - 1)  # what is outside comes last, for its place
    if BITS == 64:
        # Most are places, counts or identifiers: few of their bits differ. The others are sorted by 48 bits, then 16.
        key -= tl.min(key)
        most = tl.max(tl.where(inside, key, 0))
        if most < 2**16:
            place = _by_network(tl.where(inside, key, 2**16 - 1).to(tl.uint32), column)
        elif most < 2**48:
            place = _by_network(tl.where(inside, key, 2**48 - 1), column)
        else:
            low = _by_network(key & (2**48 - 1), column)
            high = _by_network(tl.gather((key >> 48).to(tl.uint32), low, 1), column)
            place = tl.gather(low, high, 1)
    else:
        place = _by_network(key.to(tl.uint64 if BITS == 32 else tl.uint32), column)
    place = place.to(tl.int64)
    if VALUES:  # keys do not tell -0.0 from 0.0, or one NaN from another
        tl.store(values + to, tl.load(from_ + place * beside, mask=kept, other=0), mask=kept)
    if PLACES:
        tl.store(out_places + to, place, mask=kept)


@triton.jit(do_not_specialize=_SIZES)
def _ranks_kernel(x, values, out_places, rows, width, keep, ROWS: tl.constexpr, WIDTH: tl.constexpr,
                  BITS: tl.constexpr, FLOATS: tl.constexpr, DESCENDING: tl.constexpr, VALUES: tl.constexpr,
                  PLACES: tl.constexpr):
    """The same for short rows of wide numbers: each goes where those ahead of it in their order end."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    inside = (row < rows) & (column < width)
    key = _loaded_key(x + row * width + column, inside, BITS, False)
    order = _order(key, FLOATS, DESCENDING, BITS)
    mine, other = order[:, :, None], order[:, None, :]
    ahead = (other < mine) | (other == mine) & (column[:, None, :] < column[:, :, None])
    rank = tl.sum((ahead & inside[:, None, :]).to(tl.int32), 2)
    kept = inside & (rank < keep)
    if VALUES:
        tl.store(values + row * keep + rank, tl.load(x + row * width + column, mask=inside, other=0), mask=kept)
    if PLACES:
        tl.store(out_places + row * keep + rank, (column + 0 * row).to(tl.int64), mask=kept)


@triton.jit
def _digit_of_rank(count, need):
    """The digit of the need-th number, from how often each is there, and which number of that digit it is."""
    digit = tl.sum((tl.cumsum(count) < need).to(tl.int32))
    return digit, need - tl.sum(tl.where(tl.arange(0, 256) < digit, count, 0))


@triton.jit
def _of_rank(order, need, BITS: tl.constexpr):
    """The need-th of the numbers in their order, from 1, and how many of those equal to it come up to it."""
    last = tl.full((), 0, order.dtype)  # its digits so far, from the highest
    for i in tl.static_range(BITS // 8):
        SHIFT: tl.constexpr = BITS - 8 - 8 * i
        digit = ((order >> SHIFT) & 255).to(tl.int32)
        if i > 0:
            digit = tl.where(order >> (SHIFT + 8) == last, digit, 256)
        next, need = _digit_of_rank(kl.bucket_place(digit, 256)[1], need)
        last = (last << 8) | next.to(order.dtype)
    return last, need


@triton.jit(do_not_specialize=_SIZES)
def _rank_kernel(x, values, out_places, width, rank, NAN_FIRST: tl.constexpr, WIDTH: tl.constexpr, BITS: tl.constexpr,
                 FLOATS: tl.constexpr):
    """The element of each row that a stable sort puts at this place, from 0; with NAN_FIRST a NaN if there is one."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, WIDTH)
    inside = column < width
    element = tl.load(x + row * width + column, mask=inside, other=0)
    order = tl.where(inside, _order(_key(element, BITS), FLOATS, False, BITS), 2**BITS - 1)
    order = order.to(tl.uint64 if BITS == 64 else tl.uint32)
    need = rank + 1
    if NAN_FIRST and FLOATS:
        numbers = tl.sum((inside & (element == element)).to(tl.int32))
        need = tl.where(numbers < width, numbers + 1, need).to(tl.int32)
    last, need = _of_rank(order, need, BITS)
    equal = order == last
    place = tl.sum(tl.where(equal & (_first(equal) == need - 1), column, 0))
    tl.store(values + row, tl.load(x + row * width + place))
    tl.store(out_places + row, place.to(tl.int64))


@triton.jit(do_not_specialize=_SIZES)
def _rank_long_kernel(x, values, out_places, width, rank, NAN_FIRST: tl.constexpr, CHUNK: tl.constexpr,
                      BITS: tl.constexpr, FLOATS: tl.constexpr):
    """The same for rows of many chunks: one pass over the row for each digit, and one for the place."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, CHUNK)
    word: tl.constexpr = tl.uint64 if BITS == 64 else tl.uint32
    need, last = rank + 1, tl.full((), 0, word)
    for i in tl.static_range(BITS // 8):
        SHIFT: tl.constexpr = BITS - 8 - 8 * i
        count, numbers = tl.zeros((256,), tl.int32), 0
        for begin in range(0, width, CHUNK):
            inside = begin + column < width
            element = tl.load(x + row * width + begin + column, mask=inside, other=0)
            order = _order(_key(element, BITS), FLOATS, False, BITS).to(word)
            these = inside if i == 0 else inside & (order >> (SHIFT + 8) == last)
            count += kl.bucket_place(tl.where(these, ((order >> SHIFT) & 255).to(tl.int32), 256), 256)[1]
            if i == 0 and NAN_FIRST and FLOATS:
                numbers += tl.sum((inside & (element == element)).to(tl.int32))
        if i == 0 and NAN_FIRST and FLOATS:
            need = tl.where(numbers < width, numbers + 1, need).to(tl.int32)
        next, need = _digit_of_rank(count, need)
        last = (last << 8) | next.to(word)
    place = 0
    for begin in range(0, width, CHUNK):
        inside = begin + column < width
        element = tl.load(x + row * width + begin + column, mask=inside, other=0)
        equal = inside & (_order(_key(element, BITS), FLOATS, False, BITS).to(word) == last)
        place += tl.sum(tl.where(equal & (_first(equal) == need - 1), begin + column, 0))
        need -= tl.sum(equal.to(tl.int32))
    tl.store(values + row, tl.load(x + row * width + place))
    tl.store(out_places + row, place.to(tl.int64))


@triton.jit
def _parts(work, states, bins_of_all):
    """What is behind the words of all tiles: the counts of digits, where they start, which passes are useless, and the
    tickets of passes and rows."""
    counts = work + states
    useless = counts + 2 * bins_of_all
    return counts, counts + bins_of_all, useless, useless + bins_of_all // 256


@triton.jit(do_not_specialize=_SIZES)
def _histogram_kernel(x, work, states, bins_of_all, width, tiles, share, shares, BITS: tl.constexpr,
                      FLOATS: tl.constexpr, DESCENDING: tl.constexpr, TILE: tl.constexpr):
    """How often each digit is in a row, added up over programs that take `share` tiles each. The last one of a row says
    where each digit's elements begin in the sorted row; a pass is useless when all elements have one digit."""
    row = tl.program_id(0) // shares
    first = tl.program_id(0) % shares * share
    at = tl.arange(0, TILE)
    PASSES: tl.constexpr = BITS // 8
    bins = tl.arange(0, 256)
    number = tl.arange(0, PASSES)[:, None]
    found = tl.zeros((PASSES, 256), tl.int32)
    for tile in range(first, min(first + share, tiles)):
        column = tile.to(tl.int64) * TILE + at
        inside = column < width
        key = _key(tl.load(x + row.to(tl.int64) * width + column, mask=inside, other=0), BITS)
        for p in tl.static_range(PASSES):
            digit = tl.where(inside, _digit(key, 8 * p, FLOATS, DESCENDING, BITS), 256)
            found += tl.where(number == p, kl.bucket_place(digit, 256)[1][None, :], 0)
    counts, starts, useless, tickets = _parts(work, states, bins_of_all)
    at = row * (PASSES * 256) + number * 256 + bins[None, :]
    tl.atomic_add(counts + at, found.to(work.dtype.element_ty), sem="relaxed")
    tl.debug_barrier()
    done = tickets + PASSES + row
    if tl.atomic_add(done, 1, sem="acq_rel") == shares - 1:
        count = tl.load(counts + at)
        tl.store(starts + at, tl.cumsum(count, 1) - count)
        one_digit = tl.max(count, 1) == width
        tl.store(useless + row * PASSES + tl.arange(0, PASSES), one_digit.to(work.dtype.element_ty))


@triton.jit
def _look(word, before, ahead, seen, FLAG: tl.constexpr):
    """Adds the count of the tile ahead, where those between have been seen; behind a sum of all no tile is left."""
    flag = (word >> FLAG) & 3
    seen = seen & (flag != 0)
    before += tl.where(seen, word & ((1 << FLAG) - 1), 0).to(before.dtype)
    ahead = tl.where(seen, tl.where(flag == 2, 0, ahead - 1), ahead)
    return before, ahead, seen & (flag == 1)


@triton.jit(do_not_specialize=_SIZES)
def _pass_kernel(x, key_buffers, place_buffers, values, out_places, work, states, bins_of_all, width, tiles, size,
                 number, BITS: tl.constexpr, FLOATS: tl.constexpr, DESCENDING: tl.constexpr, LAST: tl.constexpr,
                 VALUES: tl.constexpr, PLACES: tl.constexpr, TILE: tl.constexpr):
    """One digit: a program sorts its tile by it and copies each digit's elements to their place in the row.

    The passes before this one that were not useless decide where the keys are: in x, or in one of two buffers of
    `size` keys and places."""
    PASSES: tl.constexpr = BITS // 8
    word: tl.constexpr = tl.uint64 if BITS == 64 else tl.uint32
    counts, starts, useless, tickets = _parts(work, states, bins_of_all)
    # Tickets give tiles their numbers in the order in which programs begin, so that those ahead have begun.
    ticket = tl.atomic_add(tickets + number, 1, sem="relaxed")
    row, tile = (ticket // tiles).to(tl.int64), ticket % tiles
    p = tl.arange(0, PASSES)
    skipped = tl.load(useless + row * PASSES + p).to(tl.int32)
    done = tl.sum(tl.where(p < number, 1 - skipped, 0))
    if LAST or tl.sum(tl.where(p == number, skipped, 0)) == 0:
        at = tl.arange(0, TILE)
        first = tile.to(tl.int64) * TILE
        left = tl.minimum(width - first, TILE).to(tl.int32)
        inside = at < left
        begin_in = (done + 1) % 2 * size + row * width + first
        if done == 0:
            key = _key(tl.load(x + (row * width + first) + at, mask=inside, other=0), BITS)
        else:
            key = tl.load(key_buffers + begin_in + at, mask=inside, other=0).to(word)
        # What is outside gets the last digit: it is behind all others of the last tile.
        digit = tl.where(inside, _digit(key, 8 * number, FLOATS, DESCENDING, BITS), 255)
        to, count, begin = kl.bucket_place(digit, 256)
        bins = tl.arange(0, 256)
        # A word of the state is a count with a flag above it: 0 not there yet, 1 of the tile alone, 2 of all up to it.
        wide: tl.constexpr = work.dtype.element_ty
        FLAG: tl.constexpr = wide.primitive_bitwidth - 2
        words = work + (number * (size // width) + row) * tiles * 256 + bins
        own = count.to(wide)
        tl.atomic_xchg(words + tile * 256, own | tl.where(tile == 0, 2, 1).to(wide) << FLAG, sem="relaxed")
        before = tl.zeros((256,), wide)
        ahead = tl.full((256,), 0, tl.int32) + tile  # tiles to look at
        while tl.max(ahead, 0) > 0:
            # Four at once, because each takes as long to arrive.
            word0 = tl.load(words + (ahead - 1) * 256, mask=ahead > 0, other=0, volatile=True)
            word1 = tl.load(words + (ahead - 2) * 256, mask=ahead > 1, other=0, volatile=True)
            word2 = tl.load(words + (ahead - 3) * 256, mask=ahead > 2, other=0, volatile=True)
            word3 = tl.load(words + (ahead - 4) * 256, mask=ahead > 3, other=0, volatile=True)
            seen = ahead > 0
            before, ahead, seen = _look(word0, before, ahead, seen, FLAG)
            before, ahead, seen = _look(word1, before, ahead, seen, FLAG)
            before, ahead, seen = _look(word2, before, ahead, seen, FLAG)
            before, ahead, seen = _look(word3, before, ahead, seen, FLAG)
        if tile > 0:
            tl.atomic_xchg(words + tile * 256, (before + own) | tl.full((256,), 2, wide) << FLAG, sem="relaxed")

        key = kl.scatter(key, to, 0)  # also of the last pass without VALUES: its digits say where places go
        start = tl.load(starts + (row * PASSES + number) * 256 + bins)
        offset = start + before.to(start.dtype) - begin
        digit = _digit(key, 8 * number, FLOATS, DESCENDING, BITS)
        out = tl.gather(offset, digit, 0) + at
        inside = at < left
        begin_out = done % 2 * size + row * width
        if LAST:
            if VALUES:
                tl.store(values + row * width + out, _value(key, values.dtype.element_ty, BITS), mask=inside)
        else:
            tl.store(key_buffers + begin_out + out, key.to(key_buffers.dtype.element_ty), mask=inside)
        if PLACES:
            if done == 0:
                place = (first + at).to(place_buffers.dtype.element_ty)
            else:
                place = tl.load(place_buffers + begin_in + at, mask=inside, other=0)
            place = kl.scatter(place, to, 0)
            if LAST:
                tl.store(out_places + row * width + out, place.to(tl.int64), mask=inside)
            else:
                tl.store(place_buffers + begin_out + out, place, mask=inside)


_UNSIGNED = {8: torch.uint8, 16: torch.uint16, 32: torch.uint32, 64: torch.uint64}


def _lines(input, dim):
    """The tensor with the dimension last, as contiguous rows."""
    x = input.reshape(1) if input.ndim == 0 else input if _is_last(input, dim) else input.movedim(dim, -1)
    x = x.contiguous()
    return x.view(torch.uint8) if x.dtype is torch.bool else x


def _unlined(x, dtype, input, dim):
    x = x.view(torch.bool) if dtype is torch.bool else x
    return x.reshape(()) if input.ndim == 0 else x if _is_last(input, dim) else x.movedim(-1, dim).contiguous()


def _is_last(input, dim):
    """Nothing is moved then: that would take as long as two launches."""
    return dim in (-1, input.ndim - 1)


_MANY_WARPS = 2048  # of which some always have their elements


def _few(x, rows, together, wide):
    """Rows for a program to take, so that every processor has some."""
    if together > 1:
        least = 4 * _kiln.processors(x, 1)
        while together > 1 and together * wide > 512 and triton.cdiv(rows, together) < least:
            together //= 2
    return together


def _is_narrow(width, bits, keys=False):
    if keys:
        return width <= (_NARROWEST if bits < 32 else _NARROWEST_KEYS)
    return width <= _NARROWEST and (bits < 64 or width > _PAIRED)


def _sort_rows(x, in_places, values, places, rows, width, keep, common, in_keys, beside=1, keys=False):
    """The first `keep` of each row. Values or places are None where nobody asks for them; with `keys` places are, and
    -0.0 and 0.0 may change theirs."""
    # Sorts of short rows stand between others that are as short.
    common = dict(common, launch_pdl=x.is_cuda and torch.cuda.get_device_capability(x.device)[0] >= 9)
    wide = max(16, triton.next_power_of_2(width))
    common = dict(common, VALUES=values is not None, PLACES=places is not None)
    values, places = x if values is None else values, x if places is None else places  # for their types
    if _is_narrow(width, common["BITS"], keys) and not in_keys:
        wide = max(8, triton.next_power_of_2(width))
        # Of rows side by side, whole sectors of 32 bytes. A thread exchanges what it holds itself: 16 elements of long
        # rows (an H200: 92808 x 45 floats by columns take 54 us so and 60 with eight), eight of short ones and of keys
        # alone (65536 x 64 floats take 31 us so and 46 with 16, 4000 x 1000 56 and 64).
        most = min(64, 1024 // wide)
        together = _few(x, rows, min(most if beside == 1 else max(8, most), triton.next_power_of_2(rows)), wide)
        of_warp = 512 if wide >= 64 and not keys else 256
        # Few rows: more warps, down to a row for each (an H200: 2000 x 64 floats take 6.7 us so and 9.1 with 16 elements
        # for each thread, 1953 x 255 15.1 and 17.7).
        while of_warp > max(128, wide) and rows * wide < _MANY_WARPS * of_warp:
            of_warp //= 2
        _narrow_kernel[(triton.cdiv(rows, together), )](x, values, places, rows, width, keep, beside, ROWS=together,
                                                        WIDTH=wide, KEYS=keys,
                                                        num_warps=max(1, together * wide // of_warp), **common)
        return
    if wide <= _PAIRED and not in_keys:
        together = min(4096 // wide**2, triton.next_power_of_2(rows))
        while together > 1 and triton.cdiv(rows, together) < 512:
            together //= 2
        _ranks_kernel[(triton.cdiv(rows, together), )](x, values, places, rows, width, keep, ROWS=together, WIDTH=wide,
                                                       num_warps=max(1, together * wide**2 // 1024), **common)
        return
    together = _few(x, rows, min(max(1, 2048 // wide), triton.next_power_of_2(rows)), wide)
    _rows_kernel[(triton.cdiv(rows, together), )](x, in_places, values, places, rows, width, keep, ROWS=together,
                                                  WIDTH=wide, IN_KEYS=in_keys,
                                                  num_warps=max(1, min(16, together * wide // 512)), **common)


_FEW = 4  # elements along the dimension that are sorted as an expression


@_kiln.lazily
def _sort_few(input, dim, descending):
    """By exchanges of neighbours, in as many rounds as there are elements: nothing is brought into rows."""
    width = input.shape[dim]
    values = [input.select(dim, i) for i in range(width)]
    places = [torch.full_like(values[0], i, dtype=torch.int64) for i in range(width)]
    for round in range(width):
        for i in range(round % 2, width - 1, 2):
            a, b = values[i], values[i + 1]
            greater, less = (b, a) if descending else (a, b)
            wrong = greater > less
            if input.is_floating_point():  # NaN is the greatest
                wrong = wrong | greater.isnan() & ~less.isnan()
            values[i], values[i + 1] = torch.where(wrong, b, a), torch.where(wrong, a, b)
            p, q = places[i], places[i + 1]
            places[i], places[i + 1] = torch.where(wrong, q, p), torch.where(wrong, p, q)
    return torch.stack(values, dim), torch.stack(places, dim)


def sort(input, dim, descending, has_values=True, has_places=True, is_stable=True):
    """Sorted values, and where they were, int64; of each None where it is not asked for. Equal ones keep their order,
    but without `is_stable` -0.0 and 0.0 do so only where places are asked for."""
    rank = input.ndim
    if rank > 0 and 2 <= input.shape[dim] <= _FEW and input.numel() > 0:
        return _sort_few(input, dim, descending)
    bits = 8 * input.element_size()
    common = {"BITS": bits, "FLOATS": input.is_floating_point(), "DESCENDING": bool(descending)}
    keys = not has_places and not (is_stable and input.is_floating_point())
    beside = math.prod(input.shape[dim + 1:]) if dim < rank - 1 else 1
    is_beside = (beside > 1 and input.numel() > 0 and input.shape[dim] <= _NARROWEST
                 and _is_narrow(input.shape[dim], bits, keys))
    if is_beside:
        x = input.contiguous()
        x = x.view(torch.uint8) if x.dtype is torch.bool else x
    else:
        x = _lines(input, dim)
    width = input.shape[dim] if is_beside else x.shape[-1]
    values = torch.empty_like(x) if has_values else None
    places = torch.empty_like(x, dtype=torch.int64) if has_places else None
    if x.numel() > 0:
        rows = x.numel() // width
        if width <= _WIDEST:
            _sort_rows(x, x, values, places, rows, width, width, common, False, beside if is_beside else 1, keys)
        else:
            _sort_long(x, values, places, rows, width, bits, common)
    if is_beside:
        return values.view(torch.bool) if has_values and input.dtype is torch.bool else values, places
    return (_unlined(values, input.dtype, input, dim) if has_values else None,
            _unlined(places, torch.int64, input, dim) if has_places else None)


def ranked(input, dim, rank, nan_first):
    """What a stable sort puts at this place along the dimension, without that dimension, and where it was. None where
    a sort takes less time: of few rows that do not fit one program, which would each keep one busy for long."""
    width = input.shape[dim]
    rows = input.numel() // max(1, width)
    if width <= _NARROWEST or rows == 0 or (width > _WIDEST and (rows < _MANY or width >= 2**31 - _CHUNK)):
        return None
    x = _lines(input, dim)
    values = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    places = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
    if width > _WIDEST:
        _rank_long_kernel[(rows, )](x, values, places, width, rank, NAN_FIRST=nan_first, CHUNK=_CHUNK,
                                    BITS=8 * x.element_size(), FLOATS=x.is_floating_point(), num_warps=16)
        return values, places
    wide = triton.next_power_of_2(width)
    _rank_kernel[(x.numel() // width, )](x, values, places, width, rank, NAN_FIRST=nan_first, WIDTH=wide,
                                         BITS=8 * x.element_size(), FLOATS=x.is_floating_point(),
                                         num_warps=min(16, wide // 256))
    return values, places


def _shares(x, tiles, rows):
    """How many tiles of a row a program counts, and how many programs of a row there are."""
    share = max(1, min(tiles, tiles * rows // (8 * _kiln.processors(x, 4))))
    return share, triton.cdiv(tiles, share)


def _sort_long(x, values, places, rows, width, bits, common):
    """Values or places are None where nobody asks for them."""
    size, passes = x.numel(), bits // 8
    tiles = triton.cdiv(width, _TILE)
    # The words of each tile in each pass, and what _parts() says.
    states, bins = passes * rows * tiles * 256, rows * passes * 256
    work = _kiln.zeros(states + 2 * bins + (rows + 1) * passes + rows, torch.int32 if width < 2**30 else torch.int64, x)
    share, shares = _shares(x, tiles, rows)
    _histogram_kernel[(rows * shares, )](x, work, states, bins, width, tiles, share, shares, TILE=_TILE, num_warps=16,
                                         **common)
    keys = torch.empty((2 * size, ), dtype=_UNSIGNED[bits], device=x.device)
    place_buffers = x
    if places is not None:
        place_buffers = torch.empty((2 * size, ), dtype=torch.int32 if width < 2**31 else torch.int64, device=x.device)
    for number in range(passes):
        _pass_kernel[(rows * tiles, )](x, keys, place_buffers, x if values is None else values,
                                       x if places is None else places, work, states, bins, width, tiles, size, number,
                                       LAST=number == passes - 1, VALUES=values is not None, PLACES=places is not None,
                                       TILE=_TILE, num_warps=8, maxnreg=128, **common)
