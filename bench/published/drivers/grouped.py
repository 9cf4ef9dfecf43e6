# Triton's tutorial 08: a list of products through pointers that the kernel loads.
from harness import *
from src_grouped import grouped_matmul_kernel


def draw(d, tiny):
    if tiny:
        return dict(COUNT=2, M=128, N=256, K=192)
    return dict(COUNT=d.between(2, 12), M=d.between(128, 2048, 128), N=d.between(512, 4096, 128),
                K=d.between(256, 4096, 64))


def make(COUNT, M, N, K):
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3
    a, b, c = [[kind(*shape) for _ in range(COUNT)] for kind, shape in ((randn, (M, K)), (randn, (K, N)), (empty, (M, N)))]
    a_ptrs, b_ptrs, c_ptrs = [torch.tensor([t.data_ptr() for t in l], device=DEVICE) for l in (a, b, c)]
    sizes = torch.tensor([M, N, K] * COUNT, dtype=torch.int32, device=DEVICE)
    lds = torch.tensor([K, N, N] * COUNT, dtype=torch.int32, device=DEVICE)

    def launch(c_):
        grouped_matmul_kernel[(c_["NUM_SM"],)](a_ptrs, b_ptrs, c_ptrs, sizes, lds, COUNT, **c_)

    configs = [config(NUM_SM=sms, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k) for m, n, k, sms in [
        (128, 128, 64, count), (128, 128, 32, 128), (64, 128, 64, count), (64, 64, 32, 128)]]
    return Case(configs, launch, lambda: [c[0], c[COUNT - 1]],
                lambda: [a[i].float() @ b[i].float() for i in (0, COUNT - 1)])


main("grouped", draw, make, 0.01)
