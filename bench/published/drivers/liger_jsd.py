# The Jensen-Shannon divergence of two distributions in logarithms, and its gradient.
from harness import *
from src_liger_jsd import _jsd_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, V=3000)
    return dict(N=d.between(64, 2048), V=d.pick([32000, 50257, 128256]))


def make(N, V):
    x, y = [torch.log_softmax(torch.randn((N, V), device=DEVICE), dim=-1) for _ in range(2)]
    loss, dx = torch.empty_like(x), torch.empty_like(x)
    label = torch.empty((1,), device=DEVICE)

    def launch(c):
        _jsd_kernel[(N,)](X_ptr=x, X_stride=x.stride(0), Y_ptr=y, Y_stride=y.stride(0), loss_ptr=loss,
                          loss_stride=loss.stride(0), dX_ptr=dx, dX_stride=dx.stride(0), label_ptr=label, beta=0.5,
                          n_non_ignore=N, ignore_index=-100, n_cols=V, BLOCK_SIZE=min(65536, triton.next_power_of_2(V)),
                          HAS_LABEL=False, **c)

    def expected():
        p, q = torch.exp(y), torch.exp(x)
        log_m = torch.log((p + q) * 0.5)
        return [(0.5 * p * y + 0.5 * q * x - (p + q) * 0.5 * log_m) / N, 0.5 * q * (x - log_m) / N]

    return Case([config()], launch, lambda: [loss, dx], expected)


main("liger_jsd", draw, make, 1e-3)
