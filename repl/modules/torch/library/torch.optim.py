"""torch.optim: optimizers over parameters whose gradients backward() has left in `.grad`.

A step changes parameters and what it keeps of them in place, by expressions. On a GPU the gradients that are pending
are computed first, in one plan, and then one kernel makes the step of all parameters that differ in their shapes alone.
Else all of it is computed together at the end."""
import math
import torch
from torch import _kiln, _tape


def _checked(name, value, low=0.0, below=math.inf):
    if isinstance(value, torch.Tensor):
        value = value.item()
    if not low <= value < below:
        raise ValueError(f"Invalid {name}: {value}")


class Optimizer:
    """The parameters in groups, each with its options; `state` has what is kept of each parameter."""

    def __init__(self, params, defaults):
        if isinstance(params, torch.Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                            "torch.FloatTensor")
        self.defaults, self.param_groups, self.state = defaults, [], {}
        groups = list(params.items()) if isinstance(params, dict) else list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        group = dict(param_group)
        params = group["params"]
        params = [params] if isinstance(params, torch.Tensor) else list(params)
        # named_parameters() gives pairs.
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for p in params:
            if not isinstance(p, torch.Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(p) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            known.add(id(p))
            if p.requires_grad:
                _kiln.record(p)
        group["params"] = params
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none=True):
        _tape.clear([p for group in self.param_groups for p in group["params"]], set_to_none)

    def step(self, closure=None):
        """One step of all parameters that have a gradient; the closure's loss, which is computed with gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            groups = [[(p, self._stepped(p, group)) for p in group["params"] if p.grad is not None]
                      for group in self.param_groups]
            for group, lists in zip(self.param_groups, _kiln.alike(groups)):
                for rows in lists:
                    self._step_of(rows[0], group)
                    if len(rows) > 1 and not _kiln.update_alike(rows):
                        for row in rows[1:]:
                            self._step_of(row, group)
        return loss

    def _stepped(self, p, group):
        """The parameter's state at its next step."""
        state = self.state.setdefault(p, {})
        state["step"] = state.get("step", 0) + 1
        for name, first in self._sums(group).items():
            # In memory at first, so that no step is unlike others.
            if name not in state:
                state[name] = torch.full_like(p, first).run()
        return state

    def _step_of(self, row, group):
        p, state = row
        self._update(p, -p.grad if group.get("maximize") else p.grad, state, group)

    def _sums(self, group):
        """The tensors that are kept of each parameter, with the number that they start as."""
        return {}

    def _update(self, p, g, state, group):
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def state_dict(self):
        """Numbers in place of parameters, so that it can be saved and given to an optimizer of equal parameters."""
        numbers, groups = {}, []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(p, len(numbers))
            groups.append({**group, "params": [numbers[p] for p in group["params"]]})
        return {"state": {numbers[p]: dict(kept) for p, kept in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict):
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, self.param_groups)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                             "group")
        at = {}
        for saved, own in zip(groups, self.param_groups):
            at.update(zip(saved["params"], own["params"]))
            own.update({name: value for name, value in saved.items() if name != "params"})
        self.state = {}
        for number, kept in state_dict["state"].items():
            p = at[number]
            self.state[p] = {name: value.to(p.device).clone() if isinstance(value, torch.Tensor) else value
                             for name, value in kept.items()}

    def __repr__(self):
        rows = []
        for i, group in enumerate(self.param_groups):
            rows.append(f"Parameter Group {i}")
            rows += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return f"{type(self).__name__} (\n" + "\n".join(rows) + "\n)"


def _decayed(p, g, group):
    """The gradient with the weights' decay in it; where that is decoupled, the weights shrink by themselves."""
    decay = group["weight_decay"]
    if decay == 0:
        return g
    if group.get("decoupled_weight_decay"):
        p.mul_(1 - group["lr"] * decay)
        return g
    return g + decay * p


class SGD(Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
                 foreach=None, differentiable=False, fused=None):
        _checked("learning rate", lr)
        _checked("momentum value", momentum)
        _checked("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                                      nesterov=nesterov, maximize=maximize, foreach=foreach,
                                      differentiable=differentiable, fused=fused))

    def _update(self, p, g, state, group):
        g = _decayed(p, g, group)
        momentum = group["momentum"]
        if momentum != 0:
            if "momentum_buffer" in state:
                kept = state["momentum_buffer"].mul_(momentum).add_(g, alpha=1 - group["dampening"])
            else:
                kept = state["momentum_buffer"] = g.clone()
            g = g + momentum * kept if group["nesterov"] else kept
        p.add_(g, alpha=-group["lr"])


