"""torch.linalg: norms."""


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    if ord is not None and dim is None and A.ndim == 2 and ord != "fro":
        raise NotImplementedError("norms of matrices other than 'fro' are not supported")
    return A.norm("fro" if ord is None else ord, dim, keepdim, dtype=dtype)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return x.norm(ord, dim, keepdim, dtype=dtype)


def matmul(input, other):
    return input @ other
