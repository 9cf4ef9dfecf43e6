# int8 activations times weights of two bits, four of them in a byte, a quarter of K apart.
from harness import *
from src_liger_int2 import matmul_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=40, N=72, K=1024)
    return dict(M=d.between(1, 4096), N=d.between(512, 8192, 16), K=d.between(1024, 8192, 512))


def make(M, N, K):
    a, parts = ints(-128, 128, (M, K), torch.int8), ints(0, 3, (4, K // 4, N))
    b = (parts[0] | (parts[1] << 2) | (parts[2] << 4) | (parts[3] << 6)).to(torch.uint8)
    c = empty(M, N, dtype=torch.int32)

    def launch(c_):
        matmul_kernel[(triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]),)](
            a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), **c_)

    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k, GROUP_SIZE_M=g) for m, n, k, g, s, w in [
        (128, 128, 128, 8, 4, 4), (128, 256, 64, 8, 3, 8), (64, 128, 32, 8, 4, 4), (32, 32, 32, 4, 4, 4)]]
    return Case(configs, launch, lambda: [c], lambda: [a.float() @ (parts.reshape(K, N) - 1).float()])


main("liger_int2", draw, make, 0.001)
