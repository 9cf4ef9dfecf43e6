"""torch.optim.lr_scheduler: learning rates as functions of the steps that were taken."""
import math
import torch


def _lr(group):
    lr = group["lr"]
    return lr.item() if isinstance(lr, torch.Tensor) else lr


def _set_lr(group, lr):
    """In place where it is a tensor, which a graph may read."""
    if isinstance(group["lr"], torch.Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def _set_momentum(group, value):
    if "betas" in group:
        group["betas"] = (value, ) + tuple(group["betas"][1:])
    else:
        group["momentum"] = value


def _each(optimizer, value, name):
    """A value for each of the optimizer's groups."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                         f"param_groups has {count}.")
    return list(value)


class LRScheduler:
    """Sets `lr` of an optimizer's groups, once when it is made and at each step()."""

    def __init__(self, optimizer, last_epoch=-1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", _lr(group))
            elif "initial_lr" not in group:
                raise KeyError("param 'initial_lr' is not specified in param_groups when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def step(self, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, lr in zip(self.optimizer.param_groups, self.get_lr() if epoch is None else self._closed_lr()):
            _set_lr(group, lr)
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def get_lr(self):
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def _closed_lr(self):
        """Of a step that is named, whatever the groups have."""
        return self.get_lr()

    def get_last_lr(self):
        return self._last_lr

    def state_dict(self):
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)

    def _now(self):
        return [_lr(group) for group in self.optimizer.param_groups]


class _Factors(LRScheduler):
    """The first learning rate by a factor that depends on the number of the step alone. A step multiplies what the
    group has by the quotient of two factors, so that several schedulers may change one optimizer (ChainedScheduler)."""

    def get_lr(self):
        at, now = self.last_epoch, self._factor(self.last_epoch)
        before = self._factor(at - 1) if at > 0 else 1.0
        return [lr if now == before else lr * (now / before) for lr in self._now()]

    def _closed_lr(self):
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class _LRScheduler(LRScheduler):
    """The name that older programs derive from."""


class LambdaLR(LRScheduler):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self):
        # Functions are not saved.
        return {name: value for name, value in super().state_dict().items() if name != "lr_lambdas"}


class MultiplicativeLR(LambdaLR):
    def get_lr(self):
        if self.last_epoch == 0:
            return self._now()
        return [lr * f(self.last_epoch) for lr, f in zip(self._now(), self.lr_lambdas)]


class StepLR(_Factors):
    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, at):
        return self.gamma**(at // self.step_size)


class MultiStepLR(_Factors):
    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, at):
        return self.gamma**sum(m <= at for m in self.milestones)


class ConstantLR(_Factors):
    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, at):
        return self.factor if at < self.total_iters else 1.0


class LinearLR(_Factors):
    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, at):
        part = min(at, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part


class PolynomialLR(_Factors):
    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, at):
        return (1 - min(at, self.total_iters) / self.total_iters)**self.power


class ExponentialLR(_Factors):
    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, at):
        return self.gamma**at


