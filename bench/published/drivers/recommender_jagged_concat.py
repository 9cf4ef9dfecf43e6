# Rows of two lists of sequences, one sequence behind the other.
from harness import *
from src_recommender_jagged_concat import _concat_2D_jagged


def draw(d, tiny):
    if tiny:
        return dict(B=3, MOST=20, D=100)
    return dict(B=d.between(8, 256), MOST=d.between(64, 1024), D=d.pick([128, 256, 512]))


def make(B, MOST, D):
    d = Draw(B, MOST, "lengths")
    lengths = [[1 + d.next() % MOST for _ in range(B)] for _ in range(2)]
    offsets = [torch.tensor([sum(n[:i]) for i in range(B + 1)], dtype=torch.int64, device=DEVICE) for n in lengths]
    a, b = [randn(sum(n), D, dtype=BF16) for n in lengths]
    out = empty(sum(lengths[0]) + sum(lengths[1]), D, dtype=BF16)

    def launch(c):
        _concat_2D_jagged[(2 * MOST, B)](a, b, offsets[0], offsets[1], MOST, MOST, out, D, D, D, D, 0, IS_DENSE_A=False,
                                         IS_DENSE_B=False, BLOCK_D=triton.next_power_of_2(D), **c)

    def expected():
        parts, starts = [], [0, 0]
        for i in range(B):
            for side, x in enumerate((a, b)):
                parts.append(x[starts[side]:starts[side] + lengths[side][i]])
                starts[side] = starts[side] + lengths[side][i]
        return [torch.cat(parts)]

    return Case([config()], launch, lambda: [out], expected)


main("recommender_jagged_concat", draw, make, 1e-6)
