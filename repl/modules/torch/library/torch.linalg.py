"""torch.linalg: norms, products, and small matrices solved."""
import torch
from torch import _kiln, _tensor
from torch._special import cross as _cross

_lazily = _kiln.lazily


class LinAlgError(RuntimeError):
    """Of a matrix that cannot be inverted or factorised."""


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
    if A.ndim < 2 or not A.is_floating_point():
        raise RuntimeError(f"matrix_norm() of {A.dtype} {tuple(A.shape)}: it takes matrices of floats")
    rows, columns = _tensor._dims(dim, A.ndim)
    if ord == "fro":
        return A.norm(2, [rows, columns], keepdim, dtype=dtype)
    if isinstance(ord, str) or abs(ord) not in (1, float("inf")):
        raise NotImplementedError(f"matrix_norm({ord!r}) is not supported: it is 'fro', 1, -1, inf or -inf")
    x = _tensor._wide(A if dtype is None else A.to(dtype)).abs()
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


def matrix_power(A, n):
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or not A.is_floating_point():
        raise RuntimeError(f"matrix_power() of {A.dtype} {tuple(A.shape)}: it takes square matrices of floats")
    if n < 0:
        raise NotImplementedError("matrix_power() of a negative power is not supported")
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


def cross(input, other, *, dim=-1):
    if input.ndim != other.ndim:
        raise RuntimeError("cross() takes tensors of as many dimensions")
    return _cross(input, other, dim)


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


# Gradients of det, solve and cholesky: Giles, 2008, "Collected matrix derivative results for forward and reverse mode
# algorithmic differentiation". They are made of the functions themselves, so that they have gradients too.


def det(A):
    from torch import _small_matrices
    value = _small_matrices.eliminated(A.detach(), None, "det()")[1]
    return _ruled(value, lambda g, A: ((g * det(A))[..., None, None] * inv(A).mT, ), A)


def slogdet(A):
    d = det(A)
    return d.sign(), d.abs().log()


def solve(A, B, *, left=True):
    from torch import _small_matrices
    if not left:
        return solve(A.mT, B.mT).mT
    vector = B.ndim == 1 or A.ndim - 1 == B.ndim and B.shape == A.shape[:-1]
    b = B.unsqueeze(-1) if vector else B
    if A.dtype != B.dtype or A.ndim < 2 or b.shape[-2] != A.shape[-1]:
        raise RuntimeError(f"solve() of {A.dtype} {tuple(A.shape)} and {B.dtype} {tuple(B.shape)}")
    lead = list(torch.broadcast_shapes(A.shape[:-2], b.shape[:-2]))
    A, b = A.expand(lead + list(A.shape[-2:])), b.expand(lead + list(b.shape[-2:]))
    x, dets = _small_matrices.eliminated(A.detach(), b.detach(), "solve()")
    if not A.is_cuda and bool((dets == 0).any()):  # what a GPU holds is not looked at
        raise LinAlgError("solve(): the matrix is singular")
    x = _ruled(x, _solve_rule, A, b)
    return x.squeeze(-1) if vector else x


def _solve_rule(g, A, b):
    back = solve(A.mT, g)
    return -(back @ solve(A, b).mT), back


def inv(A):
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"inv() of {tuple(A.shape)}: it takes square matrices")
    return solve(A, torch.eye(A.shape[-1], dtype=A.dtype, device=A.device))


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
