"""Functions of matrices that are methods too, by the names that torch has beside torch.linalg's."""
import torch
from torch import _kiln

lazily = _kiln.lazily


def cholesky(input, upper=False):
    return torch.linalg.cholesky(input, upper=upper)


def cholesky_solve(input, input2, upper=False):
    """The X with A X = input, of the factor of A."""
    if input.ndim < 2 or input2.ndim < 2:
        raise RuntimeError(f"cholesky_solve() takes matrices, got {input.ndim} and {input2.ndim} dimensions")
    if upper:
        return cholesky_solve(input, input2.mT)
    linalg = torch.linalg
    B, L = input.detach(), input2.detach()
    X = linalg.solve_triangular(L.mT, linalg.solve_triangular(L, B, upper=False), upper=True)

    def rule(g, B, L):
        # Of A = L Lᵀ, whose gradient is of all of L, as PyTorch's is.
        of_b = cholesky_solve(g, L)
        both = of_b @ cholesky_solve(B, L).mT
        both = (both + both.mT) @ L
        return linalg._summed_to(of_b, B.shape), linalg._summed_to(-both, L.shape)

    return linalg._ruled(X, rule, input, input2)


def cholesky_inverse(input, upper=False):
    n = input.shape[-1]
    return cholesky_solve(torch.eye(n, dtype=input.dtype, device=input.device), input, upper)


def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False):
    X = torch.linalg.solve_triangular(A.mT if transpose else A, input, upper=upper != transpose,
                                      unitriangular=unitriangular)
    return torch.return_types.triangular_solve((X, A.clone()))


def lu(A, pivot=True, get_infos=False):
    LU, pivots, info = torch.linalg.lu_factor_ex(A, pivot=pivot)
    return (LU, pivots, info) if get_infos else (LU, pivots)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    P, L, U = torch.linalg._unpacked(LU_data, LU_pivots)
    none = LU_data.new_empty(0)
    return torch.return_types.lu_unpack((P if unpack_pivots else none, L if unpack_data else none,
                                         U if unpack_data else none))


def lu_solve(input, LU_data, LU_pivots):
    return torch.linalg.lu_solve(LU_data, LU_pivots, input)


def matrix_exp(input):
    return torch.linalg.matrix_exp(input)


def matrix_power(input, n):
    return torch.linalg.matrix_power(input, n)


def orgqr(input, input2):
    return torch.linalg.householder_product(input, input2)


def ormqr(input, input2, input3, left=True, transpose=False):
    """The product of a matrix with the orthogonal one that reflections make."""
    m = input.shape[-2]
    Q = torch.linalg._reflected(input, input2, m)
    Q = Q.mT if transpose else Q
    return Q @ input3 if left else input3 @ Q


def pinverse(input, rcond=1e-15):
    return torch.linalg.pinv(input, rtol=rcond)


def qr(input, some=True):
    return torch.linalg.qr(input, "reduced" if some else "complete")


def slogdet(input):
    return torch.linalg.slogdet(input)


def svd(input, some=True, compute_uv=True):
    if not compute_uv:
        m, n = input.shape[-2:]
        lead = list(input.shape[:-2])
        U, V = input.new_zeros(lead + [m, m]), input.new_zeros(lead + [n, n])
        return torch.return_types.svd((U, torch.linalg.svdvals(input), V))
    U, S, Vh = torch.linalg.svd(input, full_matrices=not some)
    return torch.return_types.svd((U, S, Vh.mT))
