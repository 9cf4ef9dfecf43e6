"""torch.distributions.transforms: functions of elements with inverses and slopes."""
import math

import torch
import torch.nn.functional as F


class Transform:
    def __init__(self, cache_size=0):
        self._cache_size = cache_size

    def __call__(self, x):
        return self._call(x)

    def inv(self, y):
        return self._inverse(y)

    def __repr__(self):
        return f"{type(self).__name__}()"


class ExpTransform(Transform):
    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class SigmoidTransform(Transform):
    def _call(self, x):
        eps = torch.finfo(x.dtype)
        return torch.sigmoid(x).clamp(eps.tiny, 1 - eps.eps)

    def _inverse(self, y):
        eps = torch.finfo(y.dtype)
        y = y.clamp(eps.tiny, 1 - eps.eps)
        return y.log() - torch.log1p(-y)

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2 * (math.log(2) - x - F.softplus(-2 * x))  # log(1 - tanh(x)^2)


class AffineTransform(Transform):
    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        if event_dim:
            raise NotImplementedError("AffineTransform(event_dim=…): elements are transformed one by one")
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale if isinstance(self.scale, torch.Tensor) else torch.as_tensor(float(self.scale))
        return torch.zeros_like(x) + scale.abs().log()
