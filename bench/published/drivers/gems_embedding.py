# The embeddings of tokens.
from harness import *
from src_gems_embedding import embedding_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=40, V=100, D=200)
    return dict(T=d.between(512, 65536), V=d.pick([32000, 50257, 128256]), D=d.pick([768, 1600, 2048, 4096]))


def make(T, V, D):
    table, ids = randn(V, D, dtype=BF16), torch.randint(0, V, (T,), device=DEVICE)
    y = empty(T, D, dtype=BF16)

    def launch(c):
        embedding_kernel[(T,)](y, ids, table, D, triton.next_power_of_2(D), **c)

    return Case([config()], launch, lambda: [y], lambda: [torch.index_select(table, 0, ids)])


main("gems_embedding", draw, make, 1e-6)
