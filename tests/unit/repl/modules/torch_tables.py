"""Parts of tables that are made of counts alone, changed before the table is read: against the same in memory."""
import torch
from torch import _kiln
from torch.profiler import profile


def positions(n, e):
    at = torch.arange(n, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, e, 2, dtype=torch.float32) * -0.25)
    table = torch.zeros(n, e)
    table[:, 0::2] = torch.sin(at * rate)
    table[:, 1::2] = torch.cos(at * rate)
    return table


def cosines(n, k):
    table = torch.cos(torch.arange(n, dtype=torch.float32) * 0.1 * torch.arange(k)[:, None])
    table[0] *= 0.5
    table[1:, -1] -= 2
    return table * 3


def a_view_of_it():
    table = torch.arange(12, dtype=torch.float32).reshape(3, 4) * 2
    row = table[1]
    table[1] *= 4
    row += 1
    return torch.stack((table[1], row))


def rows_of_itself():
    table = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    table[0] = table[1]
    table[1] = table[2, :1]
    table[2, 1:3] += table[0, 2:4]
    return table


def an_index_that_counts():
    calls = []

    def right():
        calls.append(1)
        return 2.0

    table = torch.ones(3, 4)
    table[1] *= right()
    table[:, 1] += right()
    assert len(calls) == 2
    return table


def of_integers():
    table = torch.arange(6)
    table[2:] = torch.arange(4) * 2.5
    return table


for f in (lambda: positions(7, 6), lambda: cosines(5, 4), a_view_of_it, rows_of_itself, an_index_that_counts,
          of_integers):
    want = f()
    _kiln.stay_lazy(True)
    got = f()
    assert torch.equal(got, want) and got.dtype == want.dtype, (got, want)
    _kiln.stay_lazy(False)

x = torch.randn(200, 64)
_kiln.stay_lazy(True)
with profile() as p:
    y = x + positions(200, 64)
    torch.cpu.synchronize()
table = p.key_averages().table()
assert "1 kernel in 1 launch" in table, table
for place, length in ((5, 4), (0, 3)):
    try:
        torch.ones(3, 4)[place] = torch.ones(length)
        raise AssertionError("a part that does not fit was put")
    except (IndexError, RuntimeError):
        pass
_kiln.stay_lazy(False)
print("same")
