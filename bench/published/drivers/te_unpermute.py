# The rows of a token's experts added with their probabilities.
from harness import *
from permutation import Permutation
from src_te_unpermute import _unpermute_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=20, E=8, TOP=3, D=1000)
    return dict(T=d.between(256, 16384), E=d.pick([8, 32, 64]), TOP=d.pick([2, 4, 8]), D=d.pick([1024, 2048, 4096, 7168]))


def make(T, E, TOP, D):
    x, y = randn(T * TOP, D, dtype=BF16), empty(T, D, dtype=BF16)
    p = Permutation(T, E, TOP)
    probs = torch.softmax(torch.randn((T, E), device=DEVICE), dim=-1)

    def launch(c):
        _unpermute_kernel[(T, triton.cdiv(D, c["BLOCK_SIZE"]))](
            x, p.map, probs, None, None, y, None, 2 * E + 1, 1, D, 1, D, 1, E, 1, None, None, None, y, None, E, D,
            PROBS_LOAD_WIDTH=triton.next_power_of_2(E), WITH_MERGING_PROBS=True, PERMUTE_PROBS=False, FUSION_UNPAD=False, **c)

    def expected():
        weights, total = torch.gather(probs, 1, p.ids), torch.zeros((T, D), device=DEVICE)
        for i in range(TOP):
            total = total + torch.index_select(x, 0, p.rows[:, i]).float() * weights[:, i:i + 1]
        return [total]

    return Case([config(BLOCK_SIZE=b) for b in (256, 1024, 4096)], launch, lambda: [y], expected)


main("te_unpermute", draw, make, 0.01)