class Adam(Optimizer):
    """Kingma and Ba, 2015; decoupled: Loshchilov and Hutter, 2019."""

    _decoupled = False

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False):
        _checked("learning rate", lr)
        _checked("epsilon value", eps)
        _checked("beta parameter at index 0", betas[0], below=1.0)
        _checked("beta parameter at index 1", betas[1], below=1.0)
        _checked("weight_decay value", weight_decay)
        super().__init__(params, dict(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, amsgrad=amsgrad,
                                      maximize=maximize, foreach=foreach, capturable=capturable,
                                      differentiable=differentiable, fused=fused,
                                      decoupled_weight_decay=self._decoupled or decoupled_weight_decay))

    def _sums(self, group):
        sums = {"exp_avg": 0, "exp_avg_sq": 0}
        return {**sums, "max_exp_avg_sq": 0} if group["amsgrad"] else sums

    def _update(self, p, g, state, group):
        lr, (beta1, beta2), g = group["lr"], group["betas"], _decayed(p, g, group)
        mean = state["exp_avg"].mul_(beta1).add_(g, alpha=1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        if group["amsgrad"]:
            most = state["max_exp_avg_sq"]
            square = most.copy_(torch.maximum(most, square))
        step = state["step"]
        scale = math.sqrt(1 - beta2**step)
        p.addcdiv_(mean, square.sqrt() / scale + group["eps"], value=-lr / (1 - beta1**step))


class AdamW(Adam):
    _decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, **options):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class NAdam(Optimizer):
    """Dozat, 2016."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
                 differentiable=False):
        _checked("learning rate", lr)
        super().__init__(params, dict(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay,
                                      momentum_decay=momentum_decay, decoupled_weight_decay=decoupled_weight_decay,
                                      maximize=maximize, foreach=foreach, capturable=capturable,
                                      differentiable=differentiable))

    def _sums(self, group):
        return {"exp_avg": 0, "exp_avg_sq": 0}

    def _update(self, p, g, state, group):
        lr, (beta1, beta2), g = group["lr"], group["betas"], _decayed(p, g, group)
        step = state["step"]
        mu = beta1 * (1 - 0.5 * 0.96**(step * group["momentum_decay"]))
        mu_next = beta1 * (1 - 0.5 * 0.96**((step + 1) * group["momentum_decay"]))
        product = state["mu_product"] = state.get("mu_product", 1.0) * mu
        mean = state["exp_avg"].mul_(beta1).add_(g, alpha=1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        below = (square / (1 - beta2**step)).sqrt() + group["eps"]
        p.addcdiv_(g, below, value=-lr * (1 - mu) / (1 - product))
        p.addcdiv_(mean, below, value=-lr * mu_next / (1 - product * mu_next))


class Adamax(Optimizer):
    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
                 differentiable=False, capturable=False):
        _checked("learning rate", lr)
        super().__init__(params, dict(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, foreach=foreach,
                                      maximize=maximize, differentiable=differentiable, capturable=capturable))

    def _sums(self, group):
        return {"exp_avg": 0, "exp_inf": 0}

    def _update(self, p, g, state, group):
        beta1, beta2 = group["betas"]
        g = _decayed(p, g, group)
        mean = state["exp_avg"].mul_(beta1).add_(g, alpha=1 - beta1)
        most = state["exp_inf"]
        most.copy_(torch.maximum(most * beta2, g.abs() + group["eps"]))
        p.addcdiv_(mean, most, value=-group["lr"] / (1 - beta1**state["step"]))


class RMSprop(Optimizer):
    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
                 capturable=False, foreach=None, maximize=False, differentiable=False):
        _checked("learning rate", lr)
        _checked("epsilon value", eps)
        _checked("momentum value", momentum)
        _checked("weight_decay value", weight_decay)
        _checked("alpha value", alpha)
        super().__init__(params, dict(lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum,
                                      centered=centered, capturable=capturable, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable))

    def _sums(self, group):
        sums = {"square_avg": 0}
        if group["centered"]:
            sums["grad_avg"] = 0
        if group["momentum"] > 0:
            sums["momentum_buffer"] = 0
        return sums

    def _update(self, p, g, state, group):
        alpha = group["alpha"]
        g = _decayed(p, g, group)
        square = state["square_avg"].mul_(alpha).addcmul_(g, g, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].mul_(alpha).add_(g, alpha=1 - alpha)
            square = square - mean * mean
        below = square.sqrt() + group["eps"]
        if group["momentum"] > 0:
            kept = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(g, below)
            p.add_(kept, alpha=-group["lr"])
        else:
            p.addcdiv_(g, below, value=-group["lr"])


class Adagrad(Optimizer):
    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
                 foreach=None, *, maximize=False, differentiable=False, fused=None):
        _checked("learning rate", lr)
        _checked("lr_decay value", lr_decay)
        _checked("weight_decay value", weight_decay)
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                                      initial_accumulator_value=initial_accumulator_value, foreach=foreach,
                                      maximize=maximize, differentiable=differentiable, fused=fused))

    def _sums(self, group):
        return {"sum": group["initial_accumulator_value"]}

    def _update(self, p, g, state, group):
        g = _decayed(p, g, group)
        total = state["sum"].addcmul_(g, g, value=1)
        lr = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        p.addcdiv_(g, total.sqrt() + group["eps"], value=-lr)


class Adadelta(Optimizer):
    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False,
                 maximize=False, differentiable=False):
        _checked("learning rate", lr)
        _checked("rho value", rho, below=1.0)
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      capturable=capturable, foreach=foreach, differentiable=differentiable))

    def _sums(self, group):
        return {"square_avg": 0, "acc_delta": 0}

    def _update(self, p, g, state, group):
        rho, eps = group["rho"], group["eps"]
        g = _decayed(p, g, group)
        square = state["square_avg"].mul_(rho).addcmul_(g, g, value=1 - rho)
        moved = state["acc_delta"]
        step = (moved + eps).sqrt() / (square + eps).sqrt() * g
        moved.mul_(rho).addcmul_(step, step, value=1 - rho)
        p.add_(step, alpha=-group["lr"])


from torch.optim import lr_scheduler  # noqa: E402
