# A persistent batched product with one fixed configuration, so that results do not depend on the batch.
from harness import *
from src_bmm_invariant import bmm_kernel_persistent


def draw(d, tiny):
    if tiny:
        return dict(B=3, M=70, N=136, K=72)
    return dict(B=d.between(2, 64), M=d.between(64, 1024), N=d.between(64, 1024, 8), K=d.between(64, 1024, 8))


def make(B, M, N, K):
    a, b, c = randn(B, M, K, dtype=BF16), randn(B, K, N, dtype=BF16), empty(B, M, N, dtype=BF16)
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3

    def launch(c_):
        tiles = B * triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"])
        bmm_kernel_persistent[(min(count, tiles),)](
            a, b, c, B, M, N, K, a.stride(0), a.stride(1), a.stride(2), b.stride(0), b.stride(1), b.stride(2), c.stride(0),
            c.stride(1), c.stride(2), NUM_SMS=count, A_LARGE=False, B_LARGE=False, C_LARGE=False, **c_)

    configs = [config(8, 3, BLOCK_SIZE_M=128, BLOCK_SIZE_N=128, BLOCK_SIZE_K=64, GROUP_SIZE_M=8)]
    return Case(configs, launch, lambda: [c], lambda: [torch.bmm(a.float(), b.float())])


main("bmm_invariant", draw, make, 0.02)
