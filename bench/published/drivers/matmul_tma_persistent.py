# Triton's tutorial 09: a persistent product whose descriptors come from the host.
from harness import *
from src_matmul_tma_persistent import matmul_kernel_tma_persistent
from triton.tools.tensor_descriptor import TensorDescriptor


def draw(d, tiny):
    if tiny:
        return dict(M=200, N=264, K=136)
    return dict(M=d.between(512, 8192), N=d.between(512, 8192, 8), K=d.between(256, 4096, 8))


def make(M, N, K):
    a, b, c = randn(M, K), randn(N, K), empty(M, N)
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3

    def launch(c_):
        m, n, k = c_["BLOCK_SIZE_M"], c_["BLOCK_SIZE_N"], c_["BLOCK_SIZE_K"]
        matmul_kernel_tma_persistent[(min(count, triton.cdiv(M, m) * triton.cdiv(N, n)),)](
            TensorDescriptor.from_tensor(a, [m, k]), TensorDescriptor.from_tensor(b, [n, k]),
            TensorDescriptor.from_tensor(c, [m, n // 2 if c_["EPILOGUE_SUBTILE"] else n]), M, N, K, FP8_OUTPUT=False,
            NUM_SMS=count, WARP_SPECIALIZE=False, **c_)

    configs = [config(w, s, BLOCK_SIZE_M=128, BLOCK_SIZE_N=n, BLOCK_SIZE_K=64, GROUP_SIZE_M=8, EPILOGUE_SUBTILE=e)
               for n, s, w, e in [(128, 4, 4, False), (128, 4, 8, True), (256, 3, 8, False), (256, 3, 8, True)]]
    return Case(configs, launch, lambda: [c], lambda: [a.float() @ b.float().T])


main("matmul_tma_persistent", draw, make, 0.01)
