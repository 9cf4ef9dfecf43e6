# Quantiles of sorted rows, between two of their elements.
from harness import *
from src_gems_quantile import quantile_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=70, M=33, Q=5)
    return dict(N=d.between(1024, 262144), M=d.between(64, 1024), Q=d.pick([1, 3, 9, 64]))


def make(N, M, Q):
    x, _ = torch.sort(torch.randn((N, M), device=DEVICE), dim=-1)
    q, out = torch.rand((Q,), device=DEVICE), torch.empty((N, Q), device=DEVICE)
    block_q = triton.next_power_of_2(min(triton.cdiv(Q, 8), 16))
    block_n = triton.next_power_of_2(triton.cdiv(N, 512)) if N >= 65536 else (
        triton.next_power_of_2(triton.cdiv(N, 128)) if N >= 4096 else 32)

    def launch(c):
        quantile_kernel[(triton.cdiv(Q, block_q), triton.cdiv(N, block_n))](
            x, q, out, N, M, Q, BLOCK_Q=block_q, BLOCK_N=block_n, interpolation="linear", **c)

    def expected():
        place = q * (M - 1)
        low, high = torch.floor(place), torch.ceil(place)
        a, b = x[:, low.to(torch.int64)], x[:, high.to(torch.int64)]
        return [a + (b - a) * (place - low)[None, :]]

    return Case([config()], launch, lambda: [out], expected)


main("gems_quantile", draw, make, 1e-4)
