"""Orthogonal factors by kernels: of small matrices by one program each, with the whole matrix in registers."""
import torch
import triton
import triton.language as tl
from torch import _kiln
from torch._small_matrices import _MOST

_MOST_TURNED = 16  # rows and columns of a matrix whose rotations one program makes, one after the other


@triton.jit
def _qr_kernel(a, q, r, m, n, M: tl.constexpr, N: tl.constexpr):
    """Householder reflections; the diagonal of R has LAPACK's signs."""
    matrix = tl.program_id(0).to(tl.int64)
    i, rows, columns = tl.arange(0, M), tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    others = tl.arange(0, M)[None, :]
    left = tl.load(a + matrix * m * n + rows * n + columns, mask=(rows < m) & (columns < n), other=0)
    made = tl.where(rows == others, tl.full((), 1, left.dtype), 0)
    for k in range(0, min(n, m)):
        x = tl.where(i >= k, tl.sum(tl.where(columns == k, left, 0), 1), 0)
        first = tl.sum(tl.where(i == k, x, 0), 0)
        below = tl.sum(tl.where(i > k, x * x, 0), 0)
        norm = tl.sqrt_rn(first * first + below)
        v = tl.where(i == k, x + tl.where(first < 0, -norm, norm), x)
        square = tl.sum(v * v, 0)
        scale = tl.where((below == 0) | (square == 0), 0, 2 / tl.where(square == 0, 1, square)).to(left.dtype)
        left -= scale * v[:, None] * tl.sum(v[:, None] * left, 0)[None, :]
        made -= scale * tl.sum(made * v[None, :], 1)[:, None] * v[None, :]
    tl.store(r + matrix * m * n + rows * n + columns, tl.where(columns >= rows, left, 0),
             mask=(rows < m) & (columns < n))
    tl.store(q + matrix * m * m + rows * m + others, made, mask=(rows < m) & (others < m))


@triton.jit
def _rotation(alpha, beta, gamma):
    """(c, s) of the rotation that makes gamma, between columns of squares alpha and beta, zero."""
    zeta = (beta - alpha) / (2 * tl.where(gamma == 0, 1, gamma))
    t = tl.where(zeta < 0, -1, 1) / (tl.abs(zeta) + tl.sqrt_rn(zeta * zeta + 1))
    c = 1 / tl.sqrt_rn(t * t + 1)
    return tl.where(gamma == 0, 1, c).to(alpha.dtype), tl.where(gamma == 0, 0, c * t).to(alpha.dtype)


@triton.jit
def _turned(matrix, columns, p, q, c, s):
    """The matrix whose columns p and q are rotated."""
    x, y = tl.sum(tl.where(columns == p, matrix, 0), 1), tl.sum(tl.where(columns == q, matrix, 0), 1)
    matrix = tl.where(columns == p, (c * x - s * y)[:, None], matrix)
    return tl.where(columns == q, (s * x + c * y)[:, None], matrix)


@triton.jit
def _svd_kernel(a, v, m, n, eps, M: tl.constexpr, N: tl.constexpr):
    """Hestenes' one-sided Jacobi: columns are rotated until all are orthogonal. The matrix becomes U S."""
    matrix = tl.program_id(0).to(tl.int64)
    rows, columns, others = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, N)[:, None]
    at = a + matrix * m * n + rows * n + columns
    left = tl.load(at, mask=(rows < m) & (columns < n), other=0)
    right = tl.where(others == columns, tl.full((), 1, left.dtype), 0)
    sweep, turned = 0, 1
    while (turned > 0) & (sweep < 30):
        turned = 0
        for p in range(0, n - 1):
            for q in range(p + 1, n):
                x, y = tl.sum(tl.where(columns == p, left, 0), 1), tl.sum(tl.where(columns == q, left, 0), 1)
                alpha, beta, gamma = tl.sum(x * x, 0), tl.sum(y * y, 0), tl.sum(x * y, 0)
                apart = tl.abs(gamma) > eps * tl.sqrt_rn(alpha * beta)
                turned += apart.to(tl.int32)
                c, s = _rotation(alpha, beta, tl.where(apart, gamma, 0))
                left = _turned(left, columns, p, q, c, s)
                right = _turned(right, columns, p, q, c, s)
        sweep += 1
    tl.store(at, left, mask=(rows < m) & (columns < n))
    tl.store(v + matrix * n * n + others * n + columns, right, mask=(others < n) & (columns < n))


