"""torch.autograd.Function: functions with a backward of their own, as kernels have that their authors differentiated.
Under torch.func (torch._grad) backward() is what gradients ask."""
import torch
from torch import _kiln, _tape


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
    with torch.no_grad():
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
        ctx = FunctionCtx(tuple(isinstance(x, torch.Tensor) and x.requires_grad for x in args))
        if not recorded:
            return cls._computed(ctx, args)
        # forward() records nothing, and sees which of its arguments have a gradient: what it keeps may depend on it.
        given = [x.detach().requires_grad_() if i in recorded else x for i, x in enumerate(args)]
        with torch.no_grad():
            out = cls._computed(ctx, given)
            if isinstance(out, (tuple, list)):
                out = type(out)([x.detach() if any(x is g for g in given) and isinstance(x, torch.Tensor) else x
                                 for x in out])
            elif any(out is g for g in given):
                out = out.detach()
        if _kiln.is_no_grad():
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


    @classmethod
    def _computed(cls, ctx, args):
        if not hasattr(cls, "setup_context"):
            return cls.forward(ctx, *args)
        out = cls.forward(*args)
        cls.setup_context(ctx, tuple(args), out)
        return out


class no_grad(torch.no_grad):
    pass


class enable_grad(torch.enable_grad):
    pass


class inference_mode(torch.inference_mode):
    pass


class set_grad_enabled(torch.set_grad_enabled):
    pass


def once_differentiable(fn):
    """A backward() that is written for one derivative; what it computes is recorded all the same."""
    return fn


def Variable(data, requires_grad=False, volatile=False):
    """The tensor itself: since PyTorch 0.4 they are the same."""
    if requires_grad:
        data.requires_grad = True
    return data


class set_detect_anomaly:
    """Whether backward() looks for gradients that are NaN, for which it waits; `with` restores what was before."""

    def __init__(self, mode, check_nan=True):
        self.before = _tape.anomaly.checks
        _tape.anomaly.checks = bool(mode) and check_nan

    def __enter__(self):
        return None

    def __exit__(self, *args):
        _tape.anomaly.checks = self.before
        return False


class detect_anomaly(set_detect_anomaly):
    def __init__(self, check_nan=True):
        super().__init__(True, check_nan)
        self.wanted, _tape.anomaly.checks = _tape.anomaly.checks, self.before

    def __enter__(self):
        _tape.anomaly.checks = self.wanted


def is_anomaly_enabled():
    return _tape.anomaly.checks


# --- gradients against differences


class GradcheckError(RuntimeError):
    pass


def _listed_results(out):
    return [t for t in (out if isinstance(out, (tuple, list)) else [out]) if t.is_floating_point()]


def _wrong_gradient(func, inputs, eps, atol, rtol):
    """What is said of the first gradient that differs; None."""
    given = [x.detach().clone().requires_grad_() if i in inputs[1] else x for i, x in enumerate(inputs[0])]
    outs = _listed_results(func(*given))
    for place in inputs[1]:
        x = given[place]
        slopes = []
        for k in range(x.numel()):
            moved = []
            for step in (eps, -eps):
                shifted = x.detach().clone()
                shifted.view(-1)[k] += step
                with torch.no_grad():
                    moved.append(_listed_results(func(*[shifted if i == place else g for i, g in enumerate(given)])))
            slopes.append([((a - b) / (2 * eps)).reshape(-1) for a, b in zip(*moved)])
        for o, out in enumerate(outs):
            numerical = torch.stack([s[o] for s in slopes])
            columns = []
            for k in range(out.numel()):
                g, = torch.autograd.grad(out.reshape(-1)[k], [x], retain_graph=True, allow_unused=True)
                columns.append(torch.zeros_like(x).reshape(-1) if g is None else g.reshape(-1))
            analytical = torch.stack(columns, 1)
            if not torch.allclose(analytical, numerical, rtol=rtol, atol=atol):
                return (f"Jacobian mismatch for output {o} with respect to input {place},\nnumerical:{numerical}\n"
                        f"analytical:{analytical}\n")
    return None


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False,
              masked=None):
    """Whether gradients are what differences of the function are, for inputs of float64 that require them."""
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    places = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not places:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have "
                         "requires_grad=True.")
    wrong = _wrong_gradient(func, (inputs, places), eps, atol, rtol)
    if wrong is not None and raise_exception:
        raise GradcheckError(wrong)
    return wrong is None


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
                  raise_exception=True, **options):
    """The same for the gradients of gradients."""
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    places = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.requires_grad]

    def gradients(*given):
        with torch.enable_grad():
            of = [given[i] if given[i].requires_grad else given[i].detach().clone().requires_grad_() for i in places]
            whole = [of[places.index(i)] if i in places else x for i, x in enumerate(given)]
            outs = _listed_results(func(*whole))
            seeds = grad_outputs
            if seeds is None:
                seeds = [torch.arange(1, o.numel() + 1, dtype=o.dtype, device=o.device).reshape(o.shape) / o.numel()
                         for o in outs]
            found = torch.autograd.grad(outs, of, seeds, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, inputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
