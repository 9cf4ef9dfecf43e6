"""torch.linalg: norms, products, and small matrices solved."""
import functools
import math

import torch
from torch import _kiln, _tensor, return_types
from torch._special import cross as _cross

_lazily = _kiln.lazily


class LinAlgError(RuntimeError):
    """Of a matrix that cannot be inverted or factorised."""


def _for_complex(function):
    """A function that torch._complex has for complex matrices."""
    name = function.__name__

    @functools.wraps(function)
    def called(*args, **kwargs):
        if any(isinstance(x, torch.Tensor) and x.is_complex() for x in args + tuple(kwargs.values())):
            from torch import _complex
            return getattr(_complex, name)(*args, **kwargs)
        return function(*args, **kwargs)

    return called


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    pair = isinstance(dim, (tuple, list)) and len(dim) == 2
    if ord is not None and (pair or dim is None and A.ndim == 2):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if ord is not None and dim is None and A.ndim > 2:
        raise RuntimeError("norm() of more than two dimensions takes dim= beside ord=")
    return A.norm("fro" if ord is None else ord, dim, keepdim, dtype=dtype)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return x.norm(ord, dim, keepdim, dtype=dtype)


@_lazily
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    if A.is_complex() and dtype is None:
        if ord in ("nuc", 2, -2):
            S = svdvals(A.movedim(tuple(dim), (-2, -1)))
            out = S.sum(-1) if ord == "nuc" else S[..., 0 if ord > 0 else -1]
            for d in sorted(_tensor._dims(dim, A.ndim)) if keepdim else ():
                out = out.unsqueeze(d)
            return out
        return matrix_norm(A.abs(), ord, dim, keepdim)
    if A.ndim < 2 or not A.is_floating_point():
        raise RuntimeError(f"matrix_norm() of {A.dtype} {tuple(A.shape)}: it takes matrices of floats")
    rows, columns = _tensor._dims(dim, A.ndim)
    if ord == "fro":
        return A.norm(2, [rows, columns], keepdim, dtype=dtype)
    if ord != "nuc" and (isinstance(ord, str) or abs(ord) not in (1, 2, float("inf"))):
        raise RuntimeError(f"matrix_norm({ord!r}): it is 'fro', 'nuc', or one of 1, 2, inf and their negatives")
    A = A if dtype is None else A.to(dtype)
    if ord == "nuc" or abs(ord) == 2:
        S = svdvals(_tensor.movedim(A, (rows, columns), (-2, -1)))
        out = S.sum(-1) if ord == "nuc" else S[..., 0 if ord > 0 else -1]
        for d in sorted((rows, columns)) if keepdim else ():
            out = out.unsqueeze(d)
        return out
    x = _tensor._wide(A).abs()
    first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = x.sum(first, True)
    out = sums.amax(second, True) if ord > 0 else sums.amin(second, True)
    if not keepdim:
        out = out.reshape([n for d, n in enumerate(A.shape) if d not in (rows, columns)])
    return out.to(dtype or A.dtype)


def matmul(input, other):
    return input @ other


def multi_dot(tensors):
    """Multiplied in the order that takes the fewest operations; the first and the last may be vectors."""
    if len(tensors) < 2:
        raise RuntimeError("multi_dot() takes two tensors or more")
    first, last = tensors[0].ndim == 1, tensors[-1].ndim == 1
    parts = list(tensors)
    parts[0] = parts[0].unsqueeze(0) if first else parts[0]
    parts[-1] = parts[-1].unsqueeze(1) if last else parts[-1]
    if any(t.ndim != 2 for t in parts) or any(a.shape[1] != b.shape[0] for a, b in zip(parts, parts[1:])):
        raise RuntimeError(f"multi_dot() of {[tuple(t.shape) for t in tensors]}")
    n, sizes = len(parts), [parts[0].shape[0]] + [t.shape[1] for t in parts]
    cost, where = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], where[i, j] = min((cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                                          for k in range(i, j))

    def product(i, j):
        return parts[i] if i == j else product(i, where[i, j]) @ product(where[i, j] + 1, j)

    shape = ([] if first else [sizes[0]]) + ([] if last else [sizes[-1]])
    return product(0, n - 1).reshape(shape)


@_for_complex
def matrix_power(A, n):
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or A.dtype is torch.bool:
        raise RuntimeError(f"matrix_power() of {A.dtype} {tuple(A.shape)}: it takes square matrices of numbers")
    if n < 0:
        return matrix_power(inv(A), -n)
    if n == 0:
        return torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape).contiguous()
    if n == 1:
        return A.clone()
    out, square = None, A
    while n > 0:
        if n % 2:
            out = square if out is None else out @ square
        n //= 2
        square = square @ square if n else square
    return out


