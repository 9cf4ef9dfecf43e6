"""torch.optim.swa_utils: models whose parameters are averages of another's."""
import copy

import torch
from torch.nn import Module


def get_ema_avg_fn(decay=0.999):
    if not 0 <= decay <= 1:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return lambda averaged, current, count: decay * averaged + (1 - decay) * current


def get_ema_multi_avg_fn(decay=0.999):
    one = get_ema_avg_fn(decay)

    def averaged(held, current, count):
        for a, c in zip(held, current):
            a.copy_(one(a, c, count))
    return averaged


class AveragedModel(Module):
    """The equal average of a model's states at each update_parameters(), or what avg_fn makes of them."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _held(self, model):
        return list(model.parameters()) + (list(model.buffers()) if self.use_buffers else [])

    def update_parameters(self, model):
        with torch.no_grad():
            count = self.n_averaged.item()
            held = self._held(self.module)
            current = [c.detach().to(a.device) for a, c in zip(held, self._held(model))]
            floats = [i for i, a in enumerate(held) if a.is_floating_point()]
            if count and self.multi_avg_fn is not None:
                self.multi_avg_fn([held[i] for i in floats], [current[i] for i in floats], self.n_averaged)
            for i, (a, c) in enumerate(zip(held, current)):
                if count == 0 or i not in floats:
                    a.copy_(c)
                elif self.multi_avg_fn is None and self.avg_fn is not None:
                    a.copy_(self.avg_fn(a, c, self.n_averaged))
                elif self.multi_avg_fn is None:
                    a.add_((c - a) / (count + 1))
            if not self.use_buffers:
                for a, c in zip(self.module.buffers(), model.buffers()):
                    a.copy_(c)
            self.n_averaged += 1
