# Rows summed and their minima and maxima taken by an index, all with atomics.
from harness import *
from src_pyg_scatter_reduce import _fused_scatter_reduce_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(E=300, N=40, F=12)
    nodes = d.between(1000, 50000)
    return dict(E=nodes * d.pick([3, 8, 20]), N=nodes, F=d.pick([16, 50, 64, 128]))


def make(E, N, F):
    x, index = torch.randn((E, F), device=DEVICE), torch.randint(0, N, (E,), device=DEVICE)
    y, start = [torch.empty((N, 4 * F), device=DEVICE) for _ in range(2)]
    for i, value in enumerate((0.0, 0.0, float("inf"), float("-inf"))):
        start[:, i * F:(i + 1) * F] = value

    def launch(c):
        # Sums, means (sums too, divided by the host), minima and maxima.
        _fused_scatter_reduce_forward_kernel[(triton.cdiv(E * F, 256),)](x, index, y, F, 4, E * F, 1, 2, 3, 4, BLOCK_SIZE=256,
                                                                         **c)

    # Rows that no edge leads to keep infinities.
    def finite(t):
        return torch.where(t.abs() < 1e30, t, 0.0)

    def expected():
        sums = torch.zeros((N, F), device=DEVICE).index_add_(0, index, x)
        where = index[:, None] + torch.zeros((E, F), dtype=torch.int64, device=DEVICE)
        least, most = [torch.zeros((N, F), device=DEVICE).scatter_reduce_(0, where, x, how, include_self=False)
                       for how in ("amin", "amax")]
        return [sums, sums, least, most]

    return Case([config()], launch, lambda: [finite(y[:, i * F:(i + 1) * F]) for i in range(4)], expected,
                lambda: y.copy_(start))


main("pyg_scatter_reduce", draw, make, 1e-5)
