# A fused mixture of experts in float8 with a scale for each block of 128.
from routing import *
from src_moe_fp8 import fused_moe_kernel


def draw(d, tiny):
    if tiny:
        return dict(TOKENS=20, E=4, TOP=2, N=128, K=256)
    return dict(TOKENS=d.between(16, 2048), E=d.pick([8, 16, 32]), TOP=d.pick([2, 4, 6]), N=d.between(512, 4096, 128),
                K=d.between(512, 4096, 128))


def make(TOKENS, E, TOP, N, K):
    routing = Routing(TOKENS, E, TOP)
    a, b = randn(TOKENS, K, dtype=torch.float8_e4m3fn), randn(E, N, K, dtype=torch.float8_e4m3fn)
    a_scale = torch.rand((TOKENS, K // 128), device=DEVICE) + 0.5
    b_scale = torch.rand((E, N // 128, K // 128), device=DEVICE) + 0.5
    c = empty(TOKENS * TOP, N, dtype=BF16)

    def launch(c_):
        order, owners, total = routing.by_block(c_["BLOCK_SIZE_M"])
        rows = routing.rows(TOKENS, c_["BLOCK_SIZE_M"])
        grid = (triton.cdiv(rows, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]),)
        fused_moe_kernel[grid](a, b, c, a_scale, b_scale, None, order, owners, total, N, K, rows, TOKENS * TOP,
                               a.stride(0), a.stride(1), b.stride(0), b.stride(2), b.stride(1), c.stride(0), c.stride(1),
                               a_scale.stride(0), a_scale.stride(1), b_scale.stride(0), b_scale.stride(2),
                               b_scale.stride(1), 128, 128, MUL_ROUTED_WEIGHT=False, top_k=TOP, compute_type=TL_BF16,
                               use_fp8_w8a8=True, use_int8_w8a8=False, use_int8_w8a16=False, per_channel_quant=False, **c_)

    def product(e, pairs):
        x = a[pairs // TOP].float() * a_scale[pairs // TOP].repeat_interleave(128, dim=1)
        w = b[e].float() * b_scale[e].repeat_interleave(128, dim=0).repeat_interleave(128, dim=1)
        return x @ w.T

    some = routing.some()
    configs = [config(4, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128, GROUP_SIZE_M=g)
               for m, g, s in [(64, 32, 3), (16, 1, 4)]]
    return Case(configs, launch, lambda: [c[pairs] for _, pairs in some], lambda: [product(e, p) for e, p in some])


main("moe_fp8", draw, make, 0.02)
