# Weights divided by the norms of their columns, which two loops over the rows read.
from harness import *
from src_gems_weight_norm import weight_norm_kernel_last


def draw(d, tiny):
    if tiny:
        return dict(M=70, N=100)
    return dict(M=d.between(256, 16384), N=d.pick([768, 1024, 4096, 5120]))


def make(M, N):
    v, g = randn(M, N), randn(N)
    norms, out = empty(N), empty(M, N)

    def launch(c):
        weight_norm_kernel_last[(triton.cdiv(N, c["BLOCK_COL_SIZE"]),)](out, norms, v, g, M, N, 1e-30, **c)

    def expected():
        n = torch.sqrt((v.float() ** 2).sum(0))
        return [v.float() / n * g.float(), n]

    configs = [config(w, BLOCK_ROW_SIZE=r, BLOCK_COL_SIZE=c) for r, c, w in ((128, 16, 4), (64, 32, 4), (256, 8, 8), (512, 4, 4))]
    return Case(configs, launch, lambda: [out, norms], expected)


main("gems_weight_norm", draw, make, 0.01)