@_for_complex
def cross(input, other, *, dim=-1):
    if input.ndim != other.ndim:
        raise RuntimeError("cross() takes tensors of as many dimensions")
    d = _tensor._dim(dim, input.ndim)
    if input.ndim == 0 or input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3, got {tuple(input.shape)} and "
                           f"{tuple(other.shape)}")
    return _cross(input, other, dim)


@_for_complex
@_lazily
def vecdot(x, y, *, dim=-1):
    if not x.is_floating_point() or x.dtype != y.dtype:
        raise RuntimeError(f"vecdot() takes floats of one dtype, got {x.dtype} and {y.dtype}")
    a, b = torch.broadcast_tensors(_tensor._wide(x), _tensor._wide(y))
    return (a * b).sum(dim).to(x.dtype)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    return torch.diagonal(A, offset, dim1, dim2)


# --- small matrices


def _ruled(value, rule, *operands):
    """A value that kernels made of the operands' elements, with a rule for its gradient: rule(gradient, *operands)."""
    if _kiln.is_no_grad() or not _kiln.records(*operands):
        return value
    return _kiln.with_gradient(value, operands, rule)


def _summed_to(g, shape):
    """The gradient of a tensor that was broadcast."""
    return g if g.shape == shape else g.sum_to_size(shape)


# Gradients of det, solve and cholesky: Giles, 2008, "Collected matrix derivative results for forward and reverse mode
# algorithmic differentiation". They are made of the functions themselves, so that they have gradients too.


@_for_complex
def det(A):
    from torch import _small_matrices
    value = _small_matrices.eliminated(A.detach(), None, "det()")[1]
    return _ruled(value, lambda g, A: ((g * det(A))[..., None, None] * inv(A).mT, ), A)


@_for_complex
def slogdet(A):
    """(sign, logarithm of the absolute value) of determinants, which themselves may be too large or small for floats."""
    from torch import _large_matrices, _small_matrices
    _small_matrices.checked(A, "slogdet()")
    factors, pivots, _ = _large_matrices.lu(A.detach())
    logs = factors.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)
    logs = _ruled(logs, lambda g, A: (g[..., None, None] * inv(A).mT, ), A)
    return return_types.linalg_slogdet((_large_matrices.sign(factors, pivots), logs))


@_for_complex
def solve(A, B, *, left=True):
    return _solved(A, B, left, True, B.ndim == 1 or A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def _solved(A, B, left, checks, vector=False):
    from torch import _small_matrices
    if not left:
        return _solved(A.mT, B.mT, True, checks).mT
    b = B.unsqueeze(-1) if vector else B
    if A.dtype != B.dtype or A.ndim < 2 or b.shape[-2] != A.shape[-1]:
        raise RuntimeError(f"solve() of {A.dtype} {tuple(A.shape)} and {B.dtype} {tuple(B.shape)}")
    lead = list(torch.broadcast_shapes(A.shape[:-2], b.shape[:-2]))
    A, b = A.expand(lead + list(A.shape[-2:])), b.expand(lead + list(b.shape[-2:]))
    x, dets = _small_matrices.eliminated(A.detach(), b.detach(), "solve()")
    if checks and not A.is_cuda and bool((dets == 0).any()):  # what a GPU holds is not looked at
        raise LinAlgError("solve(): the matrix is singular")
    x = _ruled(x, _solve_rule, A, b)
    return x.squeeze(-1) if vector else x


def _solve_rule(g, A, b):
    back = solve(A.mT, g)
    return -(back @ solve(A, b).mT), back


@_for_complex
def inv(A):
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"inv() of {tuple(A.shape)}: it takes square matrices")
    return _solved(A, torch.eye(A.shape[-1], dtype=A.dtype, device=A.device), True, True)


@_for_complex
def cholesky(A, *, upper=False):
    from torch import _small_matrices
    out = _ruled(_small_matrices.cholesky(A.detach()), _cholesky_rule, A)
    return out.mT if upper else out


