# A product of dense matrices of which only some blocks are computed.
from harness import *
from src_stk_sdd import _sdd_kernel

BLOCK = 128


def draw(d, tiny):
    if tiny:
        return dict(ROWS=2, COLUMNS=2, K=64, TRANSPOSED=0)
    return dict(ROWS=d.between(4, 48), COLUMNS=d.between(8, 64), K=d.between(256, 4096, 32), TRANSPOSED=d.pick([0, 1]))


def make(ROWS, COLUMNS, K, TRANSPOSED):
    m, n = ROWS * BLOCK, COLUMNS * BLOCK
    a = randn(m, K)
    b = randn(n, K).T if TRANSPOSED else randn(K, n)
    d = Draw(ROWS, COLUMNS, "blocks")
    places = [(i, j) for i in range(ROWS) for j in range(COLUMNS) if d.next() % 4 == 0] or [(0, 0)]
    rows, columns = [torch.tensor([p[i] for p in places], dtype=torch.int16, device=DEVICE) for i in (0, 1)]
    c = empty(len(places), BLOCK, BLOCK)

    def launch(c_):
        _sdd_kernel[(len(places),)](a, b, c, m, n, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(1),
                                    c.stride(2), rows, columns, BLOCK_SIZE=BLOCK, GROUP_M=128, ACC_TYPE=tl.float32, **c_)

    def expected():
        shown = [places[0], places[-1]]
        return [a[i * BLOCK:(i + 1) * BLOCK].float() @ b[:, j * BLOCK:(j + 1) * BLOCK].float() for i, j in shown]

    return Case([config(4, 4, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32)], launch, lambda: [c[0], c[len(places) - 1]], expected)


main("stk_sdd", draw, make, 0.02)
