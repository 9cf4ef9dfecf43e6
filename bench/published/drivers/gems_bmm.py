# A batched product whose masks are left out where sizes divide.
from harness import *
from src_gems_bmm import bmm_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=3, M=70, N=136, K=72)
    return dict(B=d.between(2, 64), M=d.between(64, 1024), N=d.between(64, 1024, 8), K=d.between(64, 1024, 8))


def make(B, M, N, K):
    a, b, c = randn(B, M, K), randn(B, K, N), empty(B, M, N)

    def launch(c_):
        tm, tn, tk = c_["TILE_M"], c_["TILE_N"], c_["TILE_K"]
        bmm_kernel[(triton.cdiv(M, tm), triton.cdiv(N, tn), B)](
            a, b, c, M, N, K, DIVISIBLE_M=M % tm == 0, DIVISIBLE_N=N % tn == 0, DIVISIBLE_K=K % tk == 0, **c_)

    configs = [config(4, 2, TILE_M=m, TILE_N=n, TILE_K=32, GROUP_M=g) for m, n, g in [
        (128, 128, 2), (128, 64, 2), (64, 64, 2), (32, 32, 1)]]
    return Case(configs, launch, lambda: [c], lambda: [torch.bmm(a.float(), b.float())])


main("gems_bmm", draw, make, 0.01)
