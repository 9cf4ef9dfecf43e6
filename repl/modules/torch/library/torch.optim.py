"""torch.optim: optimizers over parameters whose gradients backward() has left in `.grad`.

A step changes parameters and what it keeps of them in place, by expressions. On a GPU the gradients that are pending
are computed first, in one plan, and then one kernel makes the step of all parameters that differ in their shapes alone.
Else all of it is computed together at the end.

With `capturable=True` the number of the step is a tensor, which a replayed graph counts on: one for all parameters of a
group that were always stepped together, so that what follows from it is computed once."""
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
        self._made = {}  # of the step that is made: numbers that are tensors, computed once
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
        if torch.cuda.is_current_stream_capturing():
            self._check_capture()
        with torch.no_grad():
            self._made = {}
            groups = [self._stepped(group) for group in self.param_groups]
            alike = (_kiln.alike(groups) if self._of_elements else [[[row] for row in rows] for rows in groups])
            for group, lists in zip(self.param_groups, alike):
                for rows in lists:
                    self._step_of(rows[0], group)
                    if len(rows) > 1 and not _kiln.update_alike(rows):
                        for row in rows[1:]:
                            self._step_of(row, group)
        return loss

    def _check_capture(self):
        """A graph repeats the numbers that it was recorded with, and the making of tensors."""
        name = type(self).__name__
        for group in self.param_groups:
            if not group.get("capturable", True):
                raise RuntimeError(f"Attempting CUDA graph capture of step() for an instance of {name} but "
                                   f"param_groups' capturable is False: its replays would all be the same step; make "
                                   f"it with {name}(..., capturable=True)")
            if self._keeps(group) and any(p.grad is not None and p not in self.state for p in group["params"]):
                raise RuntimeError(f"{name}.step() makes its state at the first step, which a graph would make anew at "
                                   f"each replay; make a step before the capture")

    def _keeps(self, group):
        """Whether a step reads tensors that the one before has left."""
        return bool(self._sums(group))

    _of_elements = True  # a step changes each element by what it has of it, whatever the parameter's shape

    def _stepped(self, group):
        """The parameters that have a gradient, with their states at the next step."""
        rows = [(p, self.state.setdefault(p, {})) for p in group["params"] if p.grad is not None]
        if group.get("capturable"):
            self._count_in_memory(rows, group)
        else:
            for p, state in rows:
                self._count(state, group)
        for p, state in rows:
            for name, first in self._sums_of(p, group).items():
                # In memory at first, so that no step is unlike others.
                if name not in state:
                    state[name] = (first if isinstance(first, torch.Tensor) else torch.full_like(p, first)).run()
        return rows

    def _count(self, state, group):
        """Counts the step in numbers."""
        for name, first in self._counters.items():
            value = state.get(name, first)
            state[name] = type(first)(value.item()) if isinstance(value, torch.Tensor) else value
        state.update(self._counted(state, group))

    def _count_in_memory(self, rows, group):
        """Counts the step in float32 tensors. Those that share them share them on while all of them are stepped."""
        shares = {}
        for state in self.state.values():
            shares[id(state.get("step"))] = shares.get(id(state.get("step")), 0) + 1
        steps = {}
        for p, state in rows:
            before = state.get("step", 0)
            is_tensor = isinstance(before, torch.Tensor)
            steps.setdefault((p.device, id(before) if is_tensor else before), []).append(state)
        for (device, _), states in steps.items():
            counters = {}
            for name, first in self._counters.items():
                value = states[0].get(name, first)
                if not isinstance(value, torch.Tensor):
                    counters[name] = torch.full((), float(value), device=device).run()
                else:
                    counters[name] = value if shares[id(states[0]["step"])] == len(states) else value.clone().run()
            counted = self._counted(counters, group)
            for name, value in counted.items():
                counters[name].copy_(value)
            for value in counters.values():
                value.run()
            for state in states:
                state.update(counters)

    # What is counted for each parameter, with the number that it starts as.
    _counters = {"step": 0}

    def _counted(self, counters, group):
        """The counters at the next step; of numbers or of tensors."""
        return {"step": counters["step"] + 1}

    def _once(self, step, name, make):
        """What follows from the number of a step; where that is a tensor, one too, computed once for all parameters."""
        if not isinstance(step, torch.Tensor):
            return make()
        if (id(step), name) not in self._made:
            self._made[id(step), name] = make().run()
        return self._made[id(step), name]

    def _bias_correction(self, beta, step):
        """1 - beta**step; in float32 without its cancellation."""
        if isinstance(step, torch.Tensor) and beta != 0:
            return self._once(step, ("bias correction", beta), lambda: -torch.expm1(step * math.log(beta)))
        return 1 - beta**step

    def _step_of(self, row, group):
        p, state = row
        self._update(p, -p.grad if group.get("maximize") else p.grad, state, group)

    def _sums(self, group):
        """The tensors that are kept of each parameter, with the number that they start as."""
        return {}

    def _sums_of(self, p, group):
        return self._sums(group)

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
        self.state, copies = {}, {}
        for number, kept in state_dict["state"].items():
            p = at[number]

            def copied(value):
                # Parameters that share the tensor of their step's number go on to.
                key = id(value), p.device
                if isinstance(value, torch.Tensor) and key not in copies:
                    copies[key] = value.to(p.device).clone()
                return copies.get(key, value)

            self.state[p] = {name: copied(value) for name, value in kept.items()}

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
        _scale(p, 1 - group["lr"] * decay)
        return g
    return g + decay * p


