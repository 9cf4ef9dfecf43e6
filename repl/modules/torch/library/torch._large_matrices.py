"""Matrices of any size factored and solved by blocks of columns: a panel by one program, what follows from it by many.

A panel's program reads and writes the matrix in memory, since its columns may be longer than what registers hold: each
step ends with a barrier. References: Golub and Van Loan, "Matrix Computations", 4th edition, 3.2.11 (LU by blocks),
3.4.1 (partial pivoting), 4.2.9 (Cholesky by blocks).
"""
import math

import torch
import triton
import triton.language as tl
from torch._small_matrices import _rooted

_PANEL = 32  # columns
_PANEL_ROWS, _PANEL_WARPS = 256, 16  # a panel's program: rows at a time


# What stands at the edges is not specialised: a matrix of another size would compile its kernels again.
@triton.jit(do_not_specialize=["m", "end"])
def _lu_panel_kernel(a, pivots, order, m, n, k, end, ROWS: tl.constexpr, W: tl.constexpr):
    """Elimination with partial pivoting of the columns k to end, in the rows from k on. Row j changes its place with
    row pivots[j], of the panel's columns and of `order`."""
    matrix = tl.program_id(0).to(tl.int64)
    a, pivots, order = a + matrix * m * n, pivots + matrix * min(m, n), order + matrix * m
    columns = k + tl.arange(0, W)
    inside = columns < end
    slots = tl.arange(0, ROWS)
    # The largest element so far of each slot of rows, and its row: reduced once for a column.
    most = tl.full((ROWS,), -1, a.dtype.element_ty)
    where = tl.full((ROWS,), 0, tl.int32) + k
    for start in range(k, m, ROWS):
        r = start + slots
        x = tl.abs(tl.load(a + r.to(tl.int64) * n + k, mask=r < m, other=0))
        better = (x > most) & (r < m)
        where = tl.where(better, r, where)
        most = tl.where(better, x, most)
    for j in range(k, end):
        top, slot = tl.max(most, 0, return_indices=True)
        p = tl.sum(tl.where(slots == slot, where, 0), 0)
        p = tl.where(top >= 0, p, j)  # nothing but NaN
        mine, other = a + j.to(tl.int64) * n + columns, a + p.to(tl.int64) * n + columns
        upper, row = tl.load(mine, mask=inside, other=0), tl.load(other, mask=inside, other=0)
        at_j, at_p = tl.load(order + j), tl.load(order + p)
        tl.debug_barrier()
        tl.store(other, upper, mask=inside)
        tl.store(order + p, at_j)
        tl.debug_barrier()
        tl.store(mine, row, mask=inside)
        tl.store(order + j, at_p)
        tl.store(pivots + j, p)
        tl.debug_barrier()
        pivot = tl.sum(tl.where(columns == j, row, 0), 0)
        by = tl.where(pivot == 0, 1, pivot).to(row.dtype)
        most = tl.full((ROWS,), -1, a.dtype.element_ty)
        where = tl.full((ROWS,), 0, tl.int32) + j + 1
        for start in range(j + 1, m, ROWS):
            r = start + slots
            at = a + r.to(tl.int64)[:, None] * n + columns[None, :]
            mask = (r < m)[:, None] & inside[None, :]
            block = tl.load(at, mask=mask, other=0)
            factor = tl.sum(tl.where(columns[None, :] == j, block, 0), 1) / by
            block = tl.where(columns[None, :] > j, block - factor[:, None] * row[None, :], block)
            block = tl.where(columns[None, :] == j, factor[:, None], block)
            tl.store(at, block, mask=mask)
            x = tl.abs(tl.sum(tl.where(columns[None, :] == j + 1, block, 0), 1))
            better = (x > most) & (r < m)
            where = tl.where(better, r, where)
            most = tl.where(better, x, most)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["m", "end"])
def _swap_kernel(a, pivots, m, n, k, end, COLUMNS: tl.constexpr):
    """The changes of rows that a panel made, in the columns beside it."""
    matrix = tl.program_id(0).to(tl.int64)
    a, pivots = a + matrix * m * n, pivots + matrix * min(m, n)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = ((columns < k) | (columns >= end)) & (columns < n)
    for j in range(k, end):
        p = tl.load(pivots + j)
        mine, other = a + j.to(tl.int64) * n + columns, a + p.to(tl.int64) * n + columns
        x, y = tl.load(mine, mask=mask, other=0), tl.load(other, mask=mask, other=0)
        tl.debug_barrier()
        tl.store(other, x, mask=mask)
        tl.debug_barrier()
        tl.store(mine, y, mask=mask)
        tl.debug_barrier()


