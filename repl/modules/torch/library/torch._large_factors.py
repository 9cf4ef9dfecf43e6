"""Orthogonal factors of matrices of any size: Householder's QR by blocks of columns, and Jacobi's methods by rounds of
rotations that do not meet.

References: Golub and Van Loan, "Matrix Computations", 4th edition, 5.2.3 (QR by blocks), 5.1.7 (the form I - V T V^T of
several reflections), 8.6.3 (one-sided Jacobi), 8.5.5 (the order of a parallel sweep).
"""
import torch
import triton
import triton.language as tl
from torch._factors import _rotation
from torch._large_matrices import _PANEL, _PANEL_ROWS, _PANEL_WARPS, _flat, _update


@triton.jit
def _qr_panel_kernel(a, taus, m, n, k, ROWS: tl.constexpr, W: tl.constexpr):
    """Reflections that make the columns from k on upper triangular; their vectors, whose first element is 1, stay
    below the diagonal. The diagonal has LAPACK's signs."""
    matrix = tl.program_id(0).to(tl.int64)
    a, taus = a + matrix * m * n, taus + matrix * n
    end = min(min(k + W, n), m)
    columns = k + tl.arange(0, W)
    inside = columns < min(k + W, n)
    slots = tl.arange(0, ROWS)
    for j in range(k, end):
        first = tl.load(a + j.to(tl.int64) * n + j)
        squares = tl.zeros((ROWS,), a.dtype.element_ty)
        for start in range(j + 1, m, ROWS):
            r = start + slots
            x = tl.load(a + r.to(tl.int64) * n + j, mask=r < m, other=0)
            squares += x * x
        below = tl.sum(squares, 0)
        norm = tl.sqrt_rn(first * first + below)
        diagonal = tl.where(first < 0, norm, -norm)
        flat = below == 0  # nothing to reflect
        scale = 1 / tl.where(flat, 1, first - diagonal).to(first.dtype)
        tau = tl.where(flat, 0, (diagonal - first) / tl.where(flat, 1, diagonal)).to(first.dtype)
        # What the vector and each later column make, with the vector's first element apart.
        products = tl.zeros((ROWS, W), a.dtype.element_ty)
        for start in range(j + 1, m, ROWS):
            r = start + slots
            at, mask = a + r.to(tl.int64)[:, None] * n + columns[None, :], (r < m)[:, None] & inside[None, :]
            block = tl.load(at, mask=mask, other=0)
            x = tl.sum(tl.where(columns[None, :] == j, block, 0), 1) * scale
            products += x[:, None] * block
        head = a + j.to(tl.int64) * n + columns
        row = tl.load(head, mask=inside, other=0)
        along = tau * (row + tl.sum(products, 0))
        tl.debug_barrier()
        for start in range(j + 1, m, ROWS):
            r = start + slots
            at, mask = a + r.to(tl.int64)[:, None] * n + columns[None, :], (r < m)[:, None] & inside[None, :]
            block = tl.load(at, mask=mask, other=0)
            x = tl.sum(tl.where(columns[None, :] == j, block, 0), 1) * scale
            block = tl.where(columns[None, :] > j, block - x[:, None] * along[None, :], block)
            tl.store(at, tl.where(columns[None, :] == j, x[:, None], block), mask=mask)
        row = tl.where(columns > j, row - along, row)
        tl.store(head, tl.where(columns == j, tl.where(flat, first, diagonal), row), mask=inside)
        tl.store(taus + j, tau)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["size"])
def _basis_kernel(a, taus, v, t, m, n, k, size, ROWS: tl.constexpr, W: tl.constexpr):
    """The vectors of a panel with their ones and zeros, and the triangle T of I - V T V^T."""
    matrix = tl.program_id(0).to(tl.int64)
    a, v, t = a + matrix * m * n, v + matrix * m * W, t + matrix * W * W
    c, rows, columns = tl.arange(0, W), tl.arange(0, W)[:, None], tl.arange(0, W)[None, :]
    met = tl.zeros((W, W), a.dtype.element_ty)
    for start in range(k, m, ROWS):
        r = (start + tl.arange(0, ROWS))[:, None]
        mask = (r < m) & (r > k + columns) & (columns < size)
        block = tl.load(a + r.to(tl.int64) * n + k + columns, mask=mask, other=0)
        block = tl.where((r == k + columns) & (columns < size), 1, block).to(a.dtype.element_ty)
        tl.store(v + r.to(tl.int64) * W + columns, block, mask=r < m)
        met += tl.dot(tl.trans(block), block, input_precision="ieee")
    made = tl.zeros((W, W), a.dtype.element_ty)
    for j in range(0, size):
        tau = tl.load(taus + matrix * n + k + j)
        with_j = tl.sum(tl.where(columns == j, met, 0), 1)
        column = -tau * tl.sum(made * tl.where(c < j, with_j, 0)[None, :], 1)
        column = tl.where(c == j, tau, tl.where(c < j, column, 0))
        made = tl.where(columns == j, column[:, None], made)
    tl.store(t + rows * W + columns, made)


