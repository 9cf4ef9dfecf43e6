# Columns picked by an index, in all rows.
from harness import *
from src_gems_index_select import index_select_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=13, N=1000, COUNT=300)
    return dict(M=d.between(64, 4096), N=d.between(512, 16384), COUNT=d.between(256, 8192))


def make(M, N, COUNT):
    x, index = randn(M, N, dtype=BF16), torch.randint(0, N, (COUNT,), device=DEVICE)
    y = empty(M, COUNT, dtype=BF16)
    rows = min(4, triton.next_power_of_2(triton.cdiv(256, N)))
    columns = max(min(triton.next_power_of_2(triton.cdiv(N, 16)), 512), 16)

    def launch(c):
        index_select_kernel[(triton.cdiv(M, rows), triton.cdiv(COUNT, columns))](x, y, M, N, index, COUNT, BLOCK_M=rows,
                                                                                 BLOCK_N=columns, **c)

    return Case([config()], launch, lambda: [y], lambda: [torch.index_select(x, 1, index)])


main("gems_index_select", draw, make, 1e-6)