def _cholesky_rule(g, A):
    L = cholesky(A)
    inner = (L.mT @ g).tril()
    inner = inner - 0.5 * torch.diag_embed(torch.diagonal(inner, 0, -2, -1))
    half = solve(L.mT, solve(L.mT, inner.mT).mT)  # L^-T · inner · L^-1
    return (0.5 * (half + half.mT), )


# --- factors. Their gradients are those of unique factors: columns of equal values have none.




def _skew(X):
    return X - X.mT


def _between(x):
    """1 / (x[j] - x[i]), and 0 on the diagonal."""
    apart = x.unsqueeze(-2) - x.unsqueeze(-1)
    same = torch.eye(x.shape[-1], dtype=torch.bool, device=x.device)
    return torch.where(same, 0.0, 1 / torch.where(same, 1.0, apart))


def qr(A, mode="reduced"):
    """(Q, R) with A = Q R: Q has orthonormal columns, R is upper triangular."""
    from torch import _factors
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")
    m, n = A.shape[-2:]
    Q, R = _factors.qr(A.detach(), m if mode == "complete" else min(m, n))
    if mode == "r":
        Q = Q.new_empty(0)
    if mode != "reduced" or m < n:
        if _kiln.records(A) and not _kiln.is_no_grad():
            raise NotImplementedError("qr() has a gradient of matrices with as many rows as columns or more, with "
                                      "mode='reduced'")
        return return_types.linalg_qr((Q, R))

    def back(Q, R, of_q, of_r):
        M = of_q.mT @ Q if of_r is None else R @ of_r.mT
        M = -M if of_r is None else M
        M = M.tril() + M.tril(-1).mT
        right = Q @ M if of_q is None else of_q + Q @ M
        return solve(R, right.mT).mT

    return return_types.linalg_qr((_ruled(Q, lambda g, A: (back(*qr(A), g, None), ), A),
                                   _ruled(R, lambda g, A: (back(*qr(A), None, g), ), A)))


def eigh(A, UPLO="L"):
    """(eigenvalues from the least on, eigenvectors as columns) of symmetric matrices."""
    from torch import _factors
    if UPLO not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    values, vectors = _factors.eigh((A if UPLO == "L" else A.mT).detach())

    def of_values(g, A):
        V = eigh(A, UPLO)[1]
        return (V * g.unsqueeze(-2)) @ V.mT,

    def of_vectors(g, A):
        L, V = eigh(A, UPLO)
        return V @ ((V.mT @ g) * _between(L)) @ V.mT,

    return return_types.linalg_eigh((_ruled(values, of_values, A), _ruled(vectors, of_vectors, A)))


@_for_complex
def eigvalsh(A, UPLO="L"):
    return eigh(A, UPLO)[0]


def eig(A):
    """(eigenvalues, eigenvectors as columns) of square matrices: complex, in no order. Computed on the host."""
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or not (A.is_complex() or A.dtype in (torch.float32, torch.float64)):
        raise RuntimeError(f"eig() of {A.dtype} {tuple(A.shape)}: it takes square matrices of float32, float64 or "
                           "complex numbers")
    parts = (A.real, A.imag) if A.is_complex() else (A, )
    if _kiln.records(*parts) and not _kiln.is_no_grad():
        raise NotImplementedError("eig() has no gradient: detach() the matrix")
    to = parts[0].dtype
    re, im, of_re, of_im = [x.to(to) for x in _kiln.eigen(*parts)]
    return return_types.linalg_eig((torch.complex(re, im), torch.complex(of_re, of_im)))


def eigvals(A):
    return eig(A)[0]


def _thin_svd(A):
    from torch import _factors
    U, S, V = _factors.svd(A.detach())

    def of_s(g, A):
        U, S, V = _thin_svd(A)
        return (U * g.unsqueeze(-2)) @ V.mT,

    def of_u(g, A):
        U, S, V = _thin_svd(A)
        inner = (_skew(U.mT @ g) * _between(S.square())) * S.unsqueeze(-2)
        rest = g - U @ (U.mT @ g)
        return (U @ inner + rest / S.unsqueeze(-2)) @ V.mT,

    def of_v(g, A):
        U, S, V = _thin_svd(A)
        inner = S.unsqueeze(-1) * (_skew(V.mT @ g) * _between(S.square()))
        rest = g - V @ (V.mT @ g)
        return U @ (inner @ V.mT + (rest / S.unsqueeze(-2)).mT),

    return _ruled(U, of_u, A), _ruled(S, of_s, A), _ruled(V, of_v, A)


