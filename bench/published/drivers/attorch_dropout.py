# Dropout with tl.rand, one number for each element.
from harness import *
import philox
from src_attorch_dropout import dropout_forward_kernel

SEED = 1234567


def draw(d, tiny):
    if tiny:
        return dict(N=3000)
    return dict(N=d.between(65536, 16777216))


def make(N):
    x, y = randn(N, dtype=BF16), empty(N, dtype=BF16)

    def launch(c):
        dropout_forward_kernel[(triton.cdiv(N, c["BLOCK_SIZE"]),)](x, y, N, 0.3, SEED, **c)

    def expected():
        random = philox.uniform(philox.words(SEED, torch.arange(N, device=DEVICE))[0])
        return [torch.where(random < 0.3, 0.0, x.float() / 0.7)]

    return Case([config(w, BLOCK_SIZE=b) for b, w in ((64, 2), (256, 4), (1024, 8))], launch, lambda: [y], expected)


main("attorch_dropout", draw, make, 0.01)
