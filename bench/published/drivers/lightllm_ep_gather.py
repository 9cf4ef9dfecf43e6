# The rows of a token's experts, where it has them, added with their weights.
from harness import *
from src_lightllm_ep_gather import _fwd_kernel_ep_gather


def draw(d, tiny):
    if tiny:
        return dict(T=20, TOP=3, D=2048)
    return dict(T=d.between(64, 16384), TOP=d.pick([2, 4, 8]), D=d.pick([2048, 4096, 7168]))


def make(T, TOP, D):
    x, y = randn(T * TOP, D, dtype=BF16), empty(T, D, dtype=BF16)
    ids = ints(-1, 4, (T, TOP))
    weights, rows = torch.rand((T, TOP), device=DEVICE), torch.randperm(T * TOP, device=DEVICE).to(torch.int32).reshape(T, TOP)

    def launch(c):
        _fwd_kernel_ep_gather[(triton.cdiv(D, 1024), min(T, 1024))](
            T, x, D, 1, ids, TOP, 1, weights, TOP, 1, rows, TOP, 1, y, D, 1, topk_num=TOP, BLOCK_D=1024, **c)

    def expected():
        total, kept = torch.zeros((T, D), device=DEVICE), torch.where(ids >= 0, weights, 0.0)
        for i in range(TOP):
            total = total + torch.index_select(x, 0, rows[:, i]).float() * kept[:, i:i + 1]
        return [total]

    return Case([config(2)], launch, lambda: [y], expected)


main("lightllm_ep_gather", draw, make, 0.01)
