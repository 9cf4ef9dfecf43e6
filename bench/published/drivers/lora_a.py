# Segments of a batch times the small matrices of their adapters.
from harness import *
from src_lora_a import _sgemm_lora_a_kernel


def draw(d, tiny):
    if tiny:
        return dict(SEGMENTS=3, N=40, R=16, K=300)
    return dict(SEGMENTS=d.between(1, 16), N=d.between(16, 1024), R=d.pick([16, 32, 64]), K=d.between(1024, 8192, 8))


def make(SEGMENTS, N, R, K):
    x, weights = randn(SEGMENTS * N, K, dtype=BF16), randn(4, R, K, dtype=BF16)
    out = empty(SEGMENTS * N, R, dtype=BF16)
    lengths = torch.full((SEGMENTS,), N, dtype=torch.int32, device=DEVICE)
    starts = torch.arange(SEGMENTS + 1, dtype=torch.int32, device=DEVICE) * N
    adapters = (torch.arange(SEGMENTS, dtype=torch.int32, device=DEVICE) % 4).to(torch.int32)
    ranks = torch.full((4,), R, dtype=torch.int32, device=DEVICE)

    def launch(c):
        _sgemm_lora_a_kernel[(triton.cdiv(N, 16) * triton.cdiv(R, 16), SEGMENTS)](
            x, weights, out, R, K, 1, x.stride(0), x.stride(1), weights.stride(0), weights.stride(1), weights.stride(2),
            out.stride(0), out.stride(1), lengths, starts, adapters, ranks, None, False, 16, 16, 256, **c)

    def expected():
        return [x[i * N:(i + 1) * N].float() @ weights[i % 4].float().T for i in (0, SEGMENTS - 1)]

    return Case([config()], launch, lambda: [out[i * N:(i + 1) * N] for i in (0, SEGMENTS - 1)], expected)


main("lora_a", draw, make, 0.02)
