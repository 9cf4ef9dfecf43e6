# Triton's tutorial 08: a list of products whose descriptors the kernel makes.
from harness import *
from src_grouped_tma import grouped_matmul_tma_kernel


def draw(d, tiny):
    if tiny:
        return dict(COUNT=2, M=128, N=256, K=192)
    return dict(COUNT=d.between(2, 12), M=d.between(128, 2048, 128), N=d.between(512, 4096, 128),
                K=d.between(256, 4096, 64))


def make(COUNT, M, N, K):
    allocate_descriptors()
    programs = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3
    a = [randn(M, K) for _ in range(COUNT)]
    b = [randn(N, K) for _ in range(COUNT)]
    c = [empty(M, N) for _ in range(COUNT)]
    a_ptrs, b_ptrs, c_ptrs = [torch.tensor([t.data_ptr() for t in l], device=DEVICE) for l in (a, b, c)]
    sizes = torch.tensor([M, N, K] * COUNT, dtype=torch.int32, device=DEVICE)
    lds = torch.tensor([K, K, N] * COUNT, dtype=torch.int32, device=DEVICE)

    def launch(c_):
        grouped_matmul_tma_kernel[(programs,)](a_ptrs, b_ptrs, c_ptrs, sizes, lds, COUNT, FP8=False, NUM_SM=programs, **c_)

    configs = [config(w, s, BLOCK_SIZE_M=128, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k)
               for n, k, s, w in [(128, 64, 4, 4), (128, 64, 3, 8), (256, 64, 4, 8), (128, 128, 3, 8)]]
    return Case(configs, launch, lambda: [c[0], c[COUNT - 1]],
                lambda: [a[i].float() @ b[i].float().T for i in (0, COUNT - 1)])


main("grouped_tma", draw, make, 0.01)
