"""torch.autograd.functional: derivatives of functions of one tensor or several, by torch.func."""
from torch import func


def _of(function, inputs, transform):
    if not isinstance(inputs, tuple):
        return transform(function, 0)(inputs)
    return transform(function, tuple(range(len(inputs))))(*inputs)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """d out[i] / d in[j] in [out…, in…]; of several inputs a tuple."""
    return _of(func, inputs, _jacrev)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a function of one number's result."""
    return _of(func, inputs, _hessian)


def _jacrev(f, argnums):
    return func.jacrev(f, argnums)


def _hessian(f, argnums):
    return func.hessian(f, argnums)
