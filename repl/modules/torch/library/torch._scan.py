"""Scans by kernels: running extremes and running logarithms of sums; and the greatest common divisor."""
import torch
import triton
import triton.language as tl
from torch._sort import _lines, _unlined
from triton.language.extra import libdevice

_WIDEST = 2048  # elements of a row that are scanned at once


@triton.jit
def _larger(a, i, b, j):
    """The later of equal ones; a NaN stays until the next."""
    later = (b != b) | ((a == a) & (b >= a))
    return tl.where(later, b, a), tl.where(later, j, i)


@triton.jit
def _smaller(a, i, b, j):
    later = (b != b) | ((a == a) & (b <= a))
    return tl.where(later, b, a), tl.where(later, j, i)


@triton.jit
def _extremes_kernel(x, values, places, rows, width, LARGEST: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    first = tl.load(x + row * width, mask=row < rows, other=0)
    most, where = first, tl.zeros((ROWS, 1), tl.int32).to(places.dtype.element_ty)
    for begin in range(0, width, WIDTH):
        at = begin + column
        inside = (row < rows) & (at < width)
        v = tl.load(x + row * width + at, mask=inside, other=0)
        i = (at + tl.zeros((ROWS, WIDTH), tl.int32)).to(where.dtype)
        if LARGEST:
            v, i = tl.associative_scan((v, i), 1, _larger)
            v, i = _larger(most, where, v, i)
        else:
            v, i = tl.associative_scan((v, i), 1, _smaller)
            v, i = _smaller(most, where, v, i)
        tl.store(values + row * width + at, v, mask=inside)
        tl.store(places + row * width + at, i, mask=inside)
        last = column == WIDTH - 1
        most = tl.sum(tl.where(last, v, 0), 1, keep_dims=True).to(v.dtype)
        where = tl.sum(tl.where(last, i, 0), 1, keep_dims=True).to(i.dtype)


@triton.jit
def _log_add(a, b):
    most = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    least = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    infinite = (most == float("inf")) | (most == float("-inf"))
    return tl.where(infinite, most, most + libdevice.log1p(tl.exp(least - most)))


@triton.jit
def _log_sums_kernel(x, out, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    wide: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    total = tl.full((ROWS, 1), float("-inf"), wide)
    for begin in range(0, width, WIDTH):
        at = begin + column
        inside = (row < rows) & (at < width)
        v = tl.load(x + row * width + at, mask=inside, other=float("-inf")).to(wide)
        v = _log_add(total, tl.associative_scan(v, 1, _log_add))
        tl.store(out + row * width + at, v.to(out.dtype.element_ty), mask=inside)
        total = tl.sum(tl.where(column == WIDTH - 1, v, 0), 1, keep_dims=True)


def _shape(rows, width):
    """Rows to a program, the elements of each that are scanned at once, and warps."""
    wide = min(_WIDEST, max(16, triton.next_power_of_2(width)))
    together = min(max(1, _WIDEST // wide), triton.next_power_of_2(rows))
    return together, wide, max(1, min(8, together * wide // 256))


def running_extreme(input, dim, largest):
    """Values and where they were, the last of equal ones."""
    x = _lines(input, dim)
    values, places = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64, device=x.device)
    if x.numel() > 0:
        rows, width = x.numel() // x.shape[-1], x.shape[-1]
        together, wide, warps = _shape(rows, width)
        _extremes_kernel[(triton.cdiv(rows, together),)](x, values, places, rows, width, LARGEST=bool(largest),
                                                         ROWS=together, WIDTH=wide, num_warps=warps)
    return _unlined(values, input.dtype, input, dim), _unlined(places, torch.int64, input, dim)


def logcumsumexp(input, dim):
    x = _lines(input, dim)
    out = torch.empty_like(x)
    if x.numel() > 0:
        rows, width = x.numel() // x.shape[-1], x.shape[-1]
        together, wide, warps = _shape(rows, width)
        _log_sums_kernel[(triton.cdiv(rows, together),)](x, out, rows, width, ROWS=together, WIDTH=wide,
                                                         num_warps=warps)
    return _unlined(out, input.dtype, input, dim)


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
