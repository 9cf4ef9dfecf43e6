"""torch.autocast and gradient scalers: training with products in half precision.

Inside of autocast() products, convolutions and attention take float16 or bfloat16, on the device that it names; losses,
and on a GPU softmax, norms, sums, exp, log and pow, take float32 (torch_state.h, tensor_expr.cc)."""
from functools import wraps

import torch
from torch import _kiln


class autocast:
    """A context, or a decorator of functions."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type).__name__}`")
        self.device = device_type.partition(":")[0]
        if self.device not in ("cpu", "cuda"):
            raise RuntimeError(f"autocast({device_type!r}): the devices are 'cuda' and 'cpu'")
        self.fast_dtype = dtype or (torch.bfloat16 if self.device == "cpu" else torch.float16)
        if enabled and self.device == "cpu" and self.fast_dtype is torch.float32:
            import warnings
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                          "CPU Autocast only supports dtype of torch.bfloat16, torch.float16 currently.")
            enabled = False
        # float32 on a GPU undoes an autocast around it.
        elif enabled and self.fast_dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise RuntimeError(f"autocast(dtype={self.fast_dtype}): it is torch.float16 or torch.bfloat16")
        self.enabled, self.before = enabled, []

    def __enter__(self):
        self.before.append(_kiln.autocast(self.device, self.fast_dtype if self.enabled else None))
        return self

    def __exit__(self, *args):
        _kiln.autocast(self.device, self.before.pop())
        return False

    def __call__(self, function):
        @wraps(function)
        def decorated(*args, **kwargs):
            with self:
                return function(*args, **kwargs)
        return decorated


def is_autocast_enabled(device_type="cuda"):
    now = _kiln.autocast(device_type, None)
    _kiln.autocast(device_type, now)
    return now is not None


def get_autocast_dtype(device_type):
    now = _kiln.autocast(device_type, None)
    _kiln.autocast(device_type, now)
    return now or (torch.bfloat16 if device_type == "cpu" else torch.float16)


def get_autocast_gpu_dtype():
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype():
    return get_autocast_dtype("cpu")


def is_autocast_cpu_enabled():
    return is_autocast_enabled("cpu")


def is_autocast_cache_enabled():
    return True


def clear_autocast_cache():
    pass


class GradScaler:
    """Multiplies losses, so that gradients in float16 do not vanish, and leaves out steps whose gradients are not
    finite. The scale halves then, and doubles after steps without."""

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        if growth_factor <= 1 or not 0 < backoff_factor < 1:
            raise ValueError("GradScaler() takes a growth_factor above 1 and a backoff_factor between 0 and 1")
        # On a machine without the device PyTorch switches it off.
        self._enabled = enabled and (device == "cpu" or torch.cuda.is_available())
        self._scale, self._growth_factor, self._backoff_factor = float(init_scale), growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._found = {}  # by an optimizer's id: whether its gradients, which are unscaled, have others than numbers

    def is_enabled(self):
        return self._enabled

    def get_scale(self):
        return self._scale if self._enabled else 1.0

    def scale(self, outputs):
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(t) for t in outputs])
        return outputs * self._scale

    def unscale_(self, optimizer):
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not grads:
            raise RuntimeError("No inf checks were recorded for this optimizer.")
        with torch.no_grad():
            for g in grads:
                g.mul_(1 / self._scale)
            finite = torch.stack([g.isfinite().all() for g in grads])
        self._found[id(optimizer)] = not bool(finite.all())

    def step(self, optimizer, *args, **kwargs):
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise RuntimeError("No inf checks were recorded prior to update.")
        elif True in self._found.values():
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._found = {}

    def get_growth_factor(self):
        return self._growth_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def get_growth_interval(self):
        return self._growth_interval

    def state_dict(self):
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker}

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance "
                               "of GradScaler.")
        self._scale, self._growth_tracker = float(state_dict["scale"]), state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
