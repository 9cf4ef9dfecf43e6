# silu(gate) * up of the two halves of each row.
from harness import *
from src_lightllm_silu import _silu_and_mul_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=20, N=200)
    return dict(M=d.between(16, 8192), N=d.between(512, 16384, 8))


def make(M, N):
    x, y = randn(M, 2 * N, dtype=BF16), empty(M, N, dtype=BF16)

    def launch(c):
        _silu_and_mul_kernel[(triton.cdiv(M, 128), triton.cdiv(N, 128))](x, y, x.stride(0), x.stride(1), y.stride(0),
                                                                       y.stride(1), M, N, 128, 128, **c)

    def expected():
        gate = x[:, :N].float()
        return [gate * torch.sigmoid(gate) * x[:, N:].float()]

    return Case([config()], launch, lambda: [y], expected)


main("lightllm_silu", draw, make, 0.01)
