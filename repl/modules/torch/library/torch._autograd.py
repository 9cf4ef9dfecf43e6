"""torch.autograd.Function: functions with a backward of their own, as kernels have that their authors differentiated.
Under torch.func (torch._grad) backward() is what gradients ask."""
import torch
from torch import _kiln


class FunctionCtx:
    """What forward() keeps for backward()."""

    def __init__(self, needs_input_grad):
        self.saved_tensors = ()
        self.needs_input_grad = needs_input_grad
        self._constants = ()
        self._materializes = True

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        self._constants = tensors

    def set_materialize_grads(self, value):
        self._materializes = value

    def mark_dirty(self, *tensors):
        if True in self.needs_input_grad:
            raise NotImplementedError("mark_dirty(): a function that changes its arguments in place has no gradient "
                                      "here; make a new tensor")


def _gradients(cls, ctx, outs, place, count, recorded, gradient, operands):
    """What backward() of `count` arguments gives for those that are recorded, by the gradient of one of the results: of
    several each asks for its own share, since backward() is linear in the gradients."""
    if _kiln.count_scopes(gradient, *operands) > 1:
        raise NotImplementedError(f"{cls.__name__}: its backward() is not differentiated itself, so there is no "
                                  "gradient of its gradient")
    grads = [None if not isinstance(x, torch.Tensor) else gradient.detach() if i == place else
             torch.zeros_like(x) if ctx._materializes else None for i, x in enumerate(outs)]
    found = cls.backward(ctx, *grads)
    found = found if isinstance(found, (tuple, list)) else (found,)
    if len(found) < count or any(g is not None for g in found[count:]):
        raise RuntimeError(f"{cls.__name__}.backward() gives {len(found)} gradients of {count} arguments")
    for i in recorded:
        if found[i] is not None and not isinstance(found[i], torch.Tensor):
            raise TypeError(f"{cls.__name__}.backward() gives '{type(found[i]).__name__}' for argument {i}, which has "
                            "a tensor or None as its gradient")
    return [None if found[i] is None else found[i].to(x.dtype).expand(x.shape) for i, x in zip(recorded, operands)]


class Function:
    @staticmethod
    def forward(*args):
        raise NotImplementedError("a torch.autograd.Function has a forward() of its own")

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError("a torch.autograd.Function that gradients are asked of has a backward() of its own")

    @classmethod
    def apply(cls, *args):
        recorded = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and _kiln.records(x)]
        given = [x.detach() if i in recorded else x for i, x in enumerate(args)]
        ctx = FunctionCtx(tuple(i in recorded for i in range(len(args))))
        if hasattr(cls, "setup_context"):
            out = cls.forward(*given)
            cls.setup_context(ctx, tuple(given), out)
        else:
            out = cls.forward(ctx, *given)
        if not recorded or _kiln.is_no_grad():
            return out
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        operands, count = tuple(args[i] for i in recorded), len(args)

        def recorded_result(place):
            x = outs[place]
            if (not isinstance(x, torch.Tensor) or not x.is_floating_point()
                    or any(x is other for other in ctx._constants)):
                return x
            return _kiln.with_gradient(x, operands, lambda gradient, *operands: _gradients(
                cls, ctx, outs, place, count, recorded, gradient, operands))

        made = [recorded_result(i) for i in range(len(outs))]
        return type(out)(made) if isinstance(out, (tuple, list)) else made[0]
