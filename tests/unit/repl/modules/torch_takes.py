"""Takes at places that are counted, which become strided views: as on the host, also where places wrap or round."""
import torch
from torch import _kiln

torch.manual_seed(1)
x = torch.randn(5000)


def of_halves(x):
    return x[torch.arange(3000, dtype=torch.float16).long()] * 2


def of_bfloat16(x):
    return x[torch.arange(0, 600, dtype=torch.bfloat16).int()] * 2


def of_bytes(x):
    return x[(torch.arange(100, dtype=torch.int8) * 2).long()] * 2


def of_unsigned(x):
    return x[(torch.arange(200, dtype=torch.uint8) * 2).long()] * 2


def of_wide(x):
    return x[torch.arange(200, dtype=torch.uint8).long() * 2] * 2


def of_int32(x):
    return x[torch.arange(1000, dtype=torch.int32) * 3 + 5].reshape(10, 100).sum(1)


def from_the_end(x):
    return x[torch.arange(1000) - 500] * 2


def clamped(x):
    return x[torch.arange(0, 30000, 10).clamp(max=4999)] * 2


def two_places(x):
    return x.view(50, 100)[torch.arange(40)[:, None] + torch.arange(5), torch.arange(40)[:, None] * 2] + 1


def backwards(x):
    return x[4999 - torch.arange(5000)] + 1


def greatest(x):
    return x.view(50, 100)[:, torch.arange(10)[:, None] * 10 + torch.arange(7)].amax(-1)


def before_a_change(x):
    y = x.clone()
    w = y[torch.arange(100)[:, None] * 3 + torch.arange(9)]
    y.zero_()
    return w.sum(-1)


def into_itself(x):
    y = x.clone()
    y[:100] = y[torch.arange(100)[:, None] * 3 + torch.arange(9)].sum(-1)
    return y


def added_to_itself(x):
    y = x.clone()
    y += y[torch.arange(5000)]
    return y


def changed(x):
    y = x.clone()
    w = y[torch.arange(100) * 2]
    w += 1
    return torch.cat([w, y])


def changed_windows(x):
    y = x.clone()
    w = y[torch.arange(100)[:, None] + torch.arange(3)]
    w[0] = 5
    return w + 1, y


def of_rows(x):
    return x.view(5, 1000)[torch.arange(5)[:, None], torch.arange(5)[:, None] * 7 + torch.arange(20)].mean(1)


for f in (of_halves, of_bfloat16, of_bytes, of_unsigned, of_wide, of_int32, from_the_end, clamped, two_places,
          backwards, greatest, before_a_change, into_itself, added_to_itself, changed, changed_windows, of_rows):
    found = []
    for on in (False, True):
        _kiln.stay_lazy(on)
        found.append(f(x.clone()))
        found[-1] = found[-1] if isinstance(found[-1], tuple) else (found[-1],)
        assert [t.tolist() for t in found[-1]]
    _kiln.stay_lazy(False)
    for a, b in zip(*found):
        assert a.shape == b.shape and (a - b).abs().max() < 1e-4, f
print("same")
