# Matrices of 4 by 4 made doubly stochastic in logarithms, with what each iteration left.
from harness import *
from src_te_sinkhorn import _mhc_sinkhorn_fwd_fused


def draw(d, tiny):
    if tiny:
        return dict(M=70, ITERS=3)
    return dict(M=d.between(1024, 65536), ITERS=20)


def make(M, ITERS):
    x = torch.randn((M, 16), device=DEVICE)
    y = torch.empty_like(x)
    f, g = [torch.empty((ITERS + 1, M, 4), device=DEVICE) for _ in range(2)]

    def launch(c):
        _mhc_sinkhorn_fwd_fused[(triton.cdiv(M, c["BLOCK_SIZE"] // 16),)](x, y, f, g, 16, 1, 16, 1, M, 4, iters=ITERS, **c)

    def expected():
        m = x.reshape(M, 4, 4)
        columns = torch.zeros((M, 4), device=DEVICE)
        for _ in range(ITERS):
            rows = -torch.logsumexp(m + columns[:, None, :], dim=2)
            columns = -torch.logsumexp(m + rows[:, :, None], dim=1)
        return [torch.exp(rows[:, :, None] + m + columns[:, None, :]).reshape(M, 16), rows, columns]

    configs = [config(w, s, BLOCK_SIZE=b) for b, w, s in ((256, 2, 2), (1024, 8, 2), (256, 8, 4))]
    return Case(configs, launch, lambda: [y, f[ITERS], g[ITERS]], expected)


main("te_sinkhorn", draw, make, 1e-3)
