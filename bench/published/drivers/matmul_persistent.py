# Triton's tutorial 09: a persistent product through pointers.
from harness import *
from src_matmul_persistent import matmul_kernel_persistent


def draw(d, tiny):
    if tiny:
        return dict(M=200, N=264, K=136)
    return dict(M=d.between(512, 8192), N=d.between(512, 8192, 16), K=d.between(256, 4096, 16))


def make(M, N, K):
    a, b, c = randn(M, K), randn(K, N), empty(M, N)

    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3

    def launch(c_):
        tiles = triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"])
        matmul_kernel_persistent[(min(count, tiles),)](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
                                                       c.stride(0), c.stride(1), GROUP_SIZE_M=8, NUM_SMS=count, **c_)

    configs = [config(w, s, BLOCK_SIZE_M=128, BLOCK_SIZE_N=n, BLOCK_SIZE_K=64) for n, s, w in [
        (128, 4, 4), (128, 4, 8), (256, 3, 8), (128, 3, 8)]]
    return Case(configs, launch, lambda: [c], lambda: [a.float() @ b.float()])


main("matmul_persistent", draw, make, 0.01)