@triton.jit(do_not_specialize=["m", "end"])
def _project_kernel(v, t, c, z, m, k, end, c_matrix, c_row, TRANSPOSED: tl.constexpr, ROWS: tl.constexpr,
                    W: tl.constexpr, COLUMNS: tl.constexpr):
    """T V^T C, or T^T V^T C, of the rows of C from k on: what times V is taken from C then."""
    matrix = tl.program_id(0).to(tl.int64)
    inner = tl.arange(0, W)
    columns = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    v += matrix * m * W
    c += matrix * c_matrix
    along = tl.zeros((W, COLUMNS), v.dtype.element_ty)
    for start in range(k, m, ROWS):
        r = start + tl.arange(0, ROWS)
        left = tl.load(v + r.to(tl.int64)[None, :] * W + inner[:, None], mask=(r < m)[None, :], other=0)
        right = tl.load(c + r.to(tl.int64)[:, None] * c_row + columns, mask=(r < m)[:, None] & (columns < end), other=0)
        along += tl.dot(left, right, input_precision="ieee")
    at = inner[None, :] * W + inner[:, None] if TRANSPOSED else inner[:, None] * W + inner[None, :]
    along = tl.dot(tl.load(t + matrix * W * W + at), along, input_precision="ieee")
    tl.store(z + matrix * W * end + inner[:, None] * end + columns, along, mask=columns < end)


def _reflect(v, t, c, k, transposed):
    """c -= V (T V^T c) of the rows of c from k on, in place; c is a slice of columns of a flat batch."""
    matrices, m, wide = c.shape
    if wide:
        z = torch.empty(matrices, _PANEL, wide, dtype=c.dtype, device=c.device)
        _project_kernel[(matrices, triton.cdiv(wide, 32))](v, t, c, z, m, k, wide, c.stride(0), c.stride(1),
                                                           TRANSPOSED=transposed, ROWS=64, W=_PANEL, COLUMNS=32)
        _update(c, v, z, (k, m), (0, wide), 0, _PANEL)


def qr(A, wide):
    """(the first `wide` columns of Q, R of as many rows)"""
    m, n = A.shape[-2:]
    left = _flat(A)
    matrices, rank = left.shape[0], min(m, n)
    q = torch.eye(m, wide, dtype=A.dtype, device=A.device).expand(matrices, m, wide).contiguous()
    taus = torch.zeros(matrices, n, dtype=A.dtype, device=A.device)
    bases = []
    for k in range(0, rank if matrices else 0, _PANEL):
        end = min(k + _PANEL, n)
        v = torch.empty(matrices, m, _PANEL, dtype=A.dtype, device=A.device)
        t = torch.empty(matrices, _PANEL, _PANEL, dtype=A.dtype, device=A.device)
        _qr_panel_kernel[(matrices,)](left, taus, m, n, k, ROWS=_PANEL_ROWS, W=_PANEL,
                                     num_warps=_PANEL_WARPS)
        _basis_kernel[(matrices,)](left, taus, v, t, m, n, k, min(end, rank) - k, ROWS=64, W=_PANEL)
        _reflect(v, t, left[..., end:], k, True)
        bases.append((k, v, t))
    for k, v, t in reversed(bases):
        _reflect(v, t, q, k, False)
    lead = list(A.shape[:-2])
    return q.reshape(lead + [m, wide]), left[:, :wide].triu().reshape(lead + [min(m, wide), n])