@triton.jit
def _corner_kernel(a, least, n, k, W: tl.constexpr):
    """The Cholesky factor of the block at (k, k), and the least of what roots were taken of."""
    matrix = tl.program_id(0).to(tl.int64)
    rows, columns = tl.arange(0, W)[:, None], tl.arange(0, W)[None, :]
    at = a + matrix * n * n + (k + rows).to(tl.int64) * n + k + columns
    mask = (k + rows < n) & (columns <= rows)
    factor, worst = _rooted(tl.load(at, mask=mask, other=0), tl.load(least + matrix), min(W, n - k), W)
    tl.store(at, factor, mask=mask)
    tl.store(least + matrix, worst)


@triton.jit(do_not_specialize=["size", "end", "t_row", "t_column", "x_row", "x_column"])
def _block_kernel(t, x, k, size, first, end, t_matrix, t_row, t_column, x_matrix, x_row, x_column,
                  UPPER: tl.constexpr, UNIT: tl.constexpr, W: tl.constexpr, COLUMNS: tl.constexpr):
    """The block of a triangular matrix at (k, k), of `size` rows, solved for the columns `first` to `end` of x."""
    matrix = tl.program_id(0).to(tl.int64)
    r, rows = tl.arange(0, W), tl.arange(0, W)[:, None]
    columns = (first + tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    at = x + matrix * x_matrix + (k + rows).to(tl.int64) * x_row + columns * x_column
    mask = (rows < size) & (columns < end)
    known = tl.load(at, mask=mask, other=0)
    t += matrix * t_matrix + k.to(tl.int64) * t_row + k.to(tl.int64) * t_column
    for step in range(0, size):
        j = size - 1 - step if UPPER else step
        column = tl.load(t + r * t_row + j * t_column, mask=r < size, other=0)
        value = tl.sum(tl.where(rows == j, known, 0), 0)
        if not UNIT:
            value = value / tl.sum(tl.where(r == j, column, 0), 0)
        after = rows < j if UPPER else rows > j
        known = tl.where(after, known - column[:, None] * value[None, :], known)
        known = tl.where(rows == j, value[None, :], known)
    tl.store(at, known, mask=mask)


@triton.jit(do_not_specialize=["end_row", "end_column", "end_k"])
def _update_kernel(c, a, b, first_row, end_row, first_column, end_column, k, end_k, c_matrix, c_row, a_matrix, a_row,
                   a_column, b_matrix, b_row, b_column, LOWER: tl.constexpr, TILE: tl.constexpr, W: tl.constexpr):
    """c -= a b over the columns k to end_k of a, in a rectangle of c; LOWER: its tiles up to the diagonal alone."""
    matrix = tl.program_id(0).to(tl.int64)
    row, column = tl.program_id(1), tl.program_id(2)
    if LOWER and column > row:
        return
    rows = (first_row + row * TILE + tl.arange(0, TILE)).to(tl.int64)[:, None]
    columns = (first_column + column * TILE + tl.arange(0, TILE)).to(tl.int64)[None, :]
    inner = (k + tl.arange(0, W)).to(tl.int64)
    left = tl.load(a + matrix * a_matrix + rows * a_row + inner[None, :] * a_column,
                   mask=(rows < end_row) & (inner < end_k)[None, :], other=0)
    right = tl.load(b + matrix * b_matrix + inner[:, None] * b_row + columns * b_column,
                    mask=(columns < end_column) & (inner < end_k)[:, None], other=0)
    at, mask = c + matrix * c_matrix + rows * c_row + columns, (rows < end_row) & (columns < end_column)
    tl.store(at, tl.load(at, mask=mask, other=0) - tl.dot(left, right, input_precision="ieee"), mask=mask)


def _update(c, a, b, rows, columns, k, end, lower=False):
    """c[rows, columns] -= a[rows, k:end] @ b[k:end, columns] of flat batches, in place."""
    tall, wide = rows[1] - rows[0], columns[1] - columns[0]
    if tall > 0 and wide > 0:
        tile = 64 if min(tall, wide) > 32 else 32
        grid = (c.shape[0], triton.cdiv(tall, tile), triton.cdiv(wide, tile))
        _update_kernel[grid](c, a, b, rows[0], rows[1], columns[0], columns[1], k, end, c.stride(0), c.stride(1),
                             *a.stride(), *b.stride(), LOWER=lower, TILE=tile, W=_PANEL)


def _solve_block(t, x, k, size, columns, upper, unit):
    wide = columns[1] - columns[0]
    if wide > 0:
        grid = (x.shape[0], triton.cdiv(wide, 32))
        _block_kernel[grid](t, x, k, size, columns[0], columns[1], *t.stride(), *x.stride(), UPPER=upper, UNIT=unit,
                            W=_PANEL, COLUMNS=32)


def _flat(A):
    """A copy of the matrices in one batch, contiguous."""
    return A.reshape([math.prod(A.shape[:-2])] + list(A.shape[-2:])).contiguous().clone()


def lu(A):
    """(L below the diagonal and U, for each j the row that row j changed its place with, the order of the rows): with
    order `p`, A[p] = L U."""
    m, n = A.shape[-2:]
    rank = min(m, n)
    left = _flat(A)
    matrices = left.shape[0]
    pivots = torch.zeros(matrices, rank, dtype=torch.int32, device=A.device)
    order = torch.arange(m, dtype=torch.int32, device=A.device).expand(matrices, m).contiguous()
    for k in range(0, rank if matrices else 0, _PANEL):
        end = min(k + _PANEL, rank)
        _lu_panel_kernel[(matrices,)](left, pivots, order, m, n, k, end, ROWS=_PANEL_ROWS, W=_PANEL,
                                      num_warps=_PANEL_WARPS)
        if n > end - k:
            _swap_kernel[(matrices, triton.cdiv(n, 128))](left, pivots, m, n, k, end, COLUMNS=128, num_warps=1)
        _solve_block(left, left, k, end - k, (end, n), False, True)
        _update(left, left, left, (end, m), (end, n), k, end)
    lead = list(A.shape[:-2])
    return left.reshape(A.shape), pivots.reshape(lead + [rank]), order.reshape(lead + [m]).long()


def triangular(T, B, upper, unit=False):
    """The X for which T X = B, of a triangular T whose other triangle is not read."""
    n, m = B.shape[-2:]
    x = _flat(B)
    t = T.reshape([x.shape[0], n, n])
    for k in range((n - 1) // _PANEL * _PANEL, -1, -_PANEL) if upper else range(0, n, _PANEL):
        end = min(k + _PANEL, n)
        _solve_block(t, x, k, end - k, (0, m), upper, unit)
        _update(x, t, x, (0, k) if upper else (end, n), (0, m), k, end)
    return x.reshape(B.shape)


def eliminated(A, B):
    """(solutions for the columns of B, or None; determinants)"""
    factors, pivots, order = lu(A)
    dets = sign(factors, pivots) * factors.diagonal(dim1=-2, dim2=-1).abs().prod(-1)
    if B is None:
        return None, dets
    rows = B.gather(-2, order.unsqueeze(-1).expand(B.shape))
    return triangular(factors, triangular(factors, rows, False, True), True), dets


def sign(factors, pivots):
    """Of the determinants of what lu() factored: of the order of the rows, and of the diagonal."""
    moved = (pivots != torch.arange(pivots.shape[-1], device=pivots.device)).sum(-1)
    return (1 - 2 * (moved % 2)).to(factors.dtype) * factors.diagonal(dim1=-2, dim2=-1).sign().prod(-1)


def cholesky(A):
    """(the lower factor, the least of what roots were taken of)"""
    n = A.shape[-1]
    left = _flat(A)
    least = torch.full((left.shape[0],), float("inf"), dtype=A.dtype, device=A.device)
    for k in range(0, n if left.shape[0] else 0, _PANEL):
        end = min(k + _PANEL, n)
        _corner_kernel[(left.shape[0],)](left, least, n, k, W=_PANEL)
        # L21 = A21 L11^-T: its transpose is what L11 is solved for.
        _solve_block(left, left.mT, k, end - k, (end, n), False, False)
        _update(left, left, left.mT, (end, n), (end, n), k, end, lower=True)
    return left.tril().reshape(A.shape), least.reshape(A.shape[:-2])
