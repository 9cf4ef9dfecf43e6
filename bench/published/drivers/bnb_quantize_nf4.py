# Blocks of 64 elements to the sixteen values of NF4, two in a byte.
from harness import *
from src_bnb_quantize_nf4 import quantize_nf4_blockwise_kernel

BLOCK = 64
BOUNDS = [-0.8480964004993439, -0.6106329262256622, -0.4599952697753906, -0.33967943489551544,
          -0.23460740596055984, -0.13791173323988914, -0.045525018125772476, 0.03979014977812767, 0.1202552504837513,
          0.2035212516784668, 0.2920137718319893, 0.3893125355243683, 0.5016634166240692, 0.6427869200706482,
          0.8614784181118011]


def draw(d, tiny):
    if tiny:
        return dict(N=3008)
    return dict(N=d.between(262144, 67108864, 64))


def make(N):
    x = torch.randn((N,), device=DEVICE)
    scales, y = torch.empty((N // BLOCK,), device=DEVICE), torch.empty((N // 2,), dtype=torch.uint8, device=DEVICE)

    def launch(c):
        quantize_nf4_blockwise_kernel[(triton.cdiv(N // BLOCK, 4),)](x, scales, y, N, N // BLOCK, BLOCK_SIZE=BLOCK,
                                                                     SPLIT_NUM_BLOCKS=4, **c)

    def expected():
        rows = x.reshape(N // BLOCK, BLOCK)
        largest = rows.abs().amax(dim=-1)
        scaled, codes = (rows / largest[:, None]).reshape(N // 2, 2), torch.zeros((N // 2, 2), device=DEVICE)
        for bound in BOUNDS:
            codes = codes + (scaled > bound).float()
        return [codes[:, 0], codes[:, 1], largest]

    # A quotient may round to the other side of a bound: codes may differ by one.
    return Case([config()], launch, lambda: [y >> 4, y & 15, scales], expected)


main("bnb_quantize_nf4", draw, make, 0.07)