def svd(A, full_matrices=True):
    """(U, S, Vh) with A = U diag(S) Vh: singular values from the largest on."""
    from torch import _factors
    U, S, V = _thin_svd(A)
    m, n = A.shape[-2:]
    if full_matrices and m != n:
        wide = U if m > n else V
        whole = torch.cat([wide, _factors.qr(wide.detach(), max(m, n))[0][..., min(m, n):]], -1)
        U, V = (whole, V) if m > n else (U, whole)
    return return_types.linalg_svd((U, S, V.mT))


@_for_complex
def svdvals(A):
    return _thin_svd(A)[1]


def _each(bound):
    """A tolerance beside singular values: a tensor is one for each matrix."""
    return bound.unsqueeze(-1) if isinstance(bound, torch.Tensor) else bound


def _significant(S, shape, atol, rtol):
    """Which singular values count."""
    least = S[..., :1] * (max(shape[-2:]) * torch.finfo(S.dtype).eps if rtol is None else _each(rtol))
    if atol is None:
        return S > least
    return S > torch.maximum(least, torch.zeros_like(least) + _each(atol))


def _parts(A, hermitian):
    """U, S and V of A = U diag(S) Vᵀ: of symmetric matrices by their eigenvalues, of the lower triangle."""
    if not hermitian:
        return _thin_svd(A)
    values, vectors = eigh(A)
    S, order = values.abs().sort(dim=-1, descending=True)
    V = vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape))
    return V * values.gather(-1, order).sgn().unsqueeze(-2), S, V


@_for_complex
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """Moore's and Penrose's inverse."""
    rtol = rcond if rtol is None else rtol
    U, S, V = _parts(A, hermitian)
    kept = _significant(S.detach(), A.shape, atol, 0.0 if rtol is None and atol is not None else rtol)
    inverse = torch.where(kept, 1 / torch.where(kept, S, 1.0), 0.0)
    return (V * inverse.unsqueeze(-2)) @ U.mT


def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    if tol is not None:  # the older way to say atol
        atol, rtol = tol, 0.0
    S = _parts(A.detach(), hermitian)[1]
    return _significant(S, A.shape, atol, 0.0 if rtol is None and atol is not None else rtol).sum(-1)


def cond(A, p=None):
    """The largest singular value over the least, or the norm of A times that of its inverse."""
    if p not in (None, 2, -2):
        return matrix_norm(A, p) * matrix_norm(inv(A), p)
    S = svdvals(A)
    return S[..., 0] / S[..., -1] if p != -2 else S[..., -1] / S[..., 0]


def lstsq(A, B, rcond=None, *, driver=None):
    """The X for which A X is nearest to B, of least norm where there are several."""
    if A.ndim < 2 or B.ndim != A.ndim or A.shape[-2] != B.shape[-2]:
        raise RuntimeError(f"lstsq() of {tuple(A.shape)} and {tuple(B.shape)}")
    X = pinv(A, rtol=rcond) @ B
    m, n = A.shape[-2:]
    full = m > n
    residuals = (A @ X - B).square().sum(-2) if full else A.new_empty(0)
    values = svdvals(A.detach()) if driver in ("gelss", "gelsd") else A.new_empty(0)
    return return_types.linalg_lstsq((X, residuals, matrix_rank(A, rtol=rcond), values))


# --- triangles


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """The X with A X = B, or X A = B where not `left`: the other triangle of A is not read."""
    from torch import _triangles
    if A.ndim < 2 or B.ndim < 2 or A.shape[-1] != A.shape[-2] or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"solve_triangular() of {A.dtype} {tuple(A.shape)} and {tuple(B.shape)}: it takes square "
                           "matrices of float32 or float64 and a matrix")
    if A.dtype != B.dtype:
        raise RuntimeError(f"linalg.solve_triangular: Expected A and B to have the same dtype, got {A.dtype} and "
                           f"{B.dtype}")
    if not left:
        return solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    if A.shape[-1] != B.shape[-2]:
        raise RuntimeError(f"linalg.solve_triangular: Incompatible shapes of A and B for the equation AX = B "
                           f"({A.shape[-1]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})")
    lead = list(torch.broadcast_shapes(A.shape[:-2], B.shape[:-2]))
    A, B = A.expand(lead + list(A.shape[-2:])), B.expand(lead + list(B.shape[-2:]))

    def rule(g, A, B):
        back = solve_triangular(A.mT, g, upper=not upper, unitriangular=unitriangular)
        of_a = -(back @ solve_triangular(A, B, upper=upper, unitriangular=unitriangular).mT)
        own = 1 if unitriangular else 0
        return of_a.triu(own) if upper else of_a.tril(-own), back

    return _ruled(_triangles.substituted(A.detach(), B.detach(), bool(upper), bool(unitriangular)), rule, A, B)


