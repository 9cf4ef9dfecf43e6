# A step of Adam with states of 8 bits: codes looked up, then found again by binary search.
from harness import *
from src_bnb_adam_8bit import _optimizer_update_2state_8bit_blockwise_triton_kernel

BLOCK = 256


def draw(d, tiny):
    if tiny:
        return dict(N=3072)
    return dict(N=d.between(65536, 33554432, 256))


def make(N):
    p0, g = torch.randn((N,), device=DEVICE), torch.randn((N,), device=DEVICE)
    line = (torch.arange(256, device=DEVICE).float() - 127.5) / 127.5
    signed, positive = line * line.abs(), (torch.arange(256, device=DEVICE).float() / 255.0).square()
    m0, v0 = ints(0, 256, (N,), torch.uint8), ints(0, 256, (N,), torch.uint8)
    scale_m0, scale_v0 = [torch.rand((N // BLOCK,), device=DEVICE) + 0.1 for _ in range(2)]
    p, m, v, scale_m, scale_v = [t.clone() for t in (p0, m0, v0, scale_m0, scale_v0)]

    def reset():
        for t, t0 in ((p, p0), (m, m0), (v, v0), (scale_m, scale_m0), (scale_v, scale_v0)):
            t.copy_(t0)

    def launch(c):
        _optimizer_update_2state_8bit_blockwise_triton_kernel[(N // BLOCK,)](
            p, g, m, v, 0.9, 0.999, 0.0, 0.0, 1e-8, 10, 0.9**10, 0.999**10, 1e-2, signed, positive, scale_m, scale_v, 0.01, 1.0,
            N, BLOCK, 1, 3, **c)

    def decoded(codes, table, scales):
        return table[codes.to(torch.int64)] * scales.repeat_interleave(BLOCK)

    def expected():
        mean = decoded(m0, signed, scale_m0) * 0.9 + g * 0.1
        square = decoded(v0, positive, scale_v0) * 0.999 + g * g * 0.001
        root = torch.sqrt(square) / math.sqrt(1 - 0.999**10) + 1e-8
        return [p0 * (1 - 1e-2 * 0.01) - 1e-2 / (1 - 0.9**10) * mean / root, mean, square]

    # The states by value: as far from the exact ones as their codes are apart.
    return Case([config(2)], launch, lambda: [p, decoded(m, signed, scale_m), decoded(v, positive, scale_v)], expected, reset)


main("bnb_adam_8bit", draw, make, 0.01)