def _wide(p):
    """The dtype in which a parameter is stepped by numbers that are float32 tensors."""
    return torch.promote_types(p.dtype, torch.float32)


def _scale(p, factor):
    if isinstance(factor, torch.Tensor):
        p.copy_(p.to(_wide(p)) * factor)
    else:
        p.mul_(factor)


def _add(p, value, a):
    """p += value * a, of a number or of a tensor of one, which is not rounded to the parameter's dtype."""
    if isinstance(value, torch.Tensor):
        p.copy_(p.to(_wide(p)) + value * a.to(_wide(p)))
    else:
        p.add_(a, alpha=value)


def _add_quotient(p, value, a, b):
    """p += value * a / b, likewise."""
    if isinstance(value, torch.Tensor):
        p.copy_(p.to(_wide(p)) + value * a.to(_wide(p)) / b.to(_wide(p)))
    else:
        p.addcdiv_(a, b, value=value)


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

    def _keeps(self, group):
        return group["momentum"] != 0

    def _update(self, p, g, state, group):
        g = _decayed(p, g, group)
        momentum = group["momentum"]
        if momentum != 0:
            if "momentum_buffer" in state:
                kept = state["momentum_buffer"].mul_(momentum).add_(g, alpha=1 - group["dampening"])
            else:
                kept = state["momentum_buffer"] = g.clone()
            g = g + momentum * kept if group["nesterov"] else kept
        _add(p, -group["lr"], g)


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
        scale = self._once(step, ("scale", beta2), lambda: self._bias_correction(beta2, step)**0.5)
        size = self._once(step, ("size", id(group)), lambda: -lr / self._bias_correction(beta1, step))
        if isinstance(scale, torch.Tensor):
            square = square.to(_wide(p))
        _add_quotient(p, size, mean, square.sqrt() / scale + group["eps"])


class AdamW(Adam):
    _decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None, capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused)


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
        step, product = state["step"], state["mu_product"]
        mean = state["exp_avg"].mul_(beta1).add_(g, alpha=1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        correction = self._bias_correction(beta2, step)
        if isinstance(correction, torch.Tensor):
            square = square.to(_wide(p))
        below = (square / correction).sqrt() + group["eps"]
        mu, mu_next = self._momentum(step, group), self._momentum(step + 1, group)
        of_gradient = self._once(step, ("of gradient", id(group)), lambda: -lr * (1 - mu) / (1 - product))
        of_mean = self._once(step, ("of mean", id(group)), lambda: -lr * mu_next / (1 - product * mu_next))
        _add_quotient(p, of_gradient, g, below)
        _add_quotient(p, of_mean, mean, below)

    _counters = {"step": 0, "mu_product": 1.0}

    def _counted(self, counters, group):
        step = counters["step"] + 1
        return {"step": step, "mu_product": counters["mu_product"] * self._momentum(step, group)}

    def _momentum(self, step, group):
        return group["betas"][0] * (1 - 0.5 * 0.96**(step * group["momentum_decay"]))


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
        step = state["step"]
        size = self._once(step, ("size", id(group)), lambda: -group["lr"] / self._bias_correction(beta1, step))
        _add_quotient(p, size, mean, most)


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
            _add(p, -group["lr"], kept)
        else:
            _add_quotient(p, -group["lr"], g, below)


class Adagrad(Optimizer):
    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
                 foreach=None, *, maximize=False, differentiable=False, fused=None):
        _checked("learning rate", lr)
        _checked("lr_decay value", lr_decay)
        _checked("weight_decay value", weight_decay)
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                                      initial_accumulator_value=initial_accumulator_value, foreach=foreach,
                                      maximize=maximize, differentiable=differentiable, fused=fused))

    def _check_capture(self):
        if any(group["lr_decay"] for group in self.param_groups):
            raise RuntimeError("Adagrad.step() with lr_decay cannot be captured in a graph: its replays would all be "
                               "the same step")
        super()._check_capture()

    def _sums(self, group):
        return {"sum": group["initial_accumulator_value"]}

    def _update(self, p, g, state, group):
        g = _decayed(p, g, group)
        total = state["sum"].addcmul_(g, g, value=1)
        lr = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        _add_quotient(p, -lr, g, total.sqrt() + group["eps"])


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
        _add(p, -group["lr"], step)