@triton.jit
def _eigh_kernel(a, v, n, eps, N: tl.constexpr):
    """Jacobi's method for symmetric matrices, of which the lower triangle is read."""
    matrix = tl.program_id(0).to(tl.int64)
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at, inside = a + matrix * n * n + rows * n + columns, (rows < n) & (columns < n)
    mirrored = a + matrix * n * n + columns * n + rows
    left = tl.where(rows >= columns, tl.load(at, mask=inside, other=0), tl.load(mirrored, mask=inside, other=0))
    right = tl.where(rows == columns, tl.full((), 1, left.dtype), 0)
    least = eps * tl.sqrt_rn(tl.sum(tl.sum(left * left, 1), 0))
    sweep, turned = 0, 1
    while (turned > 0) & (sweep < 30):
        turned = 0
        for p in range(0, n - 1):
            for q in range(p + 1, n):
                x, y = tl.sum(tl.where(columns == p, left, 0), 1), tl.sum(tl.where(columns == q, left, 0), 1)
                i = tl.arange(0, N)
                alpha, beta = tl.sum(tl.where(i == p, x, 0), 0), tl.sum(tl.where(i == q, y, 0), 0)
                gamma = tl.sum(tl.where(i == p, y, 0), 0)
                apart = tl.abs(gamma) > least
                turned += apart.to(tl.int32)
                c, s = _rotation(alpha, beta, tl.where(apart, gamma, 0))
                left = _turned(left, columns, p, q, c, s)
                x, y = tl.sum(tl.where(rows == p, left, 0), 0), tl.sum(tl.where(rows == q, left, 0), 0)
                left = tl.where(rows == p, (c * x - s * y)[None, :], left)
                left = tl.where(rows == q, (s * x + c * y)[None, :], left)
                right = _turned(right, columns, p, q, c, s)
        sweep += 1
    tl.store(at, left, mask=inside)
    tl.store(v + matrix * n * n + rows * n + columns, right, mask=inside)


def _checked(A, what):
    if A.ndim < 2 or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"{what} of {A.dtype} {tuple(A.shape)}: it takes matrices of float32 or float64")
    _kiln.runs_kernels(A)
    m, n = A.shape[-2:]
    return m, n, A.numel() // max(1, m * n)


def _wide(n):
    return max(4, triton.next_power_of_2(n))


def qr(A, wide):
    """(the first `wide` columns of Q, R of as many rows)"""
    m, n, matrices = _checked(A, "qr()")
    if max(m, n) > _MOST:
        from torch import _large_factors
        return _large_factors.qr(A, wide)
    q = torch.eye(m, dtype=A.dtype, device=A.device).expand(list(A.shape[:-2]) + [m, m]).contiguous()
    r = torch.zeros_like(A.contiguous())
    if matrices and m and n:
        _qr_kernel[(matrices,)](A.contiguous(), q, r, m, n, M=_wide(m), N=_wide(n))
    return q[..., :wide].contiguous(), r[..., :wide, :].contiguous()


def eigh(A):
    """(eigenvalues from the least on, eigenvectors as columns)"""
    m, n, matrices = _checked(A, "eigh()")
    if m != n:
        raise RuntimeError(f"eigh() of {tuple(A.shape)}: it takes square matrices")
    if n > _MOST_TURNED:
        from torch import _large_factors
        return _large_factors.eigh(A)
    left, right = A.contiguous().clone(), torch.zeros_like(A.contiguous())
    if matrices and n:
        _eigh_kernel[(matrices,)](left, right, n, torch.finfo(A.dtype).eps, N=_wide(n))
    values, order = torch.sort(left.diagonal(dim1=-2, dim2=-1), -1)
    return values, right.gather(-1, order.unsqueeze(-2).expand(right.shape))


def svd(A):
    """(U, singular values from the largest on, V) of m x n elements, with as many columns as the smaller of both."""
    m, n, matrices = _checked(A, "svd()")
    if m < n:
        u, s, v = svd(A.mT)
        return v, s, u
    if n > _MOST_TURNED or m > _MOST:
        from torch import _large_factors
        u, s, v = _large_factors.svd(A)
        return u, s.to(A.dtype), _unit_columns(v, s).to(A.dtype)
    left = A.contiguous().clone()
    right = torch.zeros(list(A.shape[:-2]) + [n, n], dtype=A.dtype, device=A.device)
    if matrices and n:
        _svd_kernel[(matrices,)](left, right, m, n, torch.finfo(A.dtype).eps, M=_wide(m), N=_wide(n))
    s, order = torch.sort(left.square().sum(-2).sqrt(), -1, descending=True)
    left = left.gather(-1, order.unsqueeze(-2).expand(left.shape))
    return _unit_columns(left, s), s, right.gather(-1, order.unsqueeze(-2).expand(right.shape))


def _unit_columns(x, lengths):
    """Orthogonal columns divided by their lengths; those of no length are completed to an orthonormal basis."""
    m, n = x.shape[-2:]
    kept = (lengths > lengths[..., :1] * (torch.finfo(x.dtype).eps * max(m, 1))).unsqueeze(-2)
    u = torch.where(kept, x / torch.where(kept, lengths.unsqueeze(-2), 1.0), 0.0)
    return torch.where(kept, u, qr(u, n)[0])
