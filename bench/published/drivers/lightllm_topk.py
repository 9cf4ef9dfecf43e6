# The largest probabilities of each token's experts, one maximum after the other.
from harness import *
from src_lightllm_topk import softmax_topk_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=20, E=60, TOP=4)
    return dict(T=d.between(256, 65536), E=d.pick([60, 64, 128, 256]), TOP=d.pick([2, 4, 8]))


def make(T, E, TOP):
    x = torch.randn((T, E), device=DEVICE)
    w, i = torch.empty((T, TOP), dtype=torch.float32, device=DEVICE), torch.empty((T, TOP), dtype=torch.int32, device=DEVICE)
    block = triton.next_power_of_2(E)

    def launch(c):
        softmax_topk_kernel[(T,)](w, i, x, x.stride(0), w.stride(0), i.stride(0), T, E, BLOCK_SIZE=block,
                                  BLOCK_TOPK=triton.next_power_of_2(TOP), top_k=TOP, NEED_MASK=block != E, RENORM=False, **c)

    def expected():
        values, places = torch.topk(torch.softmax(x, dim=-1), TOP, dim=-1)
        return [values, places]

    return Case([config(min(max(1, block // 256), 16))], launch, lambda: [w, i], expected)


main("lightllm_topk", draw, make, 1e-4)
