"""Matrices solved by kernels: small ones by one program each, with the whole matrix in registers."""
import torch
import triton
import triton.language as tl
from torch import _kiln

_MOST = 64  # rows of a matrix that a program can hold


@triton.jit
def _solve_kernel(a, b, x, dets, n, m, N: tl.constexpr, M: tl.constexpr, SOLVES: tl.constexpr):
    """Gauss-Jordan elimination with partial pivoting; the determinant is the product of the pivots."""
    matrix = tl.program_id(0).to(tl.int64)
    r, rows, columns = tl.arange(0, N), tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    right = tl.program_id(1) * M + tl.arange(0, M)[None, :]
    left = tl.load(a + matrix * n * n + rows * n + columns, mask=(rows < n) & (columns < n), other=0)
    to = matrix * n * m + rows * m + right
    known = tl.zeros((N, M), left.dtype)
    if SOLVES:
        known = tl.load(b + to, mask=(rows < n) & (right < m), other=0)
    det = tl.full((), 1, left.dtype)
    for k in range(0, n):
        column = tl.sum(tl.where(columns == k, left, 0), 1)
        p = tl.argmax(tl.where((r >= k) & (r < n), tl.abs(column), -1), 0)
        pivot = tl.sum(tl.where(r == p, column, 0), 0)
        det *= tl.where(p == k, pivot, -pivot)
        by = tl.where(pivot == 0, 1, pivot).to(left.dtype)
        # Row k changes its place with row p, and leaves the others.
        factor = tl.where(r == p, tl.sum(tl.where(r == k, column, 0), 0), column)[:, None]
        row, other = tl.sum(tl.where(rows == p, left, 0), 0) / by, tl.sum(tl.where(rows == k, left, 0), 0)
        left = tl.where(rows == p, other[None, :], left)
        left = tl.where(rows == k, row[None, :], left - factor * row[None, :])
        if SOLVES:
            row, other = tl.sum(tl.where(rows == p, known, 0), 0) / by, tl.sum(tl.where(rows == k, known, 0), 0)
            known = tl.where(rows == p, other[None, :], known)
            known = tl.where(rows == k, row[None, :], known - factor * row[None, :])
    if SOLVES:
        tl.store(x + to, known, mask=(rows < n) & (right < m))
    tl.store(dets + matrix, det)


@triton.jit
def _rooted(left, worst, count, N: tl.constexpr):
    """(the lower factor of the first `count` rows of a matrix, the least of `worst` and of what roots were taken of),
    column by column."""
    r, columns = tl.arange(0, N), tl.arange(0, N)[None, :]
    factor = tl.zeros((N, N), left.dtype)
    for k in range(0, count):
        column = tl.sum(tl.where(columns == k, left, 0), 1)
        square = tl.sum(tl.where(r == k, column, 0), 0)
        worst = tl.minimum(worst, square, propagate_nan=tl.PropagateNan.ALL)
        column = tl.where(r >= k, column / tl.sqrt_rn(square), 0)
        factor = tl.where(columns == k, column[:, None], factor)
        left -= column[:, None] * column[None, :]
    return factor, worst


@triton.jit
def _cholesky_kernel(a, out, least, n, N: tl.constexpr):
    matrix = tl.program_id(0).to(tl.int64)
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = matrix * n * n + rows * n + columns
    left = tl.load(a + at, mask=(rows < n) & (columns <= rows), other=0)
    factor, worst = _rooted(left, tl.full((), float("inf"), left.dtype), n, N)
    tl.store(out + at, factor, mask=(rows < n) & (columns < n))
    tl.store(least + matrix, worst)


def checked(A, what):
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"{what} of {A.dtype} {tuple(A.shape)}: it takes square matrices of float32 or float64")
    _kiln.runs_kernels(A)  # noted for the table of docs/torch.md
    return A.shape[-1], A.numel() // max(1, A.shape[-1] ** 2)


def eliminated(A, B, what):
    """(solutions for the columns of B, or None; determinants)"""
    n, matrices = checked(A, what)
    if n > _MOST:
        from torch import _large_matrices
        return _large_matrices.eliminated(A, B)
    dets = torch.ones(A.shape[:-2], dtype=A.dtype, device=A.device)
    x = None if B is None else torch.empty_like(B.contiguous())
    if matrices > 0 and n > 0:
        m = 1 if B is None else B.shape[-1]
        block = min(64, triton.next_power_of_2(max(m, 4)))
        wide = max(4, triton.next_power_of_2(n))
        _solve_kernel[(matrices, max(1, triton.cdiv(m, block)))](
            A.contiguous(), A if B is None else B.contiguous(), dets if B is None else x, dets, n, m, N=wide, M=block,
            SOLVES=B is not None, num_warps=1 if wide <= 16 else 4)
    return x, dets


def factor(A):
    """(the lower factor, the least of what roots were taken of)"""
    n, matrices = checked(A, "cholesky()")
    out, least = torch.empty_like(A.contiguous()), torch.ones(A.shape[:-2], dtype=A.dtype, device=A.device)
    if n > _MOST:
        from torch import _large_matrices
        out, least = _large_matrices.cholesky(A)
    elif matrices > 0 and n > 0:
        wide = max(4, triton.next_power_of_2(n))
        _cholesky_kernel[(matrices,)](A.contiguous(), out, least, n, N=wide, num_warps=1 if wide <= 16 else 4)
    return out, least


def cholesky(A):
    out, least = factor(A)
    # What a GPU holds is not looked at.
    if not A.is_cuda and not bool((least > 0).all()):
        from torch.linalg import LinAlgError
        raise LinAlgError("cholesky(): the matrix is not positive-definite")
    return out
