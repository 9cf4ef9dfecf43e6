"""Functions of torch that are no methods: windows of signals, differences and sums along a dimension, matrices."""
import math
import torch
from torch import _kiln, _tensor

lazily = _kiln.lazily
_along, _dim, _floats = _tensor._along, _tensor._dim, _tensor._floats


# --- windows of signals


def _window(n, periodic, dtype, device, what, of_turns):
    """`of_turns`: of a full turn's part, from 0 to 1 at the last element, or at the one behind it."""
    dtype = dtype or torch.get_default_dtype()
    if n < 0 or not dtype.is_floating_point:
        raise RuntimeError(f"{what} of {n} elements of {dtype}")
    if n < 2:
        return torch.ones((n,), dtype=dtype, device=device)
    turns = torch.arange(n, dtype=torch.float64, device=device) / (n if periodic else n - 1)
    return of_turns(turns).to(dtype)


def hann_window(window_length, periodic=True, *, dtype=None, device=None, requires_grad=False):
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype, device=device, requires_grad=requires_grad)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, device=None,
                   requires_grad=False):
    return _window(window_length, periodic, dtype, device, "hamming_window()",
                   lambda t: alpha - beta * (2 * math.pi * t).cos()).requires_grad_(requires_grad)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, device=None, requires_grad=False):
    whole = torch.i0(torch.tensor(beta, dtype=torch.float64, device=device))
    return _window(window_length, periodic, dtype, device, "kaiser_window()",
                   lambda t: torch.i0(beta * (1 - (2 * t - 1).square()).clamp(min=0).sqrt()) / whole
                   ).requires_grad_(requires_grad)


def blackman_window(window_length, periodic=True, *, dtype=None, device=None, requires_grad=False):
    return _window(window_length, periodic, dtype, device, "blackman_window()",
                   lambda t: (0.42 - 0.5 * (2 * math.pi * t).cos() + 0.08 * (4 * math.pi * t).cos()).clamp(min=0)
                   ).requires_grad_(requires_grad)


def bartlett_window(window_length, periodic=True, *, dtype=None, device=None, requires_grad=False):
    return _window(window_length, periodic, dtype, device, "bartlett_window()",
                   lambda t: 1 - (2 * t - 1).abs()).requires_grad_(requires_grad)


# --- along a dimension


@lazily
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    if y.ndim == 0:
        raise IndexError("cumulative_trapezoid() takes a tensor of one dimension or more")
    dim = _dim(dim, y.ndim)
    if y.dtype is torch.bool or (x is not None and x.dtype is torch.bool):
        raise NotImplementedError("cumulative_trapezoid() does not apply to tensors of bool")
    n = y.shape[dim]
    if n < 2:
        return y.new_empty([0 if d == dim else s for d, s in enumerate(y.shape)])
    sums = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)
    if x is None:
        return sums.cumsum(dim) * (dx / 2)
    if x.ndim == 1:
        if x.numel() != n:
            raise RuntimeError(f"cumulative_trapezoid() of {n} values at {x.numel()} places")
        steps = _along(x[1:] - x[:-1], dim, y.ndim)
    else:
        x = x.reshape([1] * (y.ndim - x.ndim) + list(x.shape))
        steps = x.narrow(dim, 1, x.shape[dim] - 1) - x.narrow(dim, 0, x.shape[dim] - 1)
    return (sums * steps).cumsum(dim) / 2