def _lower(LU, m, k):
    """The unit lower triangle of factors in one matrix."""
    return LU[..., :k].tril(-1) + torch.eye(m, k, dtype=LU.dtype, device=LU.device)


def _permuted(pivots, m, dtype):
    """The P of A = P L U."""
    from torch import _triangles
    order = _triangles.permutation(pivots, m)
    return (order.unsqueeze(-2) == torch.arange(m, device=order.device).unsqueeze(-1)).to(dtype)


def lu_factor_ex(A, *, pivot=True, check_errors=False):
    from torch import _triangles
    if not pivot:
        raise NotImplementedError("lu_factor(pivot=False) is not supported: rows are exchanged")
    LU, pivots, info = _triangles.lu(A.detach())
    m, n = A.shape[-2:]

    def rule(g, A):
        if m != n:
            raise NotImplementedError("lu_factor() has a gradient of square matrices alone")
        LU = lu_factor_ex(A).LU
        L, U = _lower(LU, n, n), LU.triu()
        inner = (L.mT @ g.tril(-1)).tril(-1) + (g.triu() @ U.mT).triu()
        inner = solve_triangular(L.mT, inner, upper=True, unitriangular=True)
        return _permuted(pivots, n, A.dtype) @ solve_triangular(U.mT, inner, upper=False, left=False),

    if check_errors:
        _check_pivots(info, "lu_factor_ex")
    return return_types.linalg_lu_factor_ex((_ruled(LU, rule, A), pivots, info))


def _check_pivots(info, what):
    if not info.is_cuda and bool((info != 0).any()):  # what a GPU holds is not looked at
        k = int(info.max())
        raise RuntimeError(f"torch.linalg.{what}: U[{k},{k}] is zero and using it on lu_solve would result in a "
                           "division by zero. If you still want to perform the factorization, consider calling "
                           "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")


def lu_factor(A, *, pivot=True):
    LU, pivots, info = lu_factor_ex(A, pivot=pivot)
    _check_pivots(info, "lu_factor")
    return return_types.linalg_lu_factor((LU, pivots))


def _unpacked(LU, pivots):
    m, n = LU.shape[-2:]
    k = min(m, n)
    return return_types.linalg_lu((_permuted(pivots, m, LU.dtype), _lower(LU, m, k), LU[..., :k, :].triu()))


def lu(A, *, pivot=True):
    """(P, L, U) with A = P L U."""
    LU, pivots, _ = lu_factor_ex(A, pivot=pivot)
    return _unpacked(LU, pivots)


def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """The X with A X = B of the A that lu_factor() got; of its transpose where `adjoint`."""
    if LU.ndim < 2 or LU.shape[-1] != LU.shape[-2] or B.ndim < 2:
        raise RuntimeError(f"lu_solve() of {tuple(LU.shape)} and {tuple(B.shape)}: it takes factors of square matrices "
                           "and a matrix")
    if not left:
        return lu_solve(LU, pivots, B.mT, adjoint=not adjoint).mT
    P = _permuted(pivots, LU.shape[-1], LU.dtype)
    if adjoint:
        y = solve_triangular(LU.mT, solve_triangular(LU.mT, B, upper=False), upper=True, unitriangular=True)
        return P @ y
    return solve_triangular(LU, solve_triangular(LU, P.mT @ B, upper=False, unitriangular=True), upper=True)


