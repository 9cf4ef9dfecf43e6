# Kullback-Leibler divergence of rows, the prediction in logarithms.
from harness import *
from src_liger_kl_div import _kldiv_kernel_forward


def draw(d, tiny):
    if tiny:
        return dict(N=6, V=3000)
    return dict(N=d.between(64, 4096), V=d.pick([32000, 50257, 128256]))


def make(N, V):
    y = torch.log_softmax(torch.randn((N, V), device=DEVICE), dim=-1)
    target = torch.softmax(torch.randn((N, V), device=DEVICE), dim=-1)
    loss = torch.empty((N,), device=DEVICE)
    block = min(16384, triton.next_power_of_2(V))

    def launch(c):
        _kldiv_kernel_forward[(N,)](y, y.stride(0), target, target.stride(0), loss, 1, V, eps=1e-10, BLOCK_SIZE=block,
                                    log_target=False, reduction=3, **c)

    return Case([config(row_settings(block)[1])], launch, lambda: [loss],
                lambda: [(target * (torch.log(target.clamp(min=1e-10)) - y)).sum(-1)])


main("liger_kl_div", draw, make, 1e-3)
