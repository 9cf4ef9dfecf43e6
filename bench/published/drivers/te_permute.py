# Tokens copied to the rows of their experts.
from harness import *
from permutation import Permutation
from src_te_permute import _permute_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=20, E=8, TOP=3, D=1000)
    return dict(T=d.between(256, 16384), E=d.pick([8, 32, 64]), TOP=d.pick([2, 4, 8]), D=d.pick([1024, 2048, 4096, 7168]))


def make(T, E, TOP, D):
    x, y = randn(T, D, dtype=BF16), empty(T * TOP, D, dtype=BF16)
    p = Permutation(T, E, TOP)

    def launch(c):
        _permute_kernel[(T, triton.cdiv(D, c["BLOCK_SIZE"]))](
            x, p.map, None, None, None, None, y, None, 0, T, T * TOP, 2 * E + 1, 1, D, 1, D, 1, None, None, None, None, None,
            None, None, y, None, E, D, PERMUTE_PROBS=False, PERMUTE_SCALE=False, FUSION_PAD=False, **c)

    return Case([config(BLOCK_SIZE=b) for b in (256, 1024, 4096)], launch, lambda: [y],
                lambda: [torch.index_select(x, 0, p.order // TOP)])


main("te_permute", draw, make, 1e-6)
