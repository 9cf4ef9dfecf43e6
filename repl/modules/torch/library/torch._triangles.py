"""Triangular matrices and their like by kernels: small ones by one program each, with the whole matrix in registers."""
import math

import torch
import triton
import triton.language as tl
from torch import _kiln, _large_matrices
from torch._small_matrices import _MOST, checked


@triton.jit
def _lu_kernel(a, pivots, infos, m, n, M: tl.constexpr, N: tl.constexpr):
    """Gaussian elimination with partial pivoting, in place. The first pivot that is 0 is told, from 1 on."""
    matrix = tl.program_id(0).to(tl.int64)
    i, rows, columns = tl.arange(0, M), tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at = a + matrix * m * n + rows * n + columns
    left = tl.load(at, mask=(rows < m) & (columns < n), other=0)
    info = 0
    for k in range(0, min(m, n)):
        column = tl.sum(tl.where(columns == k, left, 0), 1)
        p = tl.argmax(tl.where((i >= k) & (i < m), tl.abs(column), -1), 0)
        tl.store(pivots + matrix * min(m, n) + k, p + 1)
        pivot = tl.sum(tl.where(i == p, column, 0), 0)
        info = tl.where((pivot == 0) & (info == 0), k + 1, info)
        top, other = tl.sum(tl.where(rows == p, left, 0), 0), tl.sum(tl.where(rows == k, left, 0), 0)
        left = tl.where(rows == p, other[None, :], left)
        left = tl.where(rows == k, top[None, :], left)
        by = tl.where(pivot == 0, 1, pivot).to(left.dtype)
        factor = tl.where(i > k, tl.sum(tl.where(columns == k, left, 0), 1) / by, 0)[:, None]
        left -= tl.where(columns > k, factor * top[None, :], 0)
        left = tl.where((rows > k) & (columns == k), factor, left)
    tl.store(at, left, mask=(rows < m) & (columns < n))
    tl.store(infos + matrix, info)


@triton.jit
def _permutation_kernel(pivots, order, m, k, M: tl.constexpr):
    """The row that each place has after the exchanges that pivots name, from 1 on."""
    matrix = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, M)
    row = i
    for j in range(0, k):
        p = tl.load(pivots + matrix * k + j) - 1
        here, there = tl.sum(tl.where(i == j, row, 0), 0), tl.sum(tl.where(i == p, row, 0), 0)
        row = tl.where(i == p, here, tl.where(i == j, there, row))
    tl.store(order + matrix * m + i, row.to(tl.int64), mask=i < m)


@triton.jit
def _substitution_kernel(a, b, x, n, m, N: tl.constexpr, M: tl.constexpr, UPPER: tl.constexpr, UNIT: tl.constexpr):
    matrix = tl.program_id(0).to(tl.int64)
    r, rows, columns = tl.arange(0, N), tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    right = tl.program_id(1) * M + tl.arange(0, M)[None, :]
    left = tl.load(a + matrix * n * n + rows * n + columns, mask=(rows < n) & (columns < n), other=0)
    to = matrix * n * m + rows * m + right
    known = tl.load(b + to, mask=(rows < n) & (right < m), other=0)
    for i in range(0, n):
        k = i
        if UPPER:
            k = n - 1 - i
        column = tl.sum(tl.where(columns == k, left, 0), 1)
        row = tl.sum(tl.where(rows == k, known, 0), 0)
        if not UNIT:
            row = row / tl.sum(tl.where(r == k, column, 0), 0)
        if UPPER:
            column = tl.where(r < k, column, 0)
        else:
            column = tl.where(r > k, column, 0)
        known = tl.where(rows == k, row[None, :], known - column[:, None] * row[None, :])
    tl.store(x + to, known, mask=(rows < n) & (right < m))


@triton.jit
def _times(a, b, n, rows, columns):
    out = tl.zeros_like(a)
    for k in range(0, n):
        out += tl.sum(tl.where(columns == k, a, 0), 1)[:, None] * tl.sum(tl.where(rows == k, b, 0), 0)[None, :]
    return out


