"""Hooks of tensors and modules: functions that backward() and calls of modules call."""
import torch
from torch import _kiln


class Handle:
    """Of a hook among others, which remove() takes away again."""

    def __init__(self, hooks, hook, prepend=False):
        self.hooks, self.key = hooks, object()  # an id() may come again once the handle is dropped
        later = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[self.key] = hook
        hooks.update(later)

    def remove(self):
        self.hooks.pop(self.key, None)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.remove()
        return False


def changed(hooks, gradient):
    """What hooks make of a gradient, one after the other."""
    for hook in hooks:
        made = hook(gradient)
        if made is None:
            continue
        if not isinstance(made, torch.Tensor) or made.shape != gradient.shape:
            what = tuple(made.shape) if isinstance(made, torch.Tensor) else f"'{type(made).__name__}'"
            raise RuntimeError(f"a hook of a gradient of shape {tuple(gradient.shape)} returns None or a tensor like "
                               f"it, not {what}")
        gradient = made.to(gradient.dtype)
    return gradient


def register_hook(self, hook):
    """hook(gradient) is called by backward(); what it returns other than None is the gradient."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._backward_hooks is None:
        hooks = {}
        if not self.is_leaf:
            # A leaf's are called for the sum of all gradients, when backward() has it.
            _kiln.hook(self, lambda gradient: changed(list(hooks.values()), gradient))
        self._backward_hooks = hooks
    return Handle(self._backward_hooks, hook)


def register_post_accumulate_grad_hook(self, hook):
    """hook(leaf) is called by backward() once `.grad` has all of it."""
    if not self.requires_grad or not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self._post_accumulate_grad_hooks is None:
        self._post_accumulate_grad_hooks = {}
    return Handle(self._post_accumulate_grad_hooks, hook)


def without_kwargs(hook):
    return lambda module, args, kwargs, out: hook(module, args, out)


def of_arguments(hook):
    def called(module, args, kwargs):
        made = hook(module, args)
        return None if made is None else (made if isinstance(made, tuple) else (made,), kwargs)

    return called


class _Watch:
    """The gradients of one call of a module, until all that its hooks get is there."""

    def __init__(self, module, hooks):
        self.module, self.hooks = module, hooks
        self.inputs, self.outputs, self.waiting = [], [], set()

    def watched(self, values, seen):
        """The values, and in place of those that record others, whose gradients seen() gets and may change."""
        made = []
        for i, x in enumerate(values):
            if isinstance(x, torch.Tensor) and _kiln.records(x):
                def rule(gradient, operand, place=i):
                    return (seen(place, gradient),)

                x = _kiln.with_gradient(x.detach(), (x,), rule)
            made.append(x)
        return made

    def begin(self, args):
        self.inputs = [None] * len(args)
        self.waiting = {i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and _kiln.records(x)}
        self.several = len(self.waiting) > 1
        return tuple(self.watched(args, self.see_input))

    def end(self, out):
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        self.outputs = [None] * len(outs)
        made = self.watched(outs, self.see_output)
        return type(out)(made) if isinstance(out, (tuple, list)) else made[0]

    def see_output(self, place, gradient):
        self.outputs[place] = gradient
        if all(x is None for x in self.inputs) and not self.waiting:
            self.call()  # no input has a gradient
        return gradient

    def see_input(self, place, gradient):
        self.inputs[place] = gradient
        self.waiting.discard(place)
        if not self.waiting:
            self.call()
        return self.inputs[place]

    def call(self):
        for hook in list(self.hooks.values()):
            made = hook(self.module, tuple(self.inputs), tuple(self.outputs))
            if made is None:
                continue
            if self.several:
                raise NotImplementedError("a backward hook that changes the gradients of several inputs is not "
                                          "supported")
            made = made if isinstance(made, (tuple, list)) else (made,)
            if len(made) != len(self.inputs):
                raise RuntimeError(f"Backward hook returned an invalid number of grad_input, got {len(made)}, but "
                                   f"expected {len(self.inputs)}")
            self.inputs = list(made)


def called(module, args, kwargs):
    """The call of a module that has hooks."""
    d = module.__dict__
    for hook in list(d.get("_forward_pre_hooks", {}).values()):
        made = hook(module, args, kwargs)
        if made is not None:
            args, kwargs = made
    watch = None
    if d.get("_backward_hooks") and not _kiln.is_no_grad():
        watch = _Watch(module, d["_backward_hooks"])
        args = watch.begin(args)
    out = module.forward(*args, **kwargs)
    for hook in list(d.get("_forward_hooks", {}).values()):
        made = hook(module, args, kwargs, out)
        out = out if made is None else made
    return out if watch is None else watch.end(out)
