"""torch.func: gradients of functions. What is made of their arguments is recorded (include/kiln/expr.h)."""
import torch
from torch import _kiln


def _leaves(tree, what):
    """The tensors in a tensor, or in nested tuples, lists and dicts."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if not isinstance(tree, (tuple, list)):
        raise TypeError(f"{what} is a tensor, or tensors in tuples, lists and dicts, not '{type(tree).__name__}'")
    return [leaf for part in tree for leaf in _leaves(part, what)]


def _like(tree, leaves):
    """The same nesting with other leaves, which are taken one by one."""
    if isinstance(tree, torch.Tensor):
        return next(leaves)
    if isinstance(tree, dict):
        return {key: _like(part, leaves) for key, part in tree.items()}
    parts = [_like(part, leaves) for part in tree]
    if isinstance(tree, tuple) and type(tree) is not tuple and hasattr(tree, "_fields"):
        return type(tree)(*parts)
    return tuple(parts) if isinstance(tree, tuple) else parts


def _variables(scope, tree, what):
    leaves = _leaves(tree, what)
    for x in leaves:
        if not x.is_floating_point():
            raise RuntimeError(f"{what} is of {x.dtype}: only tensors of floats have gradients")
    made = [scope.variable(x) for x in leaves]
    return _like(tree, iter(made)), made


def _settled(found, inputs):
    return iter([torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs)])


def grad_and_value(func, argnums=0, has_aux=False):
    """The function whose result is (gradients, value) of a function that gives one number."""
    if not callable(func):
        raise TypeError(f"a gradient is of a function, not of '{type(func).__name__}'")
    name = getattr(func, "__name__", "f")
    places = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not places or any(isinstance(i, bool) or not isinstance(i, int) for i in places):
        raise TypeError(f"argnums is an int or a tuple of them, not {argnums!r}")

    def gradient(*args, **kwargs):
        for i in places:
            if not -len(args) <= i < len(args):
                raise RuntimeError(f"argnums={argnums}, but {name}() got {len(args)} arguments by position")
        at = [i % len(args) for i in places]
        if len(set(at)) != len(at):
            raise RuntimeError(f"argnums={argnums} names an argument twice")
        scope = _kiln.GradScope()
        before = _kiln.set_no_grad(False)
        try:
            given, trees, inputs = list(args), [], []
            for i in at:
                given[i], made = _variables(scope, args[i], f"argument {i} of {name}()")
                inputs += made
            out = func(*given, **kwargs)
            aux = None
            if has_aux:
                if not isinstance(out, tuple) or len(out) != 2:
                    raise RuntimeError(f"{name}() gives a tuple (value, aux), as has_aux=True says")
                out, aux = out
            if not isinstance(out, torch.Tensor):
                raise RuntimeError(f"{name}() gives '{type(out).__name__}': the value of a gradient is a tensor")
            if out.ndim > 0:
                raise RuntimeError(f"{name}() gives a tensor of shape {tuple(out.shape)}: a gradient is of one number, "
                                   "as .sum() or .mean() gives; torch.func.vjp takes any")
            found = [None] * len(inputs)
            if _kiln.records(out):
                found = scope.gradients((out,), (torch.ones_like(out),), inputs)
            leaves = _settled(found, inputs)
            grads = tuple(_like(args[i], leaves) for i in at)
        finally:
            _kiln.set_no_grad(before)
            scope.end()
        grads = grads if isinstance(argnums, (tuple, list)) else grads[0]
        return (grads, (out, aux)) if has_aux else (grads, out)

    return gradient


def grad(func, argnums=0, has_aux=False):
    """The function whose result is the gradient of a function that gives one number."""
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradient


def vjp(func, *primals, has_aux=False):
    """The function's result, and a function from its cotangents to those of the arguments."""
    if not callable(func):
        raise TypeError(f"a gradient is of a function, not of '{type(func).__name__}'")
    name = getattr(func, "__name__", "f")
    if not primals:
        raise RuntimeError(f"vjp() of {name}() needs its arguments")
    scope = _kiln.GradScope()
    given, inputs = [], []
    for i, x in enumerate(primals):
        x, made = _variables(scope, x, f"argument {i} of {name}()")
        given.append(x)
        inputs += made
    before = _kiln.set_no_grad(False)
    try:
        out = func(*given)
    finally:
        _kiln.set_no_grad(before)
    aux = None
    if has_aux:
        if not isinstance(out, tuple) or len(out) != 2:
            raise RuntimeError(f"{name}() gives a tuple (value, aux), as has_aux=True says")
        out, aux = out
    values = _leaves(out, f"the result of {name}()")

    def pullback(cotangents):
        seeds = _leaves(cotangents, "a cotangent")
        if len(seeds) != len(values):
            raise RuntimeError(f"{name}() gives {len(values)} tensors, and there are {len(seeds)} cotangents")
        for v, s in zip(values, seeds):
            if v.shape != s.shape:
                raise RuntimeError(f"a cotangent of shape {tuple(s.shape)} for a result of shape {tuple(v.shape)}")
        pairs = [(v, s.to(v.dtype)) for v, s in zip(values, seeds) if _kiln.records(v)]
        found = [None] * len(inputs)
        if pairs:
            found = scope.gradients([v for v, _ in pairs], [s for _, s in pairs], inputs)
        leaves = _settled(found, inputs)
        return tuple(_like(x, leaves) for x in primals)

    result = _like(out, iter([v.detach() for v in values]))
    return (result, pullback, aux) if has_aux else (result, pullback)


def functional_call(module, parameters_and_buffers, args=None, kwargs=None):
    """module(*args) with other parameters and buffers, by their names."""
    new = {}
    several = isinstance(parameters_and_buffers, (tuple, list))
    for part in parameters_and_buffers if several else (parameters_and_buffers,):
        new.update(part)
    slots = {}
    for path, m in module.named_modules():
        for group in (m._parameters, m._buffers):
            for key in group:
                slots[path + ("." if path else "") + key] = group, key
    unknown = [key for key in new if key not in slots]
    if unknown:
        raise RuntimeError(f"functional_call(): {type(module).__name__} has no {unknown[0]!r}")
    old = {key: slots[key][0][slots[key][1]] for key in new}
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        for key, value in new.items():
            slots[key][0][slots[key][1]] = value
        return module(*args, **(kwargs or {}))
    finally:
        for key, value in old.items():
            slots[key][0][slots[key][1]] = value
