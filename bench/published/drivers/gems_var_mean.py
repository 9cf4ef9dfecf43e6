# Variance and mean of rows, Welford's sums reduced by a function of three values.
from harness import *
from src_gems_var_mean import var_mean_welford_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=13, N=3000)
    return dict(M=d.between(256, 16384), N=d.between(512, 16384))


def make(M, N):
    x = randn(M, N, dtype=BF16)
    var, mean = torch.empty((M,), device=DEVICE), torch.empty((M,), device=DEVICE)

    def launch(c):
        var_mean_welford_kernel[(triton.cdiv(M, c["BLOCK_M"]),)](x, var, mean, M, N, 1, **c)

    configs = [config(w, BLOCK_M=m, BLOCK_N=n) for m, n, w in ((1, 1024, 4), (2, 2048, 8), (8, 1024, 16))]
    return Case(configs, launch, lambda: [var, mean], lambda: [x.float().var(-1), x.float().mean(-1)])


main("gems_var_mean", draw, make, 1e-3)