@triton.jit
def _exp_kernel(a, e, out, n, N: tl.constexpr, TERMS: tl.constexpr, ALONG: tl.constexpr):
    """Taylor's series of a matrix that is halved until its norm is at most 1, and squared as often. ALONG: of the
    derivative in the direction `e` (Al-Mohy and Higham, 2009)."""
    matrix = tl.program_id(0).to(tl.int64)
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at, inside = matrix * n * n + rows * n + columns, (rows < n) & (columns < n)
    x = tl.load(a + at, mask=inside, other=0)
    one = tl.where(rows == columns, tl.full((), 1, x.dtype), 0)
    y, dx, dy = one, x, x
    if ALONG:
        dx = tl.load(e + at, mask=inside, other=0)
        dy = tl.zeros_like(x)
    norm = tl.max(tl.sum(tl.abs(x), 0), 0)
    halves = 0
    while (norm > 1) & (norm < float("inf")):
        norm, halves = norm * 0.5, halves + 1
        x = x * 0.5
        if ALONG:
            dx = dx * 0.5
    for i in range(0, TERMS):
        share = (1.0 / (TERMS - i).to(tl.float64)).to(x.dtype)
        if ALONG:
            dy = (_times(dx, y, n, rows, columns) + _times(x, dy, n, rows, columns)) * share
        y = one + _times(x, y, n, rows, columns) * share
    for i in range(0, halves):
        if ALONG:
            dy = _times(dy, y, n, rows, columns) + _times(y, dy, n, rows, columns)
        y = _times(y, y, n, rows, columns)
    if ALONG:
        y = dy
    tl.store(out + at, y, mask=inside)


def _wide(n):
    return max(4, triton.next_power_of_2(n))


def _warps(n):
    return 1 if n <= 16 else 4


def lu(A):
    """(the factors in one matrix, the exchanges of rows from 1 on, the first pivot that is 0)"""
    if A.ndim < 2 or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"lu_factor() of {A.dtype} {tuple(A.shape)}: it takes matrices of float32 or float64")
    _kiln.runs_kernels(A)
    m, n = A.shape[-2:]
    if max(m, n) > _MOST and min(m, n) > 0:
        out, pivots, _ = _large_matrices.lu(A)
        zero = out.diagonal(dim1=-2, dim2=-1) == 0
        return out, pivots + 1, torch.where(zero.any(-1), zero.int().argmax(-1) + 1, 0).int()
    out = A.contiguous().clone()
    pivots = torch.zeros(list(A.shape[:-2]) + [min(m, n)], dtype=torch.int32, device=A.device)
    info = torch.zeros(A.shape[:-2], dtype=torch.int32, device=A.device)
    if A.numel() > 0:
        _lu_kernel[(A.numel() // (m * n),)](out, pivots, info, m, n, M=_wide(m), N=_wide(n),
                                            num_warps=_warps(max(m, n)))
    return out, pivots, info


def permutation(pivots, m):
    """The row of the matrix that is each row of the factors' product."""
    k = pivots.shape[-1]
    order = torch.arange(m, device=pivots.device).expand(list(pivots.shape[:-1]) + [m]).contiguous()
    if k > 0 and pivots.numel() > 0:
        _permutation_kernel[(pivots.numel() // k,)](pivots.contiguous(), order, m, k, M=_wide(m), num_warps=1)
    return order


def substituted(A, B, upper, unit):
    """The solution for the columns of B, of a triangle."""
    _kiln.runs_kernels(A)
    n, m = A.shape[-1], B.shape[-1]
    if n > _MOST:
        return _large_matrices.triangular(A, B, upper, unit)
    x = torch.empty_like(B.contiguous())
    if x.numel() > 0:
        block = min(64, _wide(m))
        _substitution_kernel[(x.numel() // (n * m), triton.cdiv(m, block))](
            A.contiguous(), B.contiguous(), x, n, m, N=_wide(n), M=block, UPPER=upper, UNIT=unit, num_warps=_warps(n))
    return x


def exponential(A, along=None):
    """exp(A), or its derivative in a direction."""
    n, matrices = checked(A, "matrix_exp()")
    if n > _MOST:
        return _large_exponential(A, along)
    out = torch.empty_like(A.contiguous())
    if A.numel() > 0:
        a = A.contiguous()
        _exp_kernel[(matrices,)](a, a if along is None else along.contiguous(), out, n, N=_wide(n),
                                 TERMS=14 if A.dtype is torch.float32 else 20, ALONG=along is not None,
                                 num_warps=_warps(n))
    return out


def _large_exponential(A, along):
    """The same series and squares as products of matrices. The derivative is beside exp(A) in the exponential of
    [[A, E], [0, A]] (Higham, "Functions of Matrices", 2008, theorem 3.6)."""
    n = A.shape[-1]
    if along is not None:
        A = torch.cat([torch.cat([A, along], -1), torch.cat([torch.zeros_like(A), A], -1)], -2)
    norm = float(A.abs().sum(-2).max()) if A.numel() else 0.0
    halves = math.ceil(math.log2(norm)) if 1 < norm < math.inf else 0
    x = A / 2**halves
    terms = 14 if A.dtype is torch.float32 else 20
    one = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    y = one.expand(A.shape)
    for i in range(terms, 0, -1):
        y = one + x @ y / i
    for _ in range(halves):
        y = y @ y
    return y if along is None else y[..., :n, n:]
