# The gradients of a dynamic tanh: rows, and sums of columns in one part for each SM.
from harness import *
from src_liger_dyt_backward import _dyt_bwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=7, N=1000)
    return dict(M=d.between(256, 16384), N=d.between(512, 8192, 8))


def make(M, N):
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3
    x = randn(M, N, dtype=BF16)
    dy = x + randn(M, N, dtype=BF16)  # so that the sum for alpha is no small difference of large ones
    alpha, gamma = torch.full((1,), 0.5, device=DEVICE).to(BF16), (torch.rand((N,), device=DEVICE) + 0.5).to(BF16)
    dx, da = torch.empty_like(x), torch.zeros((count, triton.cdiv(N, 512)), device=DEVICE)
    dg, db = torch.empty((count, N), device=DEVICE), torch.empty((count, N), device=DEVICE)

    def launch(c):
        _dyt_bwd_kernel[(triton.cdiv(N, c["BLOCK_N"]), count)](dy, dx, da, dg, db, x, alpha, gamma, True, M, N, **c)

    def expected():
        f, g = x.float(), dy.float()
        t = torch.tanh(0.5 * f)
        inner = (1 - t * t) * g * gamma.float()
        return [0.5 * inner, (f * inner).sum().reshape(1), (g * t).sum(0), g.sum(0)]

    configs = [config(w, s, BLOCK_N=n) for n, w, s in ((1024, 4, 1), (2048, 8, 2), (4096, 16, 1))]
    return Case(configs, launch, lambda: [dx, da.sum().reshape(1), dg.sum(0), db.sum(0)], expected, lambda: da.zero_())


main("liger_dyt_backward", draw, make, 0.02)
