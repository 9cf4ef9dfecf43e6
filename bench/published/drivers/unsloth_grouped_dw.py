# The gradients of a mixture's weights: for each expert its tokens' gradients, transposed, times its gathered tokens.
from routing import *
from src_unsloth_grouped_dw import _grouped_gemm_dW_kernel


def draw(d, tiny):
    if tiny:
        return dict(TOKENS=40, E=4, TOP=2, N=64, K=256, SECOND=1)
    return dict(TOKENS=d.between(256, 8192), E=d.pick([8, 16, 32]), TOP=d.pick([1, 2, 4]), N=d.between(512, 4096, 64),
                K=d.between(512, 4096, 64), SECOND=d.pick([0, 1]))


def make(TOKENS, E, TOP, N, K, SECOND):
    routing = Routing(TOKENS, E, TOP)
    x, dy = randn(TOKENS * TOP if SECOND else TOKENS, K, dtype=BF16), randn(TOKENS * TOP, N, dtype=BF16)
    dw = empty(E, N, K, dtype=BF16)
    sizes = [len(m) for m in routing.members]
    starts = [sum(sizes[:e]) for e in range(E)]
    counts = torch.tensor(sizes, dtype=torch.int32, device=DEVICE)
    gather = torch.tensor([i for m in routing.members for i in m], dtype=torch.int32, device=DEVICE)
    sms = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3

    def launch(c):
        _grouped_gemm_dW_kernel[(sms,)](x, dy, dw, counts, gather, NUM_TOKENS=TOKENS, TOPK=TOP, NUM_EXPERTS=E, N=N, K=K,
                                        NUM_SMS=sms, PERMUTE_X=SECOND == 0, PERMUTE_Y=SECOND == 1, **c)

    some = routing.some()

    def of_expert(e, pairs):
        own = slice(starts[e], starts[e] + sizes[e])
        left, right = (dy[pairs], x[own]) if SECOND else (dy[own], x[pairs // TOP])
        return left.float().T @ right.float()

    configs = [config(w_, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k) for m, n, k, w_, s in [
        (64, 64, 64, 4, 3), (64, 128, 128, 8, 3), (128, 128, 64, 4, 2), (64, 128, 64, 4, 3)]]
    return Case(configs, launch, lambda: [dw[e] for e, _ in some], lambda: [of_expert(e, pairs) for e, pairs in some])


main("unsloth_grouped_dw", draw, make, 0.02)
