# The Hadamard transform of each token's head, its stages exchanged through global memory behind barriers.
from harness import *
from src_ao_hadamard import _inverse_hadamard_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, H=2, S=37, D=64)
    return dict(B=d.between(1, 4), H=d.pick([8, 24, 32, 40]), S=d.between(512, 16384), D=d.pick([64, 128]))


def make(B, H, S, D):
    x, y = randn(B, H, S, D, dtype=BF16), empty(B, H, S, D, dtype=BF16)
    # The published number of chunks: four programs for each of 132 multiprocessors.
    chunks = min(max(1, 528 // (B * H)), max(1, S // 32), 64)
    temp = torch.empty((B, H, chunks, D), device=DEVICE)
    bits = 6 if D == 64 else 7

    def launch(c):
        _inverse_hadamard_kernel[(B, H, chunks)](
            x, y, temp, x.stride(0), x.stride(1), x.stride(2), x.stride(3), y.stride(0), y.stride(1), y.stride(2), y.stride(3),
            temp.stride(0), temp.stride(1), temp.stride(2), temp.stride(3), S, H, triton.cdiv(S, chunks), chunks, D=D,
            LOG2_D=bits, USE_BFLOAT16=not INTERPRETED, **c)

    def expected():
        h = x.float()
        for stage in range(bits):
            pairs = h.reshape(B, H, S, D >> (stage + 1), 2, 1 << stage)
            a, b = pairs[:, :, :, :, 0], pairs[:, :, :, :, 1]
            h = torch.stack([a + b, a - b], dim=4).reshape(B, H, S, D)
        return [h / math.sqrt(D)]

    return Case([config()], launch, lambda: [y], expected)


main("ao_hadamard", draw, make, 0.01)
