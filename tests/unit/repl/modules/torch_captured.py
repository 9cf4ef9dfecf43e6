"""What a graph that is captured cannot wait for: numbers of a list, places in tensors without dimensions."""
import torch
from torch import _kiln


def both(what, f):
    """As an expression, as while a graph is captured, against what the host computes."""
    want = f()
    _kiln.stay_lazy(True, captured=True)
    got = f()
    equal = got.dtype == want.dtype and got.shape == want.shape and torch.equal(got, want)
    _kiln.stay_lazy(False)
    if not equal:
        raise AssertionError(f"{what}: {got} for {want}")


for dtype in [None, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool]:
    both(f"numbers of {dtype}", lambda: torch.tensor([1.0, -0.0, 0.1, 3.0], dtype=dtype))
both("integers", lambda: torch.tensor([[2**62 + 1, -5], [0, 7]]))
both("bools", lambda: torch.tensor([True, False, True]))
both("an infinity", lambda: torch.tensor([1.0, float("inf"), -float("inf")]))
both("doubles", lambda: torch.tensor([0.1, 1 / 3], dtype=torch.float64))
both("sixteen", lambda: torch.tensor(list(range(16)), dtype=torch.float32).reshape(4, 4) @ torch.ones(4, 2))
both("a list of one", lambda: torch.tensor([[3.5]]))

torch.manual_seed(7)
x = torch.randn(3, 4, 5, 6)
one, last, rows, small = torch.tensor(1), torch.tensor(-1, dtype=torch.int32), torch.tensor([0, 2, 2]), torch.tensor(
    2, dtype=torch.int16)
both("one place", lambda: x[one])
both("the last", lambda: x[last, ..., last])
both("in the middle", lambda: x[:, one])
both("behind a slice", lambda: x[1:, one, ::2])
both("beside an int", lambda: x[2, one])
both("beside None", lambda: x[None, one, :, None, last])
both("beside places", lambda: x[one, :, rows])
both("between places", lambda: x[rows, :, one, rows])
both("of all", lambda: x[one, last, one, last])
both("of a short integer", lambda: x[small])
both("a place that is computed", lambda: x[x[:, 0, 0, 0].argmax()] + 1)
both("gradients", lambda: torch.func.grad(lambda t: (t[one] ** 2).sum())(x))
_kiln.stay_lazy(True, captured=True)
try:
    x[torch.tensor(1.0)]
    raise AssertionError("a place that is a float was taken")
except IndexError:
    pass
_kiln.stay_lazy(False)
print("same")
