# NF4 with a scale for each block of 64 elements to bfloat16.
from harness import *
from src_bnb_dequantize_nf4 import dequant_nf4_kernel

BLOCK = 64
VALUES = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
          -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
          0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]


def draw(d, tiny):
    if tiny:
        return dict(N=3008)
    return dict(N=d.between(262144, 67108864, 64))


def make(N):
    x, scales = ints(0, 256, (N // 2,), torch.uint8), torch.rand((N // BLOCK,), device=DEVICE)
    y = empty(N, dtype=BF16)

    def launch(c):
        dequant_nf4_kernel[(triton.cdiv(N // 2, 256),)](x, y, scales, N // 2, N, BLOCK, 256, **c)

    def expected():
        table = torch.tensor(VALUES, device=DEVICE)
        codes = torch.stack([x >> 4, x & 15], dim=-1).reshape(N).to(torch.int64)
        return [table[codes] * scales.repeat_interleave(BLOCK)]

    return Case([config()], launch, lambda: [y], expected)


main("bnb_dequantize_nf4", draw, make, 0.005)