@triton.jit(do_not_specialize=["m", "n", "turn"])
def _rotate_kernel(x, v, apart, m, n, turn, eps, far, ROWS: tl.constexpr, WHOLE: tl.constexpr, HAS_V: tl.constexpr):
    """Two rows of x made orthogonal, and the same rotation of v's. Each program of a round has a pair of its own: one
    stays, the others go round. WHOLE: a row is one block, which stays in registers."""
    pair, matrix = tl.program_id(0), tl.program_id(1).to(tl.int64)
    others = 2 * tl.num_programs(0) - 1
    p = (turn + pair) % others
    q = tl.where(pair == 0, others, (turn - pair + others) % others)
    if (p >= n) | (q >= n):
        return
    slots = tl.arange(0, ROWS)
    first, second = x + (matrix * n + p) * m, x + (matrix * n + q) * m
    a, b = tl.load(first + slots, mask=slots < m, other=0), tl.load(second + slots, mask=slots < m, other=0)
    aa, bb, ab = a * a, b * b, a * b
    if not WHOLE:
        for start in range(ROWS, m, ROWS):
            r = start + slots
            a, b = tl.load(first + r, mask=r < m, other=0), tl.load(second + r, mask=r < m, other=0)
            aa, bb, ab = aa + a * a, bb + b * b, ab + a * b
    alpha, beta, gamma = tl.sum(aa, 0), tl.sum(bb, 0), tl.sum(ab, 0)
    lengths = tl.sqrt_rn(alpha * beta)
    if tl.abs(gamma) <= eps * lengths:
        return
    # The method converges quadratically at its end: what was turned by less is orthogonal after this sweep.
    if tl.abs(gamma) > far * lengths:
        tl.store(apart + matrix, 1)
    c, s = _rotation(alpha, beta, gamma)
    if WHOLE:
        tl.store(first + slots, c * a - s * b, mask=slots < m)
        tl.store(second + slots, s * a + c * b, mask=slots < m)
    else:
        _turn(first, second, m, c, s, ROWS)
    if HAS_V:
        _turn(v + (matrix * n + p) * n, v + (matrix * n + q) * n, n, c, s, ROWS)


@triton.jit
def _turn(first, second, n, c, s, ROWS: tl.constexpr):
    for start in range(0, n, ROWS):
        r = start + tl.arange(0, ROWS)
        a, b = tl.load(first + r, mask=r < n, other=0), tl.load(second + r, mask=r < n, other=0)
        tl.store(first + r, c * a - s * b, mask=r < n)
        tl.store(second + r, s * a + c * b, mask=r < n)


_BLOCK = 2048  # elements of a row that a program holds
_SWEEPS = 40  # ten are usual


def _orthogonal(x, v):
    """Rows of x, and of v where it is one, rotated until those of x are orthogonal."""
    matrices, n, m = x.shape
    if n < 2 or matrices == 0:
        return
    unit = torch.finfo(x.dtype).eps
    eps, far = unit * max(1.0, m**0.5), 0.1 * unit**0.5
    pairs = (n + 1) // 2
    rows = min(_BLOCK, max(64, triton.next_power_of_2(m)))
    apart = torch.zeros(matrices, dtype=torch.int32, device=x.device)

    def sweep():
        apart.zero_()
        for turn in range(2 * pairs - 1):
            _rotate_kernel[(pairs, matrices)](x, x if v is None else v, apart, m, n, turn, eps, far, ROWS=rows,
                                              WHOLE=m <= rows, HAS_V=v is not None, num_warps=max(1, rows // 256))

    graph = None
    for i in range(_SWEEPS):
        if not x.is_cuda or i == 0:
            sweep()
        else:
            if graph is None:  # many small launches, which take longer one by one
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    sweep()
            graph.replay()
        if not bool(apart.any()):
            return
    raise RuntimeError(f"the rotations of Jacobi's method did not end in {_SWEEPS} sweeps")


def eigh(A):
    """(eigenvalues from the least on, eigenvectors as columns) of symmetric matrices whose lower triangle is read."""
    n = A.shape[-1]
    whole = (A.tril() + A.tril(-1).mT).reshape(-1, n, n).double()
    # Eigenvalues are moved to where all are positive and none is small: then the singular vectors are eigenvectors.
    bound = whole.abs().sum(-1).amax(-1)
    moved = torch.where(bound > 0, 2 * bound, 1.0)
    x = (whole + moved[:, None, None] * torch.eye(n, dtype=whole.dtype, device=A.device)).contiguous()
    _orthogonal(x, None)
    lengths = x.square().sum(-1).sqrt()
    values, order = torch.sort(lengths - moved[:, None], -1)
    vectors = (x / lengths.unsqueeze(-1)).gather(1, order.unsqueeze(-1).expand(x.shape)).mT
    return values.to(A.dtype).reshape(A.shape[:-1]), vectors.to(A.dtype).contiguous().reshape(A.shape)


def svd(A):
    """(U, singular values from the largest on, V with columns of these lengths) of no fewer rows than columns; the last
    two are float64."""
    m, n = A.shape[-2:]
    q, r = qr(A.double(), n)
    # R^T, whose columns are nearer to orthogonal, by its columns: the rows of R.
    x = _flat(r)
    v = torch.eye(n, dtype=x.dtype, device=A.device).expand(x.shape).contiguous()
    _orthogonal(x, v)
    s, order = torch.sort(x.square().sum(-1).sqrt(), -1, descending=True)
    order = order.unsqueeze(-1).expand(x.shape)
    lead = list(A.shape[:-2])
    u = (q @ v.gather(1, order).mT.reshape(lead + [n, n])).to(A.dtype)
    right = x.gather(1, order).mT.reshape(lead + [n, n])
    return u, s.reshape(lead + [n]), right
