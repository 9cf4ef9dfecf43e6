# Keys and values of new tokens to their slots in a paged cache.
from harness import *
from src_gems_paged_cache import reshape_and_cache_flash_kernel

PAGE = 16


def draw(d, tiny):
    if tiny:
        return dict(T=40, H=2, D=80)
    return dict(T=d.between(64, 16384), H=d.pick([1, 4, 8, 32]), D=d.pick([64, 80, 128]))


def make(T, H, D):
    pages = triton.cdiv(T, PAGE) + 7
    k, v = randn(T, H, D, dtype=BF16), randn(T, H, D, dtype=BF16)
    caches = [torch.zeros((pages * PAGE, H, D), dtype=BF16, device=DEVICE) for _ in range(2)]
    slots = torch.randperm(pages * PAGE, device=DEVICE)[:T]

    def launch(c):
        reshape_and_cache_flash_kernel[(T,)](k, v, caches[0], caches[1], slots, PAGE * H * D, k.stride(0), v.stride(0), H, D,
                                             PAGE, 1.0, 1.0, H * D, **c)

    return Case([config()], launch, lambda: [torch.index_select(cache, 0, slots) for cache in caches], lambda: [k, v])


main("gems_paged_cache", draw, make, 1e-6)
