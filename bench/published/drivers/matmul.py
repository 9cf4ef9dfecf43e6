# Triton's tutorial 03.
from harness import *
from src_matmul import matmul_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=200, N=264, K=136)
    return dict(M=d.between(512, 8192), N=d.between(512, 8192, 16), K=d.between(256, 4096, 16))


def make(M, N, K):
    a, b, c = randn(M, K), randn(K, N), empty(M, N)

    def launch(c_):
        matmul_kernel[(triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]),)](
            a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), ACTIVATION="",
            GROUP_SIZE_M=8, **c_)

    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k) for m, n, k, s, w in [
        (128, 256, 64, 3, 8), (128, 64, 64, 4, 4), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4)]]
    return Case(configs, launch, lambda: [c], lambda: [a.float() @ b.float()])


main("matmul", draw, make, 0.01)
