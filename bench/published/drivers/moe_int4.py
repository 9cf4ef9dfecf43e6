# A fused mixture of experts whose weights are packed in 4 bits, with scales and zero points for groups of 128.
from routing import *
from src_moe_int4 import fused_moe_kernel_gptq_awq

GROUP = 128


def draw(d, tiny):
    if tiny:
        return dict(TOKENS=20, E=4, TOP=2, N=128, K=256)
    return dict(TOKENS=d.between(16, 512), E=d.pick([8, 16, 32]), TOP=d.pick([2, 4, 6]), N=d.between(512, 4096, 128),
                K=d.between(512, 4096, 128))


def halves(packed, dim):
    low, high = (packed & 15).float(), ((packed.to(torch.int32) >> 4) & 15).float()
    both = torch.stack([low, high], dim=dim + 1)
    shape = list(packed.shape)
    shape[dim] *= 2
    return both.reshape(shape)


def make(TOKENS, E, TOP, N, K):
    routing = Routing(TOKENS, E, TOP)
    a = randn(TOKENS, K, dtype=BF16)
    b = ints(0, 256, (E, N, K // 2), torch.uint8)
    zeros = ints(0, 256, (E, N // 2, K // GROUP), torch.uint8)
    scales = (torch.rand((E, N, K // GROUP), device=DEVICE) * 0.02 + 0.01).to(BF16)
    c = empty(TOKENS * TOP, N, dtype=BF16)

    def launch(c_):
        order, owners, total = routing.by_block(c_["BLOCK_SIZE_M"])
        rows = routing.rows(TOKENS, c_["BLOCK_SIZE_M"])
        grid = (triton.cdiv(rows, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]),)
        fused_moe_kernel_gptq_awq[grid](
            a, b, c, scales, zeros, None, order, owners, total, N, K, rows, TOKENS * TOP, a.stride(0), a.stride(1),
            b.stride(0), b.stride(2), b.stride(1), c.stride(0), c.stride(1), scales.stride(0), scales.stride(2),
            scales.stride(1), zeros.stride(0), zeros.stride(2), zeros.stride(1),
            block_k_diviable=K % c_["BLOCK_SIZE_K"] == 0, group_size=GROUP, MUL_ROUTED_WEIGHT=False, top_k=TOP,
            compute_type=TL_BF16, has_zp=True, use_int4_w4a16=True, use_int8_w8a16=False, **c_)

    def product(e, pairs):
        w = halves(b[e], 1) - halves(zeros[e], 0).repeat_interleave(GROUP, dim=1)
        w = w * scales[e].float().repeat_interleave(GROUP, dim=1)
        return a[pairs // TOP].float() @ w.T

    some = routing.some()
    m = 16 if TOKENS <= 20 else 32 if TOKENS <= 40 else 64
    configs = [config(BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=k, GROUP_SIZE_M=1) for n, k in [(64, 64), (128, 128)]]
    return Case(configs, launch, lambda: [c[pairs] for _, pairs in some], lambda: [product(e, p) for e, p in some])


main("moe_int4", draw, make, 0.02)
