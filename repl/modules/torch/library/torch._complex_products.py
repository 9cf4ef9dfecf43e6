"""Products of complex tensors: each is made of four real ones."""
import torch
from torch import _complex

Tensor = _complex.Tensor


def _factors(input, other, what):
    if not isinstance(input, Tensor) or not isinstance(other, Tensor) or input.dtype is not other.dtype:
        raise RuntimeError(f"{what} takes tensors of one dtype, got {input.dtype} and {other.dtype}")
    return input._re, input._im, other._re, other._im


def _product(input, other, what, multiply):
    a, b, c, d = _factors(input, other, what)
    return Tensor(multiply(a, c) - multiply(b, d), multiply(a, d) + multiply(b, c))


def matmul(input, other):
    return _product(input, other, "matmul()", lambda x, y: x.matmul(y))


def mm(input, mat2):
    return _product(input, mat2, "mm()", lambda x, y: x.mm(y))


def bmm(input, mat2):
    return _product(input, mat2, "bmm()", lambda x, y: x.bmm(y))


def mv(input, vec):
    return _product(input, vec, "mv()", lambda x, y: x.mv(y))


def dot(input, tensor):
    return _product(input, tensor, "dot()", lambda x, y: x.dot(y))


def vdot(input, other):
    return dot(_complex.conj(input), other)


def outer(input, vec2):
    return _complex.mul(input.unsqueeze(1), vec2)


def einsum(equation, *operands):
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    if len(operands) == 1:
        return _each("einsum", torch.einsum, operands[0], lambda x: (equation, x))
    if len(operands) != 2:
        raise NotImplementedError("einsum() of more than two complex tensors is not supported")
    return _product(*operands, "einsum()", lambda x, y: torch.einsum(equation, x, y))


def _each(what, function, input, arguments):
    return Tensor(function(*arguments(input._re)), function(*arguments(input._im)))
