# Steps through softplus, and the sums of their products with A within each chunk.
from harness import *
from src_mamba_chunk_cumsum import _chunk_cumsum_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=200, H=5, C=64)
    return dict(B=d.between(1, 8), T=d.between(512, 16384), H=d.pick([24, 64, 80, 128]), C=d.pick([64, 128, 256]))


def make(B, T, H, C):
    chunks = triton.cdiv(T, C)
    dt, bias, a = randn(B, T, H, dtype=BF16), torch.rand((H,), device=DEVICE), -torch.rand((H,), device=DEVICE)
    out, sums = [torch.empty((B, H, chunks, C), device=DEVICE) for _ in range(2)]

    def launch(c):
        _chunk_cumsum_fwd_kernel[(B, chunks, triton.cdiv(H, c["BLOCK_SIZE_H"]))](
            dt, a, bias, out, sums, B, T, H, C, 0.0, float("inf"), dt.stride(0), dt.stride(1), dt.stride(2), 1, 1,
            out.stride(0), out.stride(2), out.stride(1), out.stride(3), sums.stride(0), sums.stride(2), sums.stride(1),
            sums.stride(3), True, HAS_DT_BIAS=True, BLOCK_SIZE_CHUNK=triton.next_power_of_2(C), **c)

    def expected():
        step = torch.zeros((B, chunks * C, H), device=DEVICE)
        step[:, :T] = torch.nn.functional.softplus(dt.float() + bias)
        step = step.permute(0, 2, 1).reshape(B, H, chunks, C)
        return [step, torch.cumsum(step * a[None, :, None, None], dim=-1)]

    return Case([config(BLOCK_SIZE_H=h) for h in (2, 8, 32)], launch, lambda: [out, sums], expected)


main("mamba_chunk_cumsum", draw, make, 1e-3)
