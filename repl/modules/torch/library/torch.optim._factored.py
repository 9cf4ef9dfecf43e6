"""torch.optim: optimizers whose step depends on a parameter as a whole."""
import math

import torch
from torch.optim import Optimizer, _checked


class Adafactor(Optimizer):
    """Shazeer and Stern, 2018: of matrices the mean squares are kept as those of rows and of columns."""

    _of_elements = False

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None,
                 maximize=False):
        _checked("Learning rate", lr)
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and eps[0] < 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if eps[1] < 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if d < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        _checked("weight_decay", weight_decay)
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps=tuple(eps), d=d, weight_decay=weight_decay,
                                      foreach=foreach, maximize=maximize))

    def _keeps(self, group):
        return True

    def _check_capture(self):
        raise RuntimeError("Adafactor.step() cannot be captured in a graph: its replays would all be the same step")

    def _sums_of(self, p, group):
        if p.ndim < 2:
            return {"variance": 0}
        shape = list(p.shape)
        of_rows, of_columns = shape[:-1] + [1], shape[:-2] + [1] + shape[-1:]
        return {"row_var": p.new_zeros(of_rows), "col_var": p.new_zeros(of_columns)}

    def _update(self, p, g, state, group):
        least, least_scale = group["eps"]
        least = torch.finfo(p.dtype).eps if least is None else least
        lr, step = group["lr"], state["step"]
        lr = lr.item() if isinstance(lr, torch.Tensor) else lr
        new = step**group["beta2_decay"]
        size = (p.norm(2) / math.sqrt(p.numel())).clamp(min=least_scale) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if p.ndim > 1:
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_(g.norm(dim=-1, keepdim=True).square() / g.shape[-1], new)
            columns.lerp_(g.norm(dim=-2, keepdim=True).square() / g.shape[-2], new)
            square = rows @ columns / rows.mean(-2, True).clamp(min=least)
        else:
            square = state["variance"].lerp_(g * g, new)
        change = square.clamp(min=least * least).rsqrt() * g
        clipped = (change.norm(2) / (math.sqrt(p.numel()) * group["d"])).clamp(min=1)
        p.sub_((change * (size / clipped)).to(p.dtype))


def _orthogonal(g, coefficients, steps, eps):
    """A matrix near to the orthogonal one of the same singular vectors, by iterations of a polynomial in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    a, b, c = coefficients
    tall = g.shape[0] > g.shape[1]
    x = g.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(Optimizer):
    """Jordan, 2024: the momentum of a matrix is made orthogonal before it is a step."""

    _of_elements = False

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None):
        _checked("learning rate", lr)
        _checked("momentum value", momentum)
        _checked("weight_decay value", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                                      ns_coefficients=tuple(ns_coefficients), eps=eps, ns_steps=ns_steps,
                                      adjust_lr_fn=adjust_lr_fn))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: "
                                     f"{p.size()}")

    def _sums(self, group):
        return {"momentum_buffer": 0}

    def _update(self, p, g, state, group):
        lr, momentum = group["lr"], group["momentum"]
        kept = state["momentum_buffer"].lerp_(g, 1 - momentum)
        change = _orthogonal(g.lerp(kept, momentum) if group["nesterov"] else kept, group["ns_coefficients"],
                             group["ns_steps"], group["eps"])
        rows, columns = p.shape
        by = (0.2 * math.sqrt(max(rows, columns)) if group["adjust_lr_fn"] == "match_rms_adamw"
              else math.sqrt(max(1, rows / columns)))
        p.mul_(1 - lr * group["weight_decay"])
        p.sub_((change * (lr * by)).to(p.dtype))
