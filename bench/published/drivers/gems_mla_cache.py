# The latent and the rotary part of new tokens to their slots in a paged cache.
from harness import *
from src_gems_mla_cache import concat_and_cache_mla_kernel

PAGE, PE = 64, 64


def draw(d, tiny):
    if tiny:
        return dict(T=40, R=96)
    return dict(T=d.between(256, 32768), R=512)


def make(T, R):
    pages = triton.cdiv(T, PAGE) + 3
    latent, rotary = randn(T, R, dtype=BF16), randn(T, PE, dtype=BF16)
    cache = torch.zeros((pages * PAGE, R + PE), dtype=BF16, device=DEVICE)
    slots, scale = torch.randperm(pages * PAGE, device=DEVICE)[:T], torch.ones((1,), device=DEVICE)

    def launch(c):
        concat_and_cache_mla_kernel[(T,)](latent, rotary, cache, slots, PAGE * (R + PE), R + PE, latent.stride(0),
                                          rotary.stride(0), R, PE, PAGE, scale, kv_dtype=0,
                                          BLOCK_SIZE=triton.next_power_of_2(R), **c)

    return Case([config()], launch, lambda: [torch.index_select(cache, 0, slots)],
                lambda: [torch.cat([latent, rotary], dim=-1)])


main("gems_mla_cache", draw, make, 1e-6)
