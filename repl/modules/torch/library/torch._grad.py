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
    if isinstance(tree, dict):
        return {key: _like(part, leaves) for key, part in tree.items()}
    if not isinstance(tree, (tuple, list)):
        return next(leaves)
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


def _places(argnums):
    """The numbers of the arguments as a tuple."""
    places = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    if not places or any(isinstance(i, bool) or not isinstance(i, int) for i in places):
        raise TypeError(f"argnums is an int or a tuple of them, not {argnums!r}")
    return places


def _counted(places, args, name):
    """The same from 0 on, of a call with these arguments."""
    for i in places:
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"argnums has {i}, but {name}() got {len(args)} arguments by position")
    at = [i % len(args) for i in places]
    if len(set(at)) != len(at):
        raise RuntimeError(f"argnums={places} names an argument twice")
    return at


def grad_and_value(func, argnums=0, has_aux=False):
    """The function whose result is (gradients, value) of a function that gives one number."""
    if not callable(func):
        raise TypeError(f"a gradient is of a function, not of '{type(func).__name__}'")
    name = getattr(func, "__name__", "f")
    places = _places(argnums)

    def gradient(*args, **kwargs):
        at = _counted(places, args, name)
        scope = _kiln.GradScope()
        before = _kiln.set_no_grad(False)
        try:
            given, inputs = list(args), []
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


def _jacobian(func, argnums, has_aux, *args):
    name = getattr(func, "__name__", "f")
    at = _counted(_places(argnums), args, name)

    def of_chosen(*chosen):
        given = list(args)
        for i, x in zip(at, chosen):
            given[i] = x
        return func(*given)

    out, pullback, *aux = vjp(of_chosen, *[args[i] for i in at], has_aux=has_aux)
    outputs, inputs = _leaves(out, f"the result of {name}()"), [leaf for i in at for leaf in _leaves(args[i], "")]
    found = []
    for k, y in enumerate(outputs):
        rows = []
        for j in range(y.numel()):
            # One element of one result: a row of the Jacobian.
            seeds = [torch.zeros(v.shape, dtype=v.dtype, device=v.device) for v in outputs]
            seeds[k].view(-1)[j] = 1
            rows.append([g for part in pullback(_like(out, iter(seeds))) for g in _leaves(part, "")])
        shape = list(y.shape)
        columns = [torch.stack([row[m] for row in rows]) if rows else x.new_zeros([0] + list(x.shape))
                   for m, x in enumerate(inputs)]
        leaves = iter([c.reshape(shape + list(x.shape)) for c, x in zip(columns, inputs)])
        trees = tuple(_like(args[i], leaves) for i in at)
        found.append(trees if isinstance(argnums, (tuple, list)) else trees[0])
    result = _like(out, iter(found))
    return (result, aux[0]) if has_aux else result


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """The function whose result is the Jacobian of a function: of shape result + argument, a row for each pullback."""
    if not callable(func):
        raise TypeError(f"a Jacobian is of a function, not of '{type(func).__name__}'")
    _places(argnums)  # an error before the first call
    return lambda *args: _jacobian(func, argnums, has_aux, *args)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """The values of jacrev, made as there: gradients are walked back from results."""
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func, argnums=0):
    """The function whose result is the second derivatives of a function."""
    return jacrev(jacrev(func, argnums), argnums)


def jvp(func, primals, tangents, *, has_aux=False):
    """The function's result, and the product of its Jacobian and the tangents: vjp of vjp, which is linear."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("jvp() takes its arguments and their tangents as two tuples")
    want = [(x.shape, x.dtype) for x in _leaves(primals, "an argument")]
    if want != [(t.shape, t.dtype) for t in _leaves(tangents, "a tangent")]:
        raise RuntimeError("jvp() takes a tangent of the shape and dtype of each argument")
    out, pullback, *aux = vjp(func, *primals, has_aux=has_aux)
    zeros = [torch.zeros(v.shape, dtype=v.dtype, device=v.device) for v in _leaves(out, "the result")]
    _, push = vjp(pullback, _like(out, iter(zeros)))
    result = (out, push(tangents)[0])
    return result + (aux[0],) if has_aux else result


# --- vmap


def _dims_like(dims, tree, what):
    """A dimension or None for each leaf of the arguments; tensors are leaves, and so is what is no container."""
    if dims is None or isinstance(dims, int):
        if isinstance(tree, dict):
            return [d for part in tree.values() for d in _dims_like(dims, part, what)]
        if isinstance(tree, (tuple, list)):
            return [d for part in tree for d in _dims_like(dims, part, what)]
        return [(dims, tree)]
    alike = any(isinstance(dims, kind) and isinstance(tree, kind) for kind in (dict, tuple, list))
    if not alike or len(dims) != len(tree) or (isinstance(tree, dict) and any(key not in dims for key in tree)):
        raise ValueError(f"vmap(): {what} is {dims!r}, which is not nested as what it is of")
    pairs = [(dims[key], tree[key]) for key in tree] if isinstance(tree, dict) else zip(dims, tree)
    return [d for dim, part in pairs for d in _dims_like(dim, part, what)]


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """The function over a dimension of its arguments. It is called for each slice, and the results are stacked."""
    if not callable(func):
        raise TypeError(f"vmap() takes a function, not '{type(func).__name__}'")
    name = getattr(func, "__name__", "f")
    if randomness == "same":
        raise NotImplementedError("vmap(randomness='same') is not supported: each slice draws numbers of its own")
    if randomness not in ("error", "different"):
        raise RuntimeError(f"vmap(randomness={randomness!r}): it is 'error', 'different' or 'same'")

    def mapped(*args, **kwargs):
        # Arguments by name are the same for all slices.
        found = _dims_like(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, "in_dims")
        sizes = []
        for dim, x in found:
            if dim is None:
                continue
            if not isinstance(x, torch.Tensor):
                raise ValueError(f"vmap() of {name}(): in_dims has {dim} for '{type(x).__name__}', which is no tensor: "
                                 "None leaves it as it is")
            if not -x.ndim <= dim < x.ndim:
                raise ValueError(f"vmap() of {name}(): in_dims has {dim} for a tensor of {x.ndim} dimensions")
            sizes.append(x.shape[dim])
        if not sizes:
            raise ValueError(f"vmap() of {name}() needs a tensor with a dimension to go along")
        if any(n != sizes[0] for n in sizes):
            raise ValueError(f"vmap() of {name}(): the sizes to go along differ: {sizes}")
        if sizes[0] == 0:
            raise NotImplementedError(f"vmap() of {name}() along no elements is not supported")
        outs = []
        for i in range(sizes[0]):
            leaves = iter([x if dim is None else x.select(dim, i) for dim, x in found])
            outs.append(func(*_like(args, leaves), **kwargs))
        columns = list(zip(*[_leaves_or_error(out, name) for out in outs]))
        # Of one tensor a tuple of one dimension is that dimension.
        alone = isinstance(outs[0], torch.Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1
        where = [dim for dim, _ in _dims_like(out_dims[0] if alone else out_dims, outs[0], "out_dims")]
        return _like(outs[0], iter([_stacked(c, d) for c, d in zip(columns, where)]))

    return mapped


def _leaves_or_error(out, name):
    leaves = [x for _, x in _dims_like(0, out, "out_dims")]
    for x in leaves:
        if not isinstance(x, torch.Tensor):
            raise ValueError(f"vmap() of {name}(): it returns '{type(x).__name__}', and only tensors are stacked")
    return leaves


def _stacked(column, dim):
    if dim is None:
        return column[0]
    return torch.stack(column, dim)