class CosineAnnealingLR(LRScheduler):
    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min, self._began = T_max, eta_min, True
        super().__init__(optimizer, last_epoch)
        self._began = False

    def get_lr(self):
        at, least = self.last_epoch, self.eta_min
        if at == 0:
            return self._now()
        if self._began:  # goes on where another scheduler stopped
            return self._closed_lr()
        if (at - 1 - self.T_max) % (2 * self.T_max) == 0:  # up again from the least
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - least) * rise for lr, base in zip(self._now(), self.base_lrs)]
        part = self._height(at) / self._height(at - 1)
        return [least + (lr - least) * part for lr in self._now()]

    def _height(self, at):
        return 1 + math.cos(math.pi * at / self.T_max)

    def _closed_lr(self):
        return [self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or T_mult < 1:
            raise ValueError(f"Expected positive T_0 and T_mult >= 1, but got {T_0} and {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        at, length = self.last_epoch, self.T_0
        while at >= length:
            at, length = at - length, length * self.T_mult
        part = (1 + math.cos(math.pi * at / length)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Smith and Topin, 2018: up to max_lr and down again. Momentum is cycled against it."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False, last_epoch=-1):
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        self.base_momentum, self.max_momentum = base_momentum, max_momentum
        up = float(pct_start * total_steps) - 1
        self._ends = ((up, 2 * up, total_steps - 1) if three_phase else (up, total_steps - 1))
        count = len(optimizer.param_groups)
        peaks = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * count
        # The learning rates, and the place in the cycle of momenta (0 most, 1 least), between the phases.
        self._levels = []
        for group, peak in zip(optimizer.param_groups, peaks):
            start = group["initial_lr"] = peak / div_factor
            _set_lr(group, start)
            end = start / final_div_factor
            self._levels.append((start, peak, start, end) if three_phase else (start, peak, end))
        self._cycles = cycle_momentum
        if cycle_momentum and not any(k in optimizer.defaults for k in ("momentum", "betas")):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        super().__init__(optimizer, last_epoch)

    def _between(self, a, b, part):
        if self.anneal_strategy == "cos":
            return b + (a - b) / 2 * (1 + math.cos(math.pi * part))
        return a + (b - a) * part

    def get_lr(self):
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"Tried to step {at} times. The total number of steps is {self.total_steps}")
        phase, start = 0, 0.0
        while phase < len(self._ends) - 1 and at > self._ends[phase]:
            start = self._ends[phase]
            phase += 1
        part = (at - start) / (self._ends[phase] - start)
        if self._cycles:
            momenta = (self.max_momentum, self.base_momentum) + (self.max_momentum, ) * 2
            now = self._between(momenta[phase], momenta[phase + 1], part)
            for group in self.optimizer.param_groups:
                _set_momentum(group, now)
        return [self._between(levels[phase], levels[phase + 1], part) for levels in self._levels]


class CyclicLR(LRScheduler):
    """Smith, 2017: up from base_lr to max_lr and down again. Momentum is cycled against it."""

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0,
                 scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9,
                 last_epoch=-1):
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        if cycle_momentum and not any(k in optimizer.defaults for k in ("momentum", "betas")):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        lows = _each(optimizer, base_lr, "base_lr")
        self.max_lrs = _each(optimizer, max_lr, "max_lr")
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size, self.mode, self.gamma = float(step_size_up + down), mode, gamma
        self.step_ratio = step_size_up / self.total_size
        self._scale_fn = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = _each(optimizer, base_momentum, "base_momentum")
            self.max_momentums = _each(optimizer, max_momentum, "max_momentum")
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, lows):
                _set_lr(group, lr)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x):
        if self._scale_fn is not None:
            return self._scale_fn(x)
        return 1.0 if self.mode == "triangular" else 0.5**(x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = height * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                _set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        # Functions are not saved.
        return {name: value for name, value in super().state_dict().items() if name != "_scale_fn"}


class _Several(LRScheduler):
    """Whose state has those of the schedulers that it steps."""

    def state_dict(self):
        out = {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "_schedulers")}
        out["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return out

    def load_state_dict(self, state_dict):
        state_dict = dict(state_dict)
        for s, saved in zip(self._schedulers, state_dict.pop("_schedulers")):
            s.load_state_dict(saved)
        self.__dict__.update(state_dict)


class ChainedScheduler(_Several):
    """All of them at each step, each changing what the ones before left."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for i, s in enumerate(schedulers):
            if isinstance(s, ReduceLROnPlateau):
                raise ValueError(f"ChainedScheduler does not support `ReduceLROnPlateau`, the scheduler at index {i}: "
                                 "its step() takes a metric")
            if s.optimizer is not self.optimizer:
                raise ValueError(f"ChainedScheduler expects all schedulers to belong to the same optimizer, but got "
                                 f"scheduler {type(s).__name__} at index {i} of another one")
        self._schedulers = list(schedulers)
        self._last_lr = self._now()

    def step(self):
        for s in self._schedulers:
            s.step()
        self._last_lr = self._now()


class SequentialLR(_Several):
    """One scheduler after the other, each counting from where it begins."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"Sequential Schedulers expects number of schedulers provided to be one more than the "
                             f"number of milestone points, but got number of schedulers {len(schedulers)} and the "
                             f"number of milestones to be equal to {len(milestones)}")
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        # Each was made by a step of its own; the first one's stands.
        for group in optimizer.param_groups:
            _set_lr(group, group["initial_lr"])
        for s in self._schedulers:
            s.last_epoch -= 1
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self):
        self.last_epoch += 1
        passed = sum(m <= self.last_epoch for m in self._milestones)
        s = self._schedulers[passed]
        if passed > 0 and self._milestones[passed - 1] == self.last_epoch:
            s.step(0)
        else:
            s.step()
        self._last_lr = s.get_last_lr()


class ReduceLROnPlateau(LRScheduler):
    """Lower when a metric has not improved for `patience` steps."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel",
                 cooldown=0, min_lr=0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        count = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        self.best, self.num_bad_epochs, self.cooldown_counter, self.last_epoch = None, 0, 0, 0
        self._last_lr = self._now()

    def _is_better(self, a):
        if self.best is None:
            return True
        sign = 1 if self.mode == "max" else -1
        margin = abs(self.best) * self.threshold if self.threshold_mode == "rel" else self.threshold
        return sign * a > sign * self.best + margin

    def step(self, metrics, epoch=None):
        now = float(metrics)
        self.last_epoch += 1
        if self._is_better(now):
            self.best, self.num_bad_epochs = now, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                lr = max(_lr(group) * self.factor, least)
                if _lr(group) - lr > self.eps:
                    _set_lr(group, lr)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._now()