class RAdam(Optimizer):
    """Liu and others, 2019: the adaptive step is rectified, and left out of the first steps."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False):
        _checked("learning rate", lr)
        _checked("epsilon value", eps)
        _checked("beta parameter at index 0", betas[0], below=1.0)
        _checked("beta parameter at index 1", betas[1], below=1.0)
        _checked("weight_decay value", weight_decay)
        super().__init__(params, dict(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      foreach=foreach, capturable=capturable,
                                      decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable))

    def _sums(self, group):
        return {"exp_avg": 0, "exp_avg_sq": 0}

    def _update(self, p, g, state, group):
        lr, (beta1, beta2), g = group["lr"], group["betas"], _decayed(p, g, group)
        mean = state["exp_avg"].mul_(beta1).add_(g, alpha=1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        step = state["step"]
        size = self._once(step, ("size", id(group)), lambda: -lr / self._bias_correction(beta1, step))
        by = self._once(step, ("rectified", beta2), lambda: self._rectified(beta2, step))
        if isinstance(by, torch.Tensor):
            adaptive = by / (square.to(_wide(p)).sqrt() + group["eps"])
            p.copy_(p.to(_wide(p)) + size * mean.to(_wide(p)) * torch.where(by > 0, adaptive, 1.0))
        elif by > 0:
            _add_quotient(p, size * by, mean, square.sqrt() + group["eps"])
        else:
            _add(p, size, mean)

    def _rectified(self, beta2, step):
        """What the adaptive step is multiplied by, with the bias of its squares; 0 while too few are known."""
        most = 2 / (1 - beta2) - 1
        bias = self._bias_correction(beta2, step)
        length = most - 2 * step * beta2**step / bias
        if isinstance(step, torch.Tensor):
            known = length.clamp(min=5)
            by = (bias * (known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known)).sqrt()
            return torch.where(length > 5, by, 0.0)
        if length <= 5:
            return 0.0
        return (bias * (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))**0.5


class Rprop(Optimizer):
    """Riedmiller and Braun, 1993: each element has a step of its own, which grows while the gradient keeps its sign."""

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
                 maximize=False, differentiable=False):
        _checked("learning rate", lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, dict(lr=lr, etas=tuple(etas), step_sizes=tuple(step_sizes), foreach=foreach,
                                      maximize=maximize, differentiable=differentiable, capturable=capturable))

    def _sums(self, group):
        return {"prev": 0, "step_size": group["lr"]}

    def _sums_of(self, p, group):
        lr = group["lr"]
        if isinstance(lr, torch.Tensor) and "step_size" not in self.state[p]:
            return {"prev": 0, "step_size": torch.zeros_like(p) + lr.to(p.dtype)}
        return self._sums(group)

    def _update(self, p, g, state, group):
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        along = (g * state["prev"]).sign()
        factor = torch.where(along > 0, grow, torch.where(along < 0, shrink, 1.0)).to(p.dtype)
        size = state["step_size"]
        size.copy_((size * factor).clamp(least, most))
        g = torch.where(along < 0, 0.0, g)
        p.addcmul_(g.sign(), size, value=-1)
        state["prev"].copy_(g)


class ASGD(Optimizer):
    """Polyak and Juditsky, 1992: `ax` of the state is the mean of the parameters from step t0 on."""

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
                 differentiable=False, capturable=False):
        _checked("learning rate", lr)
        _checked("weight_decay value", weight_decay)
        super().__init__(params, dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay,
                                      foreach=foreach, maximize=maximize, differentiable=differentiable,
                                      capturable=capturable))

    def _sums(self, group):
        return {"ax": 0}

    # `eta` and `mu` are those of the next step, which is what PyTorch keeps; those of this one are beside them.
    _counters = {"step": 0, "eta": 0.0, "mu": 1.0, "_eta": 0.0, "_mu": 1.0}

    def _counted(self, counters, group):
        lr, before, step = group["lr"], counters["step"], counters["step"] + 1
        eta, next = counters["eta"], lr / (1 + group["lambd"] * lr * step)**group["alpha"]
        late = step - group["t0"]
        if isinstance(step, torch.Tensor):
            eta, mu = torch.where(before == 0, lr, eta), 1 / late.clamp(min=1)
        else:
            eta, mu = lr if before == 0 else eta, 1 / max(1, late)
        # Copies: what is counted in memory is changed one after the other.
        copied = [x.clone().run() if isinstance(x, torch.Tensor) else x for x in (eta, counters["mu"])]
        return {"_eta": copied[0], "_mu": copied[1], "step": step, "eta": next, "mu": mu}

    def _update(self, p, g, state, group):
        g, eta, mu, mean = _decayed(p, g, group), state["_eta"], state["_mu"], state["ax"]
        _scale(p, 1 - group["lambd"] * eta)
        _add(p, -eta, g)
        if isinstance(mu, torch.Tensor):
            away = (p - mean).to(_wide(p)) * mu
            mean.copy_(torch.where(mu == 1, p.to(_wide(p)), mean.to(_wide(p)) + away))
        elif mu == 1:
            mean.copy_(p)
        else:
            mean.add_((p - mean) * mu)


from torch.optim import lr_scheduler  # noqa: E402
from torch.optim._factored import Adafactor, Muon  # noqa: E402
from torch.optim.lbfgs import LBFGS  # noqa: E402