def cholesky_ex(A, *, upper=False, check_errors=False):
    """Without an error for a matrix that is not positive-definite: `info` has the order of the minor that is not."""
    from torch import _small_matrices
    if check_errors:
        L = cholesky(A, upper=upper)
        return return_types.linalg_cholesky_ex((L, torch.zeros(A.shape[:-2], dtype=torch.int32, device=A.device)))
    L = _ruled(_small_matrices.factor(A.detach())[0], _cholesky_rule, A)
    n = A.shape[-1]
    # The first root that is none: what follows it is NaN too.
    wrong = torch.diagonal(L.detach(), 0, -2, -1).isnan().sum(-1)
    info = torch.where(wrong > 0, n + 1 - wrong, 0).to(torch.int32)
    return return_types.linalg_cholesky_ex((L.mT if upper else L, info))


def inv_ex(A, *, check_errors=False):
    info = _singular(A, check_errors)
    result = _solved(A, torch.eye(A.shape[-1], dtype=A.dtype, device=A.device), True, False)
    return return_types.linalg_inv_ex((result, info))


def _singular(A, check_errors):
    info = lu_factor_ex(A.detach()).info
    if check_errors and not A.is_cuda and bool((info != 0).any()):
        raise LinAlgError("torch.linalg.solve: The solver failed because the input matrix is singular.")
    return info


def solve_ex(A, B, *, left=True, check_errors=False):
    """Without an error for a singular matrix: `info` has the first pivot that is 0."""
    info = _singular(A, check_errors)
    vector = B.ndim == 1 or A.ndim - 1 == B.ndim and B.shape == A.shape[:-1]
    return return_types.linalg_solve_ex((_solved(A, B, left, False, vector), info))


@_for_complex
def matrix_exp(A):
    from torch import _triangles

    def rule(g, A):
        if _kiln.count_scopes(g, A) > 1:
            raise NotImplementedError("matrix_exp() has no gradient of its gradient")
        return _triangles.exponential(A.detach().mT, g.detach()),

    return _ruled(_triangles.exponential(A.detach()), rule, A)


@_lazily
def _reflected(A, tau, columns):
    m, k = A.shape[-2], tau.shape[-1]
    Q = torch.eye(m, columns, dtype=A.dtype, device=A.device).expand(list(A.shape[:-2]) + [m, columns])
    row = torch.arange(m, device=A.device)
    for i in reversed(range(k)):
        v = torch.where(row == i, 1.0, torch.where(row > i, A[..., i], 0.0)).to(A.dtype).unsqueeze(-1)
        Q = Q - tau[..., i, None, None] * v * (v * Q).sum(-2, True)
    return Q


def householder_product(A, tau):
    """The first columns of the product of reflections, whose vectors are below the diagonal of A."""
    if A.ndim < 2 or A.shape[-2] < A.shape[-1] or tau.shape[-1] > A.shape[-1] or tau.shape[:-1] != A.shape[:-2]:
        raise RuntimeError(f"householder_product() of {tuple(A.shape)} and {tuple(tau.shape)}: it takes matrices with "
                           "as many rows as columns or more, and a number for each of the first columns")
    return _reflected(A, tau, A.shape[-1])


@_lazily
def vander(x, N=None):
    """Powers of the elements, from 0 on, as columns."""
    if N is not None and N <= 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1, got {N}")
    x = x.reshape(1) if x.ndim == 0 else x
    count = x.shape[-1] if N is None else N
    if x.is_complex():
        return torch.cat([torch.ones_like(x).unsqueeze(-1), x.unsqueeze(-1).expand(list(x.shape) + [count - 1])],
                         -1).cumprod(-1)
    x = x.long() if x.dtype is torch.bool or not x.is_floating_point() else x
    return x.unsqueeze(-1) ** torch.arange(count, dtype=x.dtype, device=x.device)


def tensorinv(A, ind=2):
    """The inverse of A as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    rows, columns = list(A.shape[:ind]), list(A.shape[ind:])
    n = math.prod(rows)
    if n != math.prod(columns):
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]),"
                           f" but got {math.prod(columns)} != {n}")
    return inv(A.reshape(n, n)).reshape(columns + rows)


def tensorsolve(A, B, dims=None):
    """The X for which tensordot(A, X, X.ndim) is B."""
    if dims is not None:
        A = torch.movedim(A, list(dims), list(range(A.ndim - len(dims), A.ndim)))
    shape = list(A.shape[B.ndim:])
    n = B.numel()
    if math.prod(shape) != n:
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {n}")
    return solve(A.reshape(n, n), B.reshape(n)).reshape(shape)
