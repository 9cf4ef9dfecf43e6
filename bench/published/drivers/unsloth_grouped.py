# The products of a mixture of experts, persistent: tokens gathered by expert as they are loaded (the first product), or
# scattered back and weighted as they are stored (the second).
from routing import *
from src_unsloth_grouped import _grouped_gemm_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(TOKENS=40, E=4, TOP=2, N=96, K=256, SECOND=1)
    return dict(TOKENS=d.between(16, 4096), E=d.pick([8, 16, 64]), TOP=d.pick([1, 2, 4, 8]), N=d.between(512, 4096, 32),
                K=d.between(512, 4096, 128), SECOND=d.pick([0, 1]))


def make(TOKENS, E, TOP, N, K, SECOND):
    routing = Routing(TOKENS, E, TOP)
    x, w = randn(TOKENS * TOP if SECOND else TOKENS, K, dtype=BF16), randn(E * N, K, dtype=BF16)
    y = empty(TOKENS * TOP, N, dtype=BF16)
    weights = torch.rand((TOKENS * TOP,), device=DEVICE)
    sizes = [len(m) for m in routing.members]
    starts = [sum(sizes[:e]) for e in range(E)]
    counts = torch.tensor(sizes, dtype=torch.int32, device=DEVICE)
    gather = torch.tensor([i for m in routing.members for i in m], dtype=torch.int32, device=DEVICE)
    sms = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3

    def launch(c):
        _grouped_gemm_forward_kernel[(sms,)](
            x, w, y, counts, gather, weights, NUM_EXPERTS=E, NUM_TOKENS=TOKENS, TOPK=TOP, N=N, K=K, NUM_SMS=sms,
            PERMUTE_X=SECOND == 0, PERMUTE_Y=SECOND == 1, FUSE_MUL_POST=SECOND == 1, **c)

    some = routing.some()

    def of_expert(e, pairs):
        left = x[starts[e]:starts[e] + sizes[e]] if SECOND else x[pairs // TOP]
        right = left.float() @ w[e * N:(e + 1) * N].float().T
        return right * weights[pairs][:, None] if SECOND else right

    configs = [config(w_, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k) for m, n, k, w_, s in [
        (128, 128, 64, 8, 3), (64, 64, 64, 4, 4), (64, 128, 128, 4, 3), (128, 256, 64, 8, 3)]]
    return Case(configs, launch, lambda: [y[pairs] if SECOND else y[starts[e]:starts[e] + sizes[e]] for e, pairs in some],
                lambda: [of_expert(e, pairs) for e, pairs in some])


main("unsloth_grouped", draw, make, 0.02)
