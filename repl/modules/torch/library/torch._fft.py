"""Fourier transforms by kernels.

One program transforms rows of up to _WIDEST elements, in registers: each step takes eight elements of a row that lie an
eighth of it apart (at first four or two), and its results go through shared memory to the threads of the next step.
Rows of other lengths than powers of two are convolutions with a chirp (Bluestein's algorithm), two transforms of a
power of two in the same program, of at least as many elements as are there and are kept together. Longer rows are
columns of a matrix, then its rows (two kernels, with a factor for each element between them). Of lengths with large
prime factors the convolution is three kernels: columns, rows there and back, columns.

A transform back is one of numbers whose parts are exchanged. A real row of even length is a complex one of half of it,
whose spectrum and its mirror give the real one's, unless its half spectrum is a convolution that is no longer. Many
real rows of other lengths are taken in pairs, as the real and the imaginary part of one row. Powers of two bring both
to one magnitude first, so that the rounding of one is no error of the other, and a row with a NaN is taken as zeros.
"""
import math

import torch
import triton
import triton.language as tl

_WIDEST = 8192  # elements of a row of one program
_LEAST = 1024   # elements of a program: as many rows
_MOST = 8192    # of one whose rows lie side by side
_TABLES = 256   # tables that are kept
_PAIRED = 1 << 20  # elements from which two real rows are one transform: of fewer, one more launch takes longer

# How a kernel takes part in a convolution with a chirp: by itself, or as the first, second and third of several.
_WHOLE = tl.constexpr(1)
_FIRST = tl.constexpr(2)
_SECOND = tl.constexpr(3)
_THIRD = tl.constexpr(4)

_SIZES = ("rows", "have", "keep", "n", "whole", "count")


@triton.jit
def _dft2(ar, ai, br, bi):
    return ar + br, ai + bi, ar - br, ai - bi


@triton.jit
def _dft4(ar, ai, br, bi, cr, ci, dr, di):
    """Of four numbers in a row; forward."""
    sr, si, tr, ti = _dft2(ar, ai, cr, ci)
    ur, ui, vr, vi = _dft2(br, bi, dr, di)
    return sr + ur, si + ui, tr + vi, ti - vr, sr - ur, si - ui, tr - vi, ti + vr


@triton.jit
def _dft8(ar, ai, br, bi, cr, ci, dr, di, er, ei, fr, fi, gr, gi, hr, hi):
    H: tl.constexpr = 0.7071067811865476
    p0r, p0i, p1r, p1i, p2r, p2i, p3r, p3i = _dft4(ar, ai, cr, ci, er, ei, gr, gi)
    q0r, q0i, q1r, q1i, q2r, q2i, q3r, q3i = _dft4(br, bi, dr, di, fr, fi, hr, hi)
    s1r, s1i = (q1r + q1i) * H, (q1i - q1r) * H
    s2r, s2i = q2i, -q2r
    s3r, s3i = (q3i - q3r) * H, -(q3r + q3i) * H
    return (p0r + q0r, p0i + q0i, p1r + s1r, p1i + s1i, p2r + s2r, p2i + s2i, p3r + s3r, p3i + s3i,
            p0r - q0r, p0i - q0i, p1r - s1r, p1i - s1i, p2r - s2r, p2i - s2i, p3r - s3r, p3i - s3i)


@triton.jit
def _times(ar, ai, br, bi):
    return ar * br - ai * bi, ar * bi + ai * br


@triton.jit
def _root(table, at):
    """Of a table of pairs, for all rows."""
    return tl.load(table + at * 2)[None, :], tl.load(table + at * 2 + 1)[None, :]


@triton.jit
def _all_of(table, N: tl.constexpr):
    """The first N pairs of a table, for all rows."""
    at = (table + tl.arange(0, N) * 2)[None, :, None] + tl.arange(0, 2)[None, None, :]
    return tl.split(tl.load(at))


