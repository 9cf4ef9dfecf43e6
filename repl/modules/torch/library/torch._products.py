"""Products of vectors and matrices that are methods too, made of matmul()."""
import torch
from torch import _kiln
from torch._tensor import _wide

lazily = _kiln.lazily


@lazily
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    if mat1.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError("addmm() takes two matrices")
    return _added(input, mat1, mat2, beta, alpha, "addmm()")


@lazily
def addmv(input, mat, vec, *, beta=1, alpha=1):
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError("addmv() takes a matrix and a vector")
    return _added(input, mat, vec, beta, alpha, "addmv()")


@lazily
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    if batch1.ndim != 3 or batch2.ndim != 3 or batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError("baddbmm() takes two batches of as many matrices")
    return _added(input, batch1, batch2, beta, alpha, "baddbmm()")


def _product(a, b):
    """In float32 for halves, for what follows to be rounded once."""
    halves = a.dtype in (torch.float16, torch.bfloat16)
    return a.matmul(b, out_dtype=torch.float32) if halves and a.dtype == b.dtype else a.matmul(b)


def _added(x, a, b, beta, alpha, what):
    if not (x.dtype == a.dtype == b.dtype):
        raise RuntimeError(f"{what} takes tensors of one dtype, got {x.dtype}, {a.dtype} and {b.dtype}")
    out = _product(a, b)
    if alpha != 1:
        out = out * alpha
    shape = out.shape
    if torch.broadcast_shapes(x.shape, shape) != shape:
        raise RuntimeError(f"{what}: {tuple(x.shape)} does not broadcast to {tuple(shape)}")
    if beta != 0:
        out = (_wide(x) if beta == 1 else _wide(x) * beta) + out
    return out.to(a.dtype)


@lazily
def outer(input, vec2):
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError("outer() takes two vectors")
    return input.unsqueeze(1) * vec2


def ger(input, vec2):
    return outer(input, vec2)


def dot(input, tensor):
    if input.ndim != 1 or tensor.ndim != 1 or input.shape != tensor.shape or input.dtype != tensor.dtype:
        raise RuntimeError("dot() takes two vectors of one length and dtype")
    return input.matmul(tensor)


def vdot(input, other):
    return dot(input, other)


def mv(input, vec):
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError("mv() takes a matrix and a vector")
    return input.matmul(vec)


def inner(input, other):
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError("inner(): the last dimensions differ")
    out = input.reshape(-1, input.shape[-1]) @ other.reshape(-1, other.shape[-1]).T
    return out.reshape(list(input.shape[:-1]) + list(other.shape[:-1]))
