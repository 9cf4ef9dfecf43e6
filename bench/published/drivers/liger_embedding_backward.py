# The gradient of an embedding: rows added atomically where tokens repeat.
from harness import *
from src_liger_embedding_backward import embedding_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=40, V=23, D=200)
    return dict(N=d.between(1024, 16384), V=d.pick([32000, 50257]), D=d.pick([768, 1024, 2048, 4096]))


def make(N, V, D):
    dy, dw = torch.randn((N, D), device=DEVICE), torch.zeros((V, D), device=DEVICE)
    ids = torch.randint(0, V, (N,), device=DEVICE)
    block = triton.next_power_of_2(min(128, D))

    def launch(c):
        embedding_backward_kernel[(triton.cdiv(N, block), triton.cdiv(D, block))](dy, dw, ids, N, embedding_dim=D,
                                                                                  BLOCK_SIZE_M=block, BLOCK_SIZE_N=block, **c)

    return Case([config()], launch, lambda: [dw], lambda: [torch.zeros_like(dw).index_add_(0, ids, dy)], lambda: dw.zero_())


main("liger_embedding_backward", draw, make, 1e-4)