@triton.jit
def _halves(x):
    """[P, 2 * M] as its two halves along the last dimension."""
    P: tl.constexpr = x.shape[0]
    M: tl.constexpr = x.shape[1] // 2
    return tl.split(tl.permute(tl.reshape(x, (P, 2, M)), (0, 2, 1)))


@triton.jit
def _eighths(x):
    P: tl.constexpr = x.shape[0]
    M: tl.constexpr = x.shape[1] // 8
    y = tl.reshape(tl.permute(tl.reshape(x, (P, 8, M)), (0, 2, 1)), (P, M, 2, 2, 2))  # m, 4, 2, 1
    even, odd = tl.split(y)
    a, c = tl.split(even)
    b, d = tl.split(odd)
    x0, x4 = tl.split(a)
    x2, x6 = tl.split(c)
    x1, x5 = tl.split(b)
    x3, x7 = tl.split(d)
    return x0, x1, x2, x3, x4, x5, x6, x7


@triton.jit
def _joined8(x0, x1, x2, x3, x4, x5, x6, x7):
    """Eight of [P, M] as [P * 8, M]."""
    P: tl.constexpr = x0.shape[0]
    M: tl.constexpr = x0.shape[1]
    even = tl.join(tl.join(x0, x4), tl.join(x2, x6))
    odd = tl.join(tl.join(x1, x5), tl.join(x3, x7))
    y = tl.reshape(tl.join(even, odd), (P, M, 8))
    return tl.reshape(tl.permute(y, (0, 2, 1)), (P * 8, M))


@triton.jit
def _quarters(x):
    P: tl.constexpr = x.shape[0]
    M: tl.constexpr = x.shape[1] // 4
    y = tl.reshape(tl.permute(tl.reshape(x, (P, 4, M)), (0, 2, 1)), (P, M, 2, 2))
    even, odd = tl.split(y)
    x0, x2 = tl.split(even)
    x1, x3 = tl.split(odd)
    return x0, x1, x2, x3


@triton.jit
def _joined4(x0, x1, x2, x3):
    P: tl.constexpr = x0.shape[0]
    M: tl.constexpr = x0.shape[1]
    y = tl.reshape(tl.join(tl.join(x0, x2), tl.join(x1, x3)), (P, M, 4))
    return tl.reshape(tl.permute(y, (0, 2, 1)), (P * 4, M))


@triton.jit
def _joined2(x0, x1):
    P: tl.constexpr = x0.shape[0]
    M: tl.constexpr = x0.shape[1]
    return tl.reshape(tl.permute(tl.join(x0, x1), (0, 2, 1)), (P * 2, M))


@triton.jit
def _stage8(re, im, table, STRIDE: tl.constexpr):
    """[P, 8 * M] to [P * 8, M], by decimation in frequency; `table` has the roots of 8 * M * STRIDE."""
    M: tl.constexpr = re.shape[1] // 8
    a, b, c, d, e, f, g, h = _eighths(re)
    i, j, k, l, m, n, o, p = _eighths(im)
    ar, ai, br, bi, cr, ci, dr, di, er, ei, fr, fi, gr, gi, hr, hi = _dft8(a, i, b, j, c, k, d, l, e, m, f, n, g, o, h,
                                                                           p)
    if M > 1:
        at = tl.arange(0, M) * STRIDE
        ur, ui = _root(table, at)
        vr, vi = _root(table, at * 2)
        wr, wi = _root(table, at * 4)
        br, bi = _times(br, bi, ur, ui)
        cr, ci = _times(cr, ci, vr, vi)
        er, ei = _times(er, ei, wr, wi)
        xr, xi = _times(ur, ui, vr, vi)
        dr, di = _times(dr, di, xr, xi)
        yr, yi = _times(ur, ui, wr, wi)
        fr, fi = _times(fr, fi, yr, yi)
        yr, yi = _times(vr, vi, wr, wi)
        gr, gi = _times(gr, gi, yr, yi)
        yr, yi = _times(xr, xi, wr, wi)
        hr, hi = _times(hr, hi, yr, yi)
    return _joined8(ar, br, cr, dr, er, fr, gr, hr), _joined8(ai, bi, ci, di, ei, fi, gi, hi)


