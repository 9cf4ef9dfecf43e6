# Softmax of the experts' logits and the largest k, several tokens in a program.
from harness import *
from src_gems_topk_softmax import topk_gating_softmax_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=50, E=60, TOP=4)
    return dict(T=d.between(256, 65536), E=d.pick([8, 60, 64, 128, 256]), TOP=d.pick([2, 4, 8]))


def make(T, E, TOP):
    x = torch.randn((T, E), device=DEVICE)
    w = torch.empty((T, TOP), device=DEVICE)
    ids, rows = [torch.empty((T, TOP), dtype=torch.int32, device=DEVICE) for _ in range(2)]
    experts = max(32, triton.next_power_of_2(E))
    tokens = 1024 // experts

    def launch(c):
        topk_gating_softmax_kernel[(triton.cdiv(T, tokens),)](x, None, w, ids, rows, T, TOP, E, 0, E, INDEX_TY=tl.int32,
                                                              BLOCK_SIZE_ROWS=tokens, BLOCK_SIZE_EXPERTS=experts, **c)

    def expected():
        values, places = torch.topk(torch.softmax(x, dim=-1), TOP, dim=-1)
        source = torch.arange(T, device=DEVICE)[:, None] + torch.arange(TOP, device=DEVICE)[None, :] * T
        return [values, places, source]

    return Case([config()], launch, lambda: [w, ids, rows], expected)


main("gems_topk_softmax", draw, make, 1e-4)
