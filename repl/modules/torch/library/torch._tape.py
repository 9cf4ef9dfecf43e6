"""torch.autograd.backward() and grad(): gradients of what was recorded since leaves were made of tensors.

A leaf is a tensor that requires a gradient: one that was made so, or a parameter. Gradients are
expressions, as results are: what backward() leaves in `.grad` is computed when it is read, mostly by an optimizer."""
import torch
from torch import _hooks, _kiln


class _Anomaly:
    """torch.autograd.set_detect_anomaly()"""

    checks = False


anomaly = _Anomaly()


def _listed(tensors, what):
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    for t in tensors:
        if not isinstance(t, torch.Tensor):
            raise TypeError(f"{what} is a tensor or several, not '{type(t).__name__}'")
    return tensors


def _seeds(values, given, paused):
    """The gradients that the values start with: ones for a single number."""
    given = [None] * len(values) if given is None else [given] if isinstance(given, torch.Tensor) else list(given)
    if len(given) != len(values):
        raise RuntimeError(f"got {len(values)} tensors and {len(given)} gradients")
    seeds = []
    for i, (v, g) in enumerate(zip(values, given)):
        if not _kiln.records(v):
            why = "; this is inside of torch.no_grad()" if paused else ""
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn" + why)
        if g is None:
            if v.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            g = torch.ones_like(v)
        elif g.shape != v.shape:
            raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a "
                               f"shape of {v.shape}.")
        seeds.append(g.to(v.dtype))
    return seeds


def _found(values, seeds, inputs, retain_graph, create_graph):
    found = list(_kiln.gradients(values, seeds, inputs, not create_graph))
    for i, x in enumerate(inputs):
        # Others than leaves are hooked where their gradient is made.
        if x.is_leaf and x._backward_hooks and found[i] is not None:
            found[i] = _hooks.changed(list(x._backward_hooks.values()), found[i])
    if anomaly.checks:
        for i, g in enumerate(found):
            if g is not None and bool(g.isnan().any()):
                raise RuntimeError(f"the gradient of tensor {i}, of shape {tuple(inputs[i].shape)}, has nan values")
    if not (create_graph if retain_graph is None else retain_graph):
        _kiln.release(*values)
    return found


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Adds the gradients of the tensors' sum to `.grad` of the leaves that they are made of."""
    if not _kiln.is_no_grad():
        return _backward(tensors, grad_tensors, retain_graph, create_graph, inputs, False)
    # What was recorded has its gradients wherever they are asked for.
    with torch.enable_grad():
        return _backward(tensors, grad_tensors, retain_graph, create_graph, inputs, True)


def _backward(tensors, grad_tensors, retain_graph, create_graph, inputs, paused):
    values = _listed(tensors, "what backward() starts at")
    seeds = _seeds(values, grad_tensors, paused)
    leaves = list(_kiln.leaves(*values))
    if inputs is not None:
        leaves = _listed(inputs, "inputs=")
        if not leaves:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for leaf, g in zip(leaves, _found(values, seeds, leaves, retain_graph, create_graph)):
        if g is None:
            continue
        if leaf.grad is None:
            leaf.grad = g
        elif create_graph:
            leaf.grad = leaf.grad + g
        else:
            with torch.no_grad():
                leaf.grad.add_(g)
        if leaf._post_accumulate_grad_hooks is not None:
            for hook in list(leaf._post_accumulate_grad_hooks.values()):
                hook(leaf)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """The gradients of the outputs' sum to the inputs, as a tuple."""
    if is_grads_batched:
        raise NotImplementedError("autograd.grad(is_grads_batched=True) is not supported: torch.func.jacrev is")
    if not _kiln.is_no_grad():
        return _grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads, False)
    with torch.enable_grad():
        return _grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads, True)


def _grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads, paused):
    values, inputs = _listed(outputs, "what grad() starts at"), _listed(inputs, "an input of grad()")
    seeds = _seeds(values, grad_outputs, paused)
    for x in inputs:
        if not _kiln.records(x):
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    _kiln.leaves(*values)  # which says what was changed in place
    found = list(_found(values, seeds, inputs, retain_graph, create_graph))
    for i, g in enumerate(found):
        if g is not None:
            continue
        if materialize_grads:
            found[i] = torch.zeros_like(inputs[i])
        elif not allow_unused:
            raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set "
                               "allow_unused=True if this is the desired behavior.")
    return tuple(found)


def copied(x):
    """A tensor of its own for copy.deepcopy(): of a leaf, another leaf."""
    if not x.is_leaf:
        return x.clone()
    made = x.detach().clone()
    made.is_parameter, made.requires_grad = x.is_parameter, x.requires_grad
    if x.grad is not None:
        made.grad = x.grad.clone()
    return made


def with_rule(compute, operands, rule):
    """What `compute` makes of tensors at once; rule(gradient, *operands) gives their gradients."""
    if not _kiln.records(*operands):
        return compute(*operands)
    made = compute(*[x.detach() for x in operands])
    return made if _kiln.is_no_grad() else _kiln.with_gradient(made, tuple(operands), rule)


def converted(leaf, f):
    """A leaf takes what f makes of its elements and of its gradient, so that an optimizer that has it goes on."""
    with torch.no_grad():
        leaf.data = f(leaf)
    if leaf.grad is not None:
        leaf.grad = f(leaf.grad)
    return leaf


def clear(tensors, set_to_none=True):
    """zero_grad() of modules and optimizers."""
    with torch.no_grad():
        for t in tensors:
            if t.grad is None:
                continue
            if set_to_none:
                t.grad = None
            else:
                t.grad = torch.zeros_like(t.grad)