@triton.jit
def _stage4(re, im, table, STRIDE: tl.constexpr):
    M: tl.constexpr = re.shape[1] // 4
    a, b, c, d = _quarters(re)
    e, f, g, h = _quarters(im)
    ar, ai, br, bi, cr, ci, dr, di = _dft4(a, e, b, f, c, g, d, h)
    if M > 1:
        at = tl.arange(0, M) * STRIDE
        ur, ui = _root(table, at)
        vr, vi = _root(table, at * 2)
        br, bi = _times(br, bi, ur, ui)
        cr, ci = _times(cr, ci, vr, vi)
        xr, xi = _times(ur, ui, vr, vi)
        dr, di = _times(dr, di, xr, xi)
    return _joined4(ar, br, cr, dr), _joined4(ai, bi, ci, di)


@triton.jit
def _stage2(re, im, table, STRIDE: tl.constexpr):
    M: tl.constexpr = re.shape[1] // 2
    a, b = _halves(re)
    c, d = _halves(im)
    ar, ai, br, bi = _dft2(a, c, b, d)
    if M > 1:
        ur, ui = _root(table, tl.arange(0, M) * STRIDE)
        br, bi = _times(br, bi, ur, ui)
    return _joined2(ar, br), _joined2(ai, bi)


@triton.jit
def _in_order(x, ROWS: tl.constexpr, LOG: tl.constexpr):
    """[ROWS * N, 1], whose digits are in reverse order, the first of 2 or 4 and the others of 8, as [ROWS, N]."""
    N: tl.constexpr = 2**LOG
    E: tl.constexpr = LOG // 3
    L: tl.constexpr = 2 ** (LOG % 3)
    if E == 0:
        return tl.reshape(x, (ROWS, N))
    if E == 1:
        return tl.reshape(tl.permute(tl.reshape(x, (ROWS, L, 8)), (0, 2, 1)), (ROWS, N))
    if E == 2:
        return tl.reshape(tl.permute(tl.reshape(x, (ROWS, L, 8, 8)), (0, 3, 2, 1)), (ROWS, N))
    if E == 3:
        return tl.reshape(tl.permute(tl.reshape(x, (ROWS, L, 8, 8, 8)), (0, 4, 3, 2, 1)), (ROWS, N))
    return tl.reshape(tl.permute(tl.reshape(x, (ROWS, L, 8, 8, 8, 8)), (0, 5, 4, 3, 2, 1)), (ROWS, N))


