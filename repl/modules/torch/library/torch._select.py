"""The first elements of a sort without sorting the others: topk().

Few are the first of the chunks' own first ones. Those of long rows are found by a threshold (torch._threshold). Others
are found as the sort finds where digits begin: digit by digit from the highest, all programs count how often each comes
among the elements that agree with the last one to be taken in the digits before, and one program finds its next digit.
"""
import torch
import triton
import triton.language as tl
from torch import _threshold
from torch._sort import _CHUNK, _SIZES, _TILE, _UNSIGNED, _WIDEST, _digit_of_rank, _first, _key, _lines, _loaded_key
from torch._sort import _of_rank, _order, _shares, _sort_rows, _unlined, sort
from triton.language.extra import kiln as kl


@triton.jit(do_not_specialize=_SIZES)
def _select_kernel(x, in_places, out_keys, out_places, width, chunks, keep, CHUNK: tl.constexpr, BITS: tl.constexpr,
                   FLOATS: tl.constexpr, DESCENDING: tl.constexpr, IN_KEYS: tl.constexpr):
    """The first `keep` of a chunk in the order of a sort, as keys, in the order in which they are there.

    Digit by digit from the highest: those of lower digits are taken, and of the digit in which the last one is, what
    the next digits decide."""
    row, chunk = (tl.program_id(0) // chunks).to(tl.int64), tl.program_id(0) % chunks
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = column < width
    word: tl.constexpr = tl.uint64 if BITS == 64 else tl.uint32
    key = _loaded_key(x + row * width + column, inside, BITS, IN_KEYS)
    order = tl.where(inside, _order(key, FLOATS, DESCENDING, BITS), 2**BITS - 1).to(word)  # what is outside comes last
    last, need = _of_rank(order, keep, BITS)
    equal = order == last
    taken = (order < last) | (equal & (_first(equal) < need))  # of equal ones the first
    to = tl.program_id(0).to(tl.int64) * keep + _first(taken)
    # Loaded again, so that it need not be held till now. What is outside has no key, and is taken where nothing else is.
    key = tl.where(inside, _loaded_key(x + row * width + column, taken & inside, BITS, IN_KEYS),
                   _order(tl.full((), 2**BITS - 1, word), False, DESCENDING, BITS))
    tl.store(out_keys + to, key.to(out_keys.dtype.element_ty), mask=taken)
    place = column
    if IN_KEYS:
        place = tl.load(in_places + row * width + column, mask=taken & inside, other=0)
    tl.store(out_places + to, place.to(out_places.dtype.element_ty), mask=taken)


@triton.jit
def _order_of(x, column, width, BITS: tl.constexpr, FLOATS: tl.constexpr, DESCENDING: tl.constexpr):
    element = tl.load(x + column, mask=column < width, other=0)
    return element, _order(_key(element, BITS), FLOATS, DESCENDING, BITS).to(tl.uint64 if BITS == 64 else tl.uint32)


@triton.jit(do_not_specialize=_SIZES)
def _count_digit_kernel(x, counts, lasts, width, tiles, share, shares, SHIFT: tl.constexpr, BITS: tl.constexpr,
                        FLOATS: tl.constexpr, DESCENDING: tl.constexpr, TILE: tl.constexpr):
    """How often each digit comes in a row, among the elements that have its last one's digits above."""
    row, first = tl.program_id(0) // shares, tl.program_id(0) % shares * share
    found = tl.zeros((256,), tl.int32)
    last = tl.load(lasts + row)
    for tile in range(first, min(first + share, tiles)):
        column = tile * TILE + tl.arange(0, TILE)
        order = _order_of(x + row.to(tl.int64) * width, column, width, BITS, FLOATS, DESCENDING)[1]
        these = column < width
        if SHIFT + 8 < BITS:
            these = these & (order >> (SHIFT + 8) == last)
            if tl.max(these.to(tl.int32)) > 0:
                found += kl.bucket_place(tl.where(these, ((order >> SHIFT) & 255).to(tl.int32), 256), 256)[1]
        else:
            found += kl.bucket_place(tl.where(these, (order >> SHIFT).to(tl.int32), 256), 256)[1]
    tl.atomic_add(counts + row * 256 + tl.arange(0, 256), found, mask=found > 0, sem="relaxed")


@triton.jit(do_not_specialize=_SIZES)
def _next_digit_kernel(counts, lasts, needs, keep, FIRST: tl.constexpr):
    """Joins the last one's next digit to those above; which of the elements with all of them it is, from 1."""
    row, bins = tl.program_id(0), tl.arange(0, 256)
    need = tl.load(needs + row)
    if FIRST:
        need = keep
    digit, need = _digit_of_rank(tl.load(counts + row * 256 + bins), need)
    last = tl.load(lasts + row)
    tl.store(lasts + row, (last << 8) | digit.to(last.dtype))
    tl.store(needs + row, need)
    tl.store(counts + row * 256 + bins, 0)


@triton.jit(do_not_specialize=_SIZES)
def _count_taken_kernel(x, lasts, less, equal, width, tiles, BITS: tl.constexpr, FLOATS: tl.constexpr,
                        DESCENDING: tl.constexpr, TILE: tl.constexpr):
    """How many elements of each tile are ahead of the last one, and equal to it."""
    row, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    column = tile * TILE + tl.arange(0, TILE)
    order = _order_of(x + row.to(tl.int64) * width, column, width, BITS, FLOATS, DESCENDING)[1]
    last = tl.load(lasts + row)
    tl.store(less + tl.program_id(0), tl.sum(((column < width) & (order < last)).to(tl.int32)))
    tl.store(equal + tl.program_id(0), tl.sum(((column < width) & (order == last)).to(tl.int32)))


@triton.jit(do_not_specialize=_SIZES)
def _take_kernel(x, lasts, needs, less, equal, values, places, width, tiles, keep, BITS: tl.constexpr,
                 FLOATS: tl.constexpr, DESCENDING: tl.constexpr, TILE: tl.constexpr):
    """Those that are ahead of the last one, then of its equals the first `needs`, in the order in which they are there.
    `less` and `equal` have how many come up to the end of each tile."""
    row, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    column = tile * TILE + tl.arange(0, TILE)
    element, order = _order_of(x + row.to(tl.int64) * width, column, width, BITS, FLOATS, DESCENDING)
    last, need = tl.load(lasts + row), tl.load(needs + row)
    ahead, same = (column < width) & (order < last), (column < width) & (order == last)
    of_ahead, of_same = tl.sum(ahead.to(tl.int32)), tl.sum(same.to(tl.int32))
    to = row.to(tl.int64) * keep
    if of_ahead > 0:
        at = tl.load(less + tl.program_id(0)) - of_ahead + _first(ahead)
        tl.store(values + to + at, element, mask=ahead)
        tl.store(places + to + at, column.to(tl.int64), mask=ahead)
    before = tl.load(equal + tl.program_id(0)) - of_same
    if (of_same > 0) & (before < need):
        at = before + _first(same)
        tl.store(values + to + keep - need + at, element, mask=same & (at < need))
        tl.store(places + to + keep - need + at, column.to(tl.int64), mask=same & (at < need))


def _select_many(x, rows, width, k, common):
    """The first k of each row in the order in which they are there, equals of the last one behind, and their places."""
    tiles, device = triton.cdiv(width, _TILE), x.device
    share, shares = _shares(x, tiles, rows)
    counts = torch.zeros((rows * 256,), dtype=torch.int32, device=device)
    lasts = torch.zeros((rows,), dtype=torch.int64 if common["BITS"] == 64 else torch.int32, device=device)
    lasts = lasts.view(torch.uint64 if common["BITS"] == 64 else torch.uint32)
    needs = torch.empty((rows,), dtype=torch.int32, device=device)
    for shift in range(common["BITS"] - 8, -8, -8):
        _count_digit_kernel[(rows * shares,)](x, counts, lasts, width, tiles, share, shares, SHIFT=shift, TILE=_TILE,
                                              num_warps=16, **common)
        _next_digit_kernel[(rows,)](counts, lasts, needs, k, FIRST=shift == common["BITS"] - 8)
    less, equal = [torch.empty((rows, tiles), dtype=torch.int32, device=device) for _ in range(2)]
    _count_taken_kernel[(rows * tiles,)](x, lasts, less, equal, width, tiles, TILE=_TILE, num_warps=8, **common)
    values = torch.empty((rows, k), dtype=x.dtype, device=device)
    places = torch.empty((rows, k), dtype=torch.int64, device=device)
    _take_kernel[(rows * tiles,)](x, lasts, needs, less.cumsum(-1, dtype=torch.int32),
                                  equal.cumsum(-1, dtype=torch.int32), values, places, width, tiles, k, TILE=_TILE,
                                  num_warps=8, **common)
    return values, places


def topk(input, k, dim, largest, has_values=True, has_places=True):
    """The first k of a sort: values and places, or None where they are not asked for and take time of their own."""
    x = _lines(input, dim)
    width = x.shape[-1]
    if k == 0 or x.numel() == 0 or width > _WIDEST and (k > width // 4 or k > _CHUNK // 4 and width >= 2**31 - _TILE):
        pair = sort(input, dim, largest, has_values, has_places, False)
        return tuple(t.narrow(dim, 0, k).contiguous() if t is not None else None for t in pair) if input.ndim else pair
    rows, bits = x.numel() // width, 8 * x.element_size()
    common = dict(BITS=bits, FLOATS=x.is_floating_point(), DESCENDING=bool(largest))
    shape = list(x.shape[:-1]) + [k]
    few_chunks = width < 2**20 and triton.cdiv(width, _CHUNK) * k <= _WIDEST  # two launches, of which each takes longer
    plan = None if few_chunks else _threshold.plan(x, rows, width, k)
    if plan is not None:
        values, places = _threshold.first_of_long(plan, x, rows, width, k, shape, common)
        return _unlined(values, input.dtype, input, dim), _unlined(places, torch.int64, input, dim)
    if width > _WIDEST and k > _CHUNK // 4:
        taken, at = _select_many(x, rows, width, k, common)
        values, order = sort(taken, 1, largest)
        values, places = values.reshape(shape), at.gather(1, order).reshape(shape)
        return _unlined(values, input.dtype, input, dim), _unlined(places, torch.int64, input, dim)
    values = torch.empty(shape, dtype=x.dtype, device=x.device) if has_values else None
    places = torch.empty(shape, dtype=torch.int64, device=x.device) if has_places else None
    keys, at, in_keys = x, x, False
    while width > _WIDEST:
        chunks = triton.cdiv(width, _CHUNK)
        next_keys = torch.empty((rows * chunks * k,), dtype=_UNSIGNED[bits], device=x.device)
        next_at = torch.empty((rows * chunks * k,), dtype=torch.int32 if x.shape[-1] < 2**31 else torch.int64,
                              device=x.device)
        _select_kernel[(rows * chunks, )](keys, at, next_keys, next_at, width, chunks, k, CHUNK=_CHUNK,
                                          IN_KEYS=in_keys, num_warps=8, maxnreg=64, **common)
        keys, at, in_keys, width = next_keys, next_at, True, chunks * k
    _sort_rows(keys, at, values, places, rows, width, k, common, in_keys, keys=not has_places)
    return (_unlined(values, input.dtype, input, dim) if has_values else None,
            _unlined(places, torch.int64, input, dim) if has_places else None)
