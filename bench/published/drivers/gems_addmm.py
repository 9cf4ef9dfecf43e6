# A product with a bias, masked on all sides.
from harness import *
from src_gems_addmm import addmm_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=70, N=136, K=72)
    return dict(M=d.between(64, 4096), N=d.between(512, 8192, 16), K=d.between(256, 4096, 16))


def make(M, N, K):
    a, b, bias, c = randn(M, K), randn(K, N), randn(N), empty(M, N)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_SIZE_M"]), triton.cdiv(N, c_["BLOCK_SIZE_N"]))
        addmm_kernel[grid](a, b, bias, c, 1.0, 1.0, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), 0, 1,
                           c.stride(0), c.stride(1), **c_)

    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k) for m, n, k, s, w in [
        (128, 256, 64, 3, 8), (128, 128, 32, 4, 4), (64, 128, 32, 4, 4), (64, 32, 32, 5, 2)]]
    return Case(configs, launch, lambda: [c], lambda: [a.float() @ b.float() + bias.float()])


main("gems_addmm", draw, make, 0.01)