@triton.jit
def _fft(re, im, table, LOG: tl.constexpr):
    """Of the rows of [ROWS, N]; `table` has the N roots of one."""
    ROWS: tl.constexpr = re.shape[0]
    N: tl.constexpr = re.shape[1]
    # The short step first: the exchanges behind it are by stmatrix, and behind steps of eight by shuffles otherwise.
    if LOG % 3 == 2:
        re, im = _stage4(re, im, table, 1)
    if LOG % 3 == 1:
        re, im = _stage2(re, im, table, 1)
    for stage in tl.static_range(0, LOG // 3):
        re, im = _stage8(re, im, table, 2 ** (LOG % 3) * 8**stage)
    return _in_order(re, ROWS, LOG), _in_order(im, ROWS, LOG)


@triton.jit
def _pairs(at, inside):
    """Two numbers that lie side by side at each place."""
    return tl.split(tl.load(at[:, :, None] + tl.arange(0, 2)[None, None, :], mask=inside[:, :, None], other=0))


@triton.jit
def _swapped(re, im, DOES: tl.constexpr):
    if DOES:
        return im, re
    return re, im


@triton.jit
def _power(v):
    """The power of two whose product with v, an ordinary number, lies between 1 and 2."""
    if v.dtype == tl.float64:
        e = tl.minimum(tl.maximum(v.to(tl.int64, bitcast=True) >> 52, 23), 2023)
        return ((2046 - e) << 52).to(tl.float64, bitcast=True)
    e = tl.minimum(tl.maximum(v.to(tl.int32, bitcast=True) >> 23, 27), 227)
    return ((254 - e) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _magnitudes(x, scales, length, have, BLOCK: tl.constexpr):
    """Of each row the two factors that bring its root mean square to about 1, and the two that undo them: zeros and
    NaNs where an element is not finite. Their product may be no ordinary number."""
    row = tl.program_id(0)
    x += row.to(tl.int64) * length
    most = tl.zeros((BLOCK,), x.dtype.element_ty)
    odd = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, have, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.abs(tl.load(x + at, mask=at < have, other=0))
        most = tl.maximum(most, v)
        odd |= (v < float("inf")).to(tl.int32) ^ 1
    first = _power(tl.max(most, 0))
    squares = tl.zeros((BLOCK,), x.dtype.element_ty)
    for start in range(0, have, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < have, other=0) * first
        squares += v * v
    second = _power(tl.sqrt(tl.sum(squares, 0) / have))
    is_odd = tl.max(odd, 0) > 0
    scales += row * 4
    tl.store(scales, tl.where(is_odd, 0.0, first))
    tl.store(scales + 1, tl.where(is_odd, 0.0, second))
    tl.store(scales + 2, tl.where(is_odd, float("nan"), 1 / first))
    tl.store(scales + 3, tl.where(is_odd, float("nan"), 1 / second))


@triton.jit
def _scaled(v, scales, inside):
    a, b = tl.load(scales, mask=inside, other=0), tl.load(scales + 1, mask=inside, other=0)
    return tl.where(a > 0, v * a * b, 0)


@triton.jit(do_not_specialize=_SIZES)
def _kernel(x, out, roots, chirp, spectrum, low, high, scales, count, rows, inner, x_outer, x_side, x_step, x_element,
            x_inner, out_outer, out_side, out_step, out_element, out_inner, have, keep, n, whole, scale,
            KIND: tl.constexpr, REAL: tl.constexpr, SWAP_IN: tl.constexpr, SWAP_OUT: tl.constexpr, CHIRP: tl.constexpr,
            TURN: tl.constexpr, LOG: tl.constexpr, ROWS: tl.constexpr):
    """Row o * inner + i has its element p at o * x_outer + i * x_side + p * x_step, where p is e * x_element +
    i * x_inner for the e-th one that is transformed; results lie likewise. KIND of the input: complex, real, or half a
    spectrum of `whole`; 3 and 4 are the last two in pairs, n of them, with half a spectrum and real rows as results; 5
    is `count` real rows in pairs, each with two factors and what undoes them in `scales`.
    `have` elements are there, n are transformed, and `keep` results are stored. TURN: the e-th
    result of row i is multiplied by the root of one to the e * i, which is a product of one of `low` and one of
    `high`. Between a convolution's transforms each row of a matrix has a row of `spectrum`."""
    N: tl.constexpr = 2**LOG
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    e = tl.arange(0, N)[None, :]
    i = row % inner
    o = (row // inner).to(tl.int64)
    p = e * x_element + i * x_inner
    inside = (row < rows) & (e < n)
    place = p
    if KIND == 2:
        ahead = p < have
        inside = inside & (p < whole)
        p = tl.where(ahead, p, whole - p)
    else:
        inside = inside & (p < have)
    from_ = x + o * x_outer + i.to(tl.int64) * x_side + p.to(tl.int64) * x_step
    if KIND == 1:
        re = tl.load(from_, mask=inside, other=0)
        im = tl.zeros((ROWS, N), re.dtype)
    elif KIND == 5:
        has_first = row < rows
        has_second = has_first & (2 * o + 1 < count)
        re = _scaled(tl.load(from_, mask=inside, other=0), scales + o * 8, has_first)
        im = tl.load(from_ + x_outer // 2, mask=inside & has_second, other=0)
        im = _scaled(im, scales + o * 8 + 4, has_second)
    elif KIND == 3:
        c = tl.arange(0, 2)[None, None, :]
        two = (e * 2)[:, :, None] + c
        re, im = tl.split(tl.load((x + o * x_outer)[:, :, None] + two, mask=(row < rows)[:, :, None] & (two < have)
                                  & (two < whole), other=0))
    elif KIND == 4:
        ar, ai = _pairs(x + (o * x_outer + e) * 2, inside)
        br, bi = _pairs(x + (o * x_outer + n - e) * 2, inside & (n - e < have))
        ai, bi = tl.where(e == 0, 0.0, ai), tl.where(e == 0, 0.0, -bi)  # the first and the last one are real
        wr, wi = _root(low, tl.minimum(tl.arange(0, N), n))
        dr, di = _times(ar - br, ai - bi, wr, -wi)
        re, im = ar + br - di, ai + bi + dr
    else:
        re, im = _pairs(x + (o * x_outer + i.to(tl.int64) * x_side + p.to(tl.int64) * x_step) * 2, inside)
        if KIND == 2:
            im = tl.where(ahead, im, -im)
    re, im = _swapped(re, im, SWAP_IN)
    if CHIRP == _WHOLE:
        cr, ci = _all_of(chirp, N)
        re, im = _times(re, im, cr, ci)
    if CHIRP == _FIRST:
        cr, ci = _pairs(chirp + place * 2, inside)
        re, im = _times(re, im, cr, ci)
    re, im = _fft(re, im, roots, LOG)
    if CHIRP == _WHOLE:
        sr, si = _all_of(spectrum, N)
        re, im = _times(re, im, sr, si)
        im, re = _fft(im, re, roots, LOG)
        re, im = _times(re, im, cr, ci)
    if CHIRP == _SECOND:  # its results are exchanged, for the third
        sr, si = _pairs(spectrum + (i * N + e) * 2, row < rows)
        im, re = _times(re, im, sr, si)
        re, im = _fft(re, im, roots, LOG)
    if TURN > 0:
        turns = e * i
        lr, li = tl.load(low + turns % TURN * 2), tl.load(low + turns % TURN * 2 + 1)
        hr, hi = tl.load(high + turns // TURN * 2), tl.load(high + turns // TURN * 2 + 1)
        lr, li = _times(lr, li, hr, hi)
        re, im = _times(re, im, lr, li)
    q = e * out_element + i * out_inner
    kept = (row < rows) & (e < n) & (q < keep)
    if CHIRP == _THIRD:
        cr, ci = _pairs(chirp + q * 2, kept)
        im, re = _times(im, re, cr, ci)
    by = tl.load(scale)
    re, im = _swapped(re * by, im * by, SWAP_OUT)
    if KIND == 3:
        mirror = tl.broadcast_to(tl.where((e == 0) | (e > n), 0, n - e), (ROWS, N))
        mr, mi = tl.gather(re, mirror, 1), tl.gather(im, mirror, 1)
        wr, wi = _root(low, tl.minimum(tl.arange(0, N), n))
        dr, di = (im + mi) * 0.5, (mr - re) * 0.5
        re, im = (re + mr) * 0.5, (im - mi) * 0.5
        last = (out + (o * out_outer + n + e) * 2)[:, :, None] + tl.arange(0, 2)[None, None, :]
        tl.store(last, tl.join(re - dr, tl.zeros((ROWS, N), re.dtype)),
                 mask=((row < rows) & (e == 0) & (n < keep))[:, :, None])
        dr, di = _times(dr, di, wr, wi)
        re, im = re + dr, im + di
    to = o * out_outer + i.to(tl.int64) * out_side + q.to(tl.int64) * out_step
    if KIND == 4:
        two = (e * 2)[:, :, None] + tl.arange(0, 2)[None, None, :]
        tl.store((out + o * out_outer)[:, :, None] + two, tl.join(re, im), mask=(kept[:, :, None]) & (two < keep))
    elif REAL:
        tl.store(out + to, re, mask=kept)
    else:
        tl.store((out + to * 2)[:, :, None] + tl.arange(0, 2)[None, None, :], tl.join(re, im), mask=kept[:, :, None])


# --- tables

_known = {}


def _table(key, make, like):
    """Of pairs, made in float64."""
    key = (key, like.dtype, str(like.device))
    if key not in _known:
        if len(_known) >= _TABLES:
            _known.clear()
        _known[key] = make().to(like.dtype).to(like.device).contiguous()
    return _known[key]


def _turned(part, whole):
    """Roots of one: `part` of `whole` turns each, both integers, by the octant that they lie in."""
    part = part % whole
    eighth = part * 8 // whole
    # From the nearest multiple of a quarter: at most an eighth of a turn, either way.
    quarter = (eighth + 1) // 2
    angle = (part * 4 - quarter * whole).double() * (math.pi / 2 / whole)
    c, s = angle.cos(), angle.sin()
    quarter = quarter % 4
    re = torch.where(quarter == 0, c, torch.where(quarter == 1, -s, torch.where(quarter == 2, -c, s)))
    im = torch.where(quarter == 0, s, torch.where(quarter == 1, c, torch.where(quarter == 2, -s, -c)))
    return torch.stack((re, -im), -1)  # forward


def _places(n):
    return torch.arange(n, device="cpu")


def _roots(n, like):
    return _table(n, lambda: _turned(_places(n), n), like)


def _steps(count, step, n, like):
    return _table((count, step, n), lambda: _turned(_places(count) * step, n), like)


def _chirp_of(n, length):
    """exp(-pi i j^2 / n), zeros behind the n-th."""
    return torch.nn.functional.pad(_turned(_places(n) ** 2, 2 * n), (0, 0, 0, length - n))


def _chirp(n, length, like):
    return _table(("chirp", n, length), lambda: _chirp_of(n, length)[:length], like)


def _spectrum(n, have, keep, length, like):
    """Of the conjugate chirp, of which it is the convolution: results from the first to `keep` take elements as far
    ahead of them, and as far behind as there are."""
    def make():
        c = _turned(_places(n) ** 2, 2 * n) * torch.tensor([1.0, -1.0], dtype=torch.float64, device="cpu")
        none = torch.zeros((length - have - keep + 1, 2), dtype=torch.float64, device="cpu")
        both = torch.cat([c[:keep], none, c[1:have].flip(0)])
        return _transformed(both.to(like.device), 0, n=length) / length
    return _table(("spectrum", n, have, keep, length), make, like)


# --- plans


def _widest(like):
    return _WIDEST // 2 if like.dtype is torch.float64 else _WIDEST


def _tile(n, like, have=0, keep=0):
    """How long a row of one program is for a transform of n, of which `have` are there and `keep` are wanted (all: 0);
    0: too long."""
    tile = max(2, triton.next_power_of_2(n) if n & (n - 1) == 0 else
               triton.next_power_of_2((have or n) + (keep or n) - 1))
    return tile if tile <= _widest(like) else 0


def _factors(n, like):
    """n as a product of two lengths that programs have, or None."""
    best = None
    for a in range(2, int(math.sqrt(n)) + 1):
        if n % a:
            continue
        b = n // a
        s, t = _tile(a, like), _tile(b, like)
        if s and t:
            # Work for each element, and more where few rows fit side by side.
            cost = sum([m / k * (1 if m == k else 2) * (1 + m / 1024) for m, k in ((s, a), (t, b))])
            if best is None or cost < best[0]:
                best = (cost, b, a)
    return best and best[1:]


def _launch(x, out, rows, inner, x_strides, out_strides, have, keep, n, scale, kind=0, real=False, swap_in=False,
            swap_out=False, turns=0, side_by_side=False, convolves=None, whole=None, some=(0, 0), pairs=None):
    """`turns`: results are turned by parts of as many. `convolves`: how, the chirp, and its spectrum. `some`: how many
    elements are there and how many results are kept, where both count along a row that this alone transforms.
    `pairs`: factors of real rows that are taken two at a time, and how many there are."""
    tile = _tile(n, x, *some)
    how = 0
    log = tile.bit_length() - 1
    elements = max(tile, _MOST // 2 if side_by_side else _LEAST)
    if side_by_side and tile * 8 > elements:
        elements = min(tile * 8, max(_MOST, tile))
    together = max(1, min(elements // tile, triton.next_power_of_2(rows)))
    warps = max(1, min(32, together * tile // 256))
    roots = _roots(tile, x)
    turn = 0
    low = high = chirp = spectrum = roots
    if turns:
        turn = 1 << ((turns.bit_length() + 1) // 2)
        low, high = _steps(turn, 1, turns, x), _steps((turns + turn - 1) // turn, turn, turns, x)
    scale = _table(("scale", scale), lambda: torch.tensor([scale], dtype=torch.float64), x)
    if kind in (3, 4):
        low = _roots(whole, x)
    scales, count = pairs or (roots, 0)
    if convolves:
        how, chirp, spectrum = convolves
    elif tile != max(n, 2):
        how, chirp = _WHOLE.value, _chirp(n, tile, x)
        spectrum = _spectrum(n, some[0] or n, some[1] or n, tile, x)
    # The chirp is held between two transforms: of float32, fewer registers make room for half as many more programs.
    most = {"maxnreg": 80} if how == _WHOLE.value and x.dtype is torch.float32 and warps <= 16 else {}
    _kernel[(triton.cdiv(rows, together),)](x, out, roots, chirp, spectrum, low, high, scales, count, rows, inner,
                                            *x_strides, *out_strides, have, keep, n, whole or n, scale, KIND=kind,
                                            REAL=real, SWAP_IN=swap_in, SWAP_OUT=swap_out, CHIRP=how, TURN=turn,
                                            LOG=log, ROWS=together, num_warps=warps, **most)


def _half(x, dim, n, scale):
    """Half the spectra of real rows, their real and their imaginary parts, from transforms of two rows at a time; None
    where those would be no less work, or the rows are few."""
    have, keep, count = min(x.shape[dim], n), n // 2 + 1, _count(x.shape[:dim])
    one, two = _tile(n, x, have, keep), _tile(n, x, have, n)
    has_half = n % 2 == 0 and _tile(n // 2, x) > 0
    if dim + 1 < x.ndim or count < 2 or count * n < _PAIRED or has_half or (one and two != one):
        return None
    rows = x.reshape(count, x.shape[dim]).contiguous()
    scales = torch.empty((count, 4), dtype=x.dtype, device=x.device)
    block = min(4096, triton.next_power_of_2(have))
    _magnitudes[(count,)](rows, scales, x.shape[dim], have, BLOCK=block, num_warps=max(1, min(8, block // 128)))
    both = _transformed(rows, 1, n, 5, False, False, scale, pairs=(scales, count))
    # Of a + bi the spectra of a and b are half the sum and the difference with the conjugate of the mirror. What is
    # looked up at a place that is computed belongs to the kernel that reads it.
    both = both.reshape(-1)
    row, ahead = torch.arange(count, device=x.device)[:, None], torch.arange(keep, device=x.device)
    behind, odd, first = torch.where(ahead == 0, 0, n - ahead), row % 2, row // 2 * (2 * n)
    undone = scales[:, 2:3] * 0.5, scales[:, 3:4]

    def part(at, sign, by):
        v = both[at + 2 * ahead] + both[at + 2 * behind] * sign
        return (v * by * undone[0] * undone[1]).reshape(x.shape[:dim] + (keep,))
    return part(first + odd, 1, 1), part(first + 1 - odd, -1, torch.where(odd == 0, 1.0, -1.0).to(x.dtype))


def _transformed(x, dim, n, kind=0, real=False, back=False, scale=1.0, keep=None, pairs=None):
    """Transforms dimension `dim` of what KIND and `real` say, with a last dimension of two where it is complex. `keep`:
    how many results there are, if not n."""
    keep = keep or n
    shape = list(x.shape) if kind in (1, 5) else list(x.shape[:-1])
    apart = shape[dim] * (2 if pairs else 1)  # what one transform reads and the next
    if pairs:
        shape[0] = (shape[0] + 1) // 2
    made = shape[:dim] + [keep] + shape[dim + 1:]
    out = torch.empty(made if real else made + [2], dtype=x.dtype, device=x.device)
    outer, inner = _count(shape[:dim]), _count(shape[dim + 1:])
    have, rows = min(shape[dim], n // 2 + 1 if kind == 2 else n), outer * inner
    if rows == 0:
        return out
    x = x.contiguous()
    # Of half a spectrum all elements are read, each twice.
    some = (have if kind != 2 else n, keep)
    whole = _tile(n, x, *some)
    halves = not back and not real and keep <= n // 2 + 1 if kind == 1 else kind == 2 and real
    half = _tile(n // 2, x) if halves and inner == 1 and n % 2 == 0 else 0
    if half and not 0 < whole <= half:
        _launch(x, out, rows, 1, (shape[dim], 0, 1, 1, 0), (keep, 0, 1, 1, 0), have, keep, n // 2, scale, kind + 2,
                False, back, back, whole=n)
        return out
    if whole:
        _launch(x, out, rows, inner, (apart * inner, 1, inner, 1, 0), (keep * inner, 1, inner, 1, 0), have, keep, n,
                scale, kind, real, back, back, side_by_side=inner > 1, some=some, pairs=pairs)
        return out
    if inner > 1:  # long rows are gathered first
        last = -1 if kind == 1 else -2
        y = _transformed(x.movedim(dim, last).contiguous(), len(shape) - 1, n, kind, real, back, scale, keep)
        return y.movedim(-1 if real else -2, dim)
    two = _factors(n, x)
    if two is None:
        return _convolved(x, out, shape, n, have, keep, kind, real, back, scale, apart, pairs)
    a, b = two
    between = torch.empty((outer, n, 2), dtype=x.dtype, device=x.device)
    _launch(x, between, outer * b, b, (apart, 0, 1, b, 1), (n, 0, 1, b, 1), have, n, a, 1.0, kind, False, back, False,
            turns=n, side_by_side=True, whole=n, pairs=pairs)
    _launch(between, out, outer * a, a, (n, 0, 1, 1, b), (keep, 0, 1, a, 1), n, keep, b, scale, 0, real, False, back,
            side_by_side=True)
    return out


def _convolved(x, out, shape, n, have, keep, kind, real, back, scale, apart, pairs):
    """Of rows that no two kernels transform: the product with a chirp's spectrum, there and back. A row of the matrix
    keeps its place: it is one of the columns' results."""
    length = triton.next_power_of_2(2 * n - 1)
    two = _factors(length, x)
    if two is None:
        raise NotImplementedError(f"a transform of {n} elements, a length with a large prime factor, is not supported")
    a, b = two
    outer = _count(shape[:-1])
    chirp = _chirp(n, n, x)
    # In the order in which columns and then rows leave their results.
    spectrum = _table(("matrix", n, length), lambda: _spectrum(n, n, n, length, x).reshape(b, a, 2).transpose(0, 1), x)
    matrix = (length, 0, 1, b, 1)
    between, again = [torch.empty((outer, length, 2), dtype=x.dtype, device=x.device) for _ in range(2)]
    _launch(x, between, outer * b, b, (apart, 0, 1, b, 1), matrix, have, length, a, 1.0, kind, False, back, False,
            turns=length, side_by_side=True, convolves=(_FIRST.value, chirp, chirp), whole=n, pairs=pairs)
    rows = (length, 0, 1, 1, b)
    _launch(between, again, outer * a, a, rows, rows, length, length, b, 1.0, turns=length,
            convolves=(_SECOND.value, chirp, spectrum))
    _launch(again, out, outer * b, b, matrix, (keep, 0, 1, b, 1), length, keep, a, scale, 0, real, False, not back,
            side_by_side=True, convolves=(_THIRD.value, chirp, chirp))
    return out


def _count(shape):
    n = 1
    for s in shape:
        n *= s
    return n
