# Triton's tutorial 09: a persistent product whose descriptors the kernel makes.
from harness import *
from src_matmul_descriptor_persistent import matmul_kernel_descriptor_persistent


def draw(d, tiny):
    if tiny:
        return dict(M=200, N=264, K=136)
    return dict(M=d.between(512, 8192), N=d.between(512, 8192, 8), K=d.between(256, 4096, 8))


def make(M, N, K):
    a, b, c = randn(M, K), randn(N, K), empty(M, N)
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3

    allocate_descriptors()

    def launch(c_):
        tiles = triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"])
        matmul_kernel_descriptor_persistent[(min(count, tiles),)](a, b, c, M, N, K, NUM_SMS=count, WARP_SPECIALIZE=False,
                                                                  FLATTEN=True, **c_)

    configs = [config(w, s, BLOCK_SIZE_M=128, BLOCK_SIZE_N=n, BLOCK_SIZE_K=64, GROUP_SIZE_M=8, EPILOGUE_SUBTILE=e)
               for n, s, w, e in [(128, 4, 4, False), (128, 4, 8, True), (256, 3, 8, False), (256, 3, 8, True)]]
    return Case(configs, launch, lambda: [c], lambda: [a.float() @ b.float().T])


main("matmul_descriptor_persistent", draw, make, 0.01)
