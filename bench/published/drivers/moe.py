# A fused mixture of experts in bfloat16.
from routing import *
from src_moe import fused_moe_kernel


def draw(d, tiny):
    if tiny:
        return dict(TOKENS=20, E=4, TOP=2, N=64, K=128)
    return dict(TOKENS=d.between(16, 2048), E=d.pick([8, 16, 32]), TOP=d.pick([2, 4, 6]), N=d.between(512, 4096, 64),
                K=d.between(512, 4096, 64))


def make(TOKENS, E, TOP, N, K):
    routing = Routing(TOKENS, E, TOP)
    a, b = randn(TOKENS, K, dtype=BF16), randn(E, N, K, dtype=BF16)
    c = empty(TOKENS * TOP, N, dtype=BF16)

    def launch(c_):
        order, owners, total = routing.by_block(c_["BLOCK_SIZE_M"])
        rows = routing.rows(TOKENS, c_["BLOCK_SIZE_M"])
        grid = (triton.cdiv(rows, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]),)
        fused_moe_kernel[grid](a, b, c, None, None, None, order, owners, total, N, K, rows, TOKENS * TOP, a.stride(0),
                               a.stride(1), b.stride(0), b.stride(2), b.stride(1), c.stride(0), c.stride(1), 0, 0, 0, 0, 0,
                               0, 0, MUL_ROUTED_WEIGHT=False, top_k=TOP, compute_type=TL_BF16, use_fp8_w8a8=False,
                               use_int8_w8a8=False, use_int8_w8a16=False, per_channel_quant=False, **c_)

    some = routing.some()
    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k, GROUP_SIZE_M=g) for m, n, k, g, w, s in (
        [(16, 32, 64, 1, 4, 3), (16, 64, 128, 1, 4, 4)] if TOKENS <= E else
        [(64, 64, 32, 8, 4, 3), (16, 128, 64, 1, 4, 4), (64, 128, 64, 16, 4, 4), (128, 128, 64, 16, 8, 4)])]
    return Case(configs, launch, lambda: [c[pairs] for _, pairs in some],
                lambda: [a[pairs // TOP].float() @ b[e].float().T for e, pairs in some])


main("moe", draw, make, 0.02)