@lazily
def _slope(x, d, spacing, edge_order):
    """Differences of neighbours: central ones inside, one-sided ones at the ends."""
    n = x.shape[d]

    def at(start, length):
        return x.narrow(d, start, length)

    if not isinstance(spacing, torch.Tensor):
        inner = (at(2, n - 2) - at(0, n - 2)) / (2 * spacing)
        if edge_order == 1:
            first, last = (at(1, 1) - at(0, 1)) / spacing, (at(n - 1, 1) - at(n - 2, 1)) / spacing
        else:
            first = (-1.5 * at(0, 1) + 2 * at(1, 1) - 0.5 * at(2, 1)) / spacing
            last = (1.5 * at(n - 1, 1) - 2 * at(n - 2, 1) + 0.5 * at(n - 3, 1)) / spacing
        return torch.cat([first, inner, last], d)
    steps = (spacing[1:] - spacing[:-1]).to(x.dtype)
    left, right = _along(steps[:-1], d, x.ndim), _along(steps[1:], d, x.ndim)
    inner = (at(2, n - 2) * left / right - at(0, n - 2) * right / left) / (left + right) + (
        at(1, n - 2) * (right - left) / (left * right))
    if edge_order == 1:
        first, last = (at(1, 1) - at(0, 1)) / steps[0], (at(n - 1, 1) - at(n - 2, 1)) / steps[-1]
    else:
        a, b = steps[0], steps[1]
        first = (-(2 * a + b) / (a * (a + b))) * at(0, 1) + (a + b) / (a * b) * at(1, 1) - a / (b * (a + b)) * at(2, 1)
        a, b = steps[-2], steps[-1]
        last = b / (a * (a + b)) * at(n - 3, 1) - (a + b) / (a * b) * at(n - 2, 1) + (
            (2 * b + a) / (b * (a + b))) * at(n - 1, 1)
    return torch.cat([first, inner, last], d)


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    dims = list(range(input.ndim)) if dim is None else _tensor._dims(dim, input.ndim)
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient(edge_order={edge_order}): it is 1 or 2")
    if input.dtype in (torch.uint8, torch.bool):
        raise NotImplementedError(f"gradient() does not apply to tensors of {input.dtype}")
    spacing = 1 if spacing is None else spacing
    several = isinstance(spacing, (list, tuple))
    spacing = list(spacing) if several else [spacing] * len(dims)
    if len(spacing) != len(dims):
        raise RuntimeError(f"gradient() along {len(dims)} dimensions takes as many spacings, got {len(spacing)}")
    out = []
    for d, s in zip(dims, spacing):
        if input.shape[d] <= edge_order:
            raise RuntimeError(f"gradient() takes {edge_order + 1} elements or more along each dimension")
        if isinstance(s, torch.Tensor) and (s.ndim != 1 or s.numel() != input.shape[d]):
            raise RuntimeError(f"gradient() takes a coordinate for each of the {input.shape[d]} elements")
        out.append(_slope(_floats(input), d, s, edge_order))
    return tuple(out)


# --- matrices


@lazily
def vander(x, N=None, increasing=False):
    if x.ndim != 1:
        raise RuntimeError(f"vander() takes a vector, got {x.ndim} dimensions")
    n = x.numel() if N is None else N
    if n < 0:
        raise RuntimeError(f"vander(N={n}): it is 0 or more")
    x = x if x.is_floating_point() else x.long()
    if n == 0:
        return x.new_empty((x.numel(), 0))
    powers = _kiln.iota(n, x, torch.int64)
    powers = powers if increasing else n - 1 - powers
    return x.unsqueeze(1) ** powers.to(x.dtype)


@lazily
def block_diag(*tensors):
    blocks = [t.reshape(1, -1) if t.ndim < 2 else t for t in tensors] or [torch.empty((1, 0))]
    if any(t.ndim > 2 for t in blocks):
        raise RuntimeError("block_diag() takes tensors of two dimensions at most")
    dtype = blocks[0].dtype
    for t in blocks[1:]:
        dtype = torch.promote_types(dtype, t.dtype)
    width, at, rows = sum(t.shape[1] for t in blocks), 0, []
    for t in blocks:
        rows.append(torch.nn.functional.pad(t.to(dtype), (at, width - at - t.shape[1])))
        at += t.shape[1]
    return torch.cat(rows, 0)


def randint_like(input, low=0, high=None, *, dtype=None, device=None, requires_grad=False):
    """randint_like(input, high) or randint_like(input, low, high)."""
    low, high = (0, low) if high is None else (low, high)
    return torch.randint(low, high, input.shape, dtype=dtype or input.dtype, device=device or input.device)
