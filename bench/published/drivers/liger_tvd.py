# Total variation distance of rows and its gradient.
from harness import *
from src_liger_tvd import _tv_distance_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, V=3000)
    return dict(N=d.between(64, 4096), V=d.pick([32000, 50257, 128256]))


def make(N, V):
    p, q = [torch.softmax(torch.randn((N, V), device=DEVICE), dim=-1) for _ in range(2)]
    loss, grads, labels = torch.empty((N,), device=DEVICE), torch.empty_like(p), torch.empty((1,), device=DEVICE)
    block = min(16384, triton.next_power_of_2(V))

    def launch(c):
        _tv_distance_kernel[(N,)](p, p.stride(0), q, q.stride(0), loss, 1, grads, grads.stride(0), labels, -100, V, 1.0 / N,
                                  BLOCK_SIZE=block, HAS_LABEL=False, reduction=3, **c)

    def expected():
        return [(p - q).abs().sum(-1) * (0.5 / N), torch.where(p > q, 0.5 / N, -0.5 / N)]

    return Case([config(row_settings(block)[1])], launch, lambda: [loss, grads], expected)


main("liger_tvd", draw, make, 1e-3)
