# Dropout with its mask, four numbers of each call of Philox.
from harness import *
import philox
from src_gems_dropout import dropout_forward_kernel

SEED, BLOCK = 9876543210, 1024


def draw(d, tiny):
    if tiny:
        return dict(N=9000)
    return dict(N=d.between(65536, 16777216))


def make(N):
    x, y = randn(N, dtype=BF16), empty(N, dtype=BF16)
    mask = torch.empty((N,), dtype=torch.bool, device=DEVICE)
    programs = triton.cdiv(N, BLOCK * 4)

    def launch(c):
        dropout_forward_kernel[(programs,)](x, y, mask, N, 0.3, SEED, 0, BLOCK=BLOCK, **c)

    def expected():
        words = philox.words(SEED, torch.arange(programs * BLOCK, device=DEVICE))
        random = torch.stack([philox.uniform(w).reshape(programs, BLOCK) for w in words], dim=1)
        kept = (random.reshape(programs * BLOCK * 4)[:N] > 0.3).float()
        return [x.float() * kept / 0.7, kept]

    return Case([config(16)], launch, lambda: [y, mask], expected)


main("gems_dropout", draw, make, 0.01)
