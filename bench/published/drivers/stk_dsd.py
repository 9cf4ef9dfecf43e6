# A matrix of which only some blocks are stored, times a dense one.
from harness import *
from src_stk_dsd import _dsd_kernel

BLOCK = 128


def draw(d, tiny):
    if tiny:
        return dict(ROWS=2, INNER=3, N=128)
    return dict(ROWS=d.between(4, 64), INNER=d.between(8, 64), N=d.between(512, 8192, 128))


def make(ROWS, INNER, N):
    d = Draw(ROWS, INNER, "blocks")
    held = [[j for j in range(INNER) if d.next() % 4 == 0] for _ in range(ROWS)]
    inner = [j for row in held for j in row]
    columns = torch.tensor(inner, dtype=torch.int16, device=DEVICE)
    offsets = torch.tensor([sum(len(row) for row in held[:i]) for i in range(ROWS + 1)], dtype=torch.int32, device=DEVICE)
    a, b = randn(max(1, len(inner)), BLOCK, BLOCK, dtype=BF16), randn(INNER * BLOCK, N, dtype=BF16)
    c = empty(ROWS * BLOCK, N, dtype=BF16)

    def launch(c_):
        _dsd_kernel[(ROWS, triton.cdiv(N, c_["BLOCK_N"]))](
            a, b, c, ROWS * BLOCK, N, INNER * BLOCK, a.stride(1), a.stride(2), b.stride(0), b.stride(1), c.stride(0),
            c.stride(1), columns, columns, offsets, columns, False, False, BLOCK_SIZE=BLOCK, GROUP_M=128,
            ACC_TYPE=tl.float32, **c_)

    shown = [i for i in range(ROWS) if held[i]][-1:]

    def expected():
        first = sum(len(row) for row in held[:shown[0]])
        terms = [a[first + i].float() @ b[j * BLOCK:(j + 1) * BLOCK].float() for i, j in enumerate(held[shown[0]])]
        return [sum(terms[1:], terms[0])]

    return Case([config(4, 4, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32)], launch,
                lambda: [c[i * BLOCK:(i + 1) * BLOCK] for i in shown], expected)


main("stk_dsd", draw, make, 0.02)
