# silu(gate) * up, clamped, and quantized to float8 by groups of 128 with scales that are powers of two.
from harness import *
from src_lmdeploy_swiglu_quant import _v4_swiglu_quant_fp8_kernel

GROUP, GROUPS = 128, 4


def draw(d, tiny):
    if tiny:
        return dict(M=40, K=1024)
    return dict(M=d.between(64, 16384), K=d.pick([1536, 2048, 4096, 7168]))


def make(M, K):
    x = randn(M, 2 * K, dtype=BF16, scale=3.0)
    out = torch.empty((M, K), dtype=torch.float8_e4m3fn, device=DEVICE)
    scales = torch.empty((M, K // GROUP), device=DEVICE)
    columns = triton.cdiv(K, GROUP * GROUPS)
    rows = min(M, max(1, 132 * 16 // columns))
    stages = min(4, max(1, triton.cdiv(M, rows)))

    def launch(c):
        _v4_swiglu_quant_fp8_kernel[(columns, rows)](
            x, out, scales, M, K=K, fp8_min=-448.0, fp8_max=448.0, stride_gum=2 * K, stride_gun=1, stride_om=K, stride_on=1,
            stride_sm=K // GROUP, stride_sg=1, SWIGLU_LIMIT=10.0, ROUND_SCALE=1, GROUP_SIZE=GROUP, NUM_GROUPS_PER_CTA=GROUPS,
            NUM_STAGES=stages, **c)

    def expected():
        gate, up = x[:, :K].float().clamp(max=10.0), x[:, K:].float().clamp(-10.0, 10.0)
        y = (gate * torch.sigmoid(gate) * up).to(BF16).float().reshape(M, K // GROUP, GROUP)
        scale = torch.exp2(torch.ceil(torch.log2(y.abs().amax(dim=-1) / 448.0)))
        return [y.reshape(M, K), scale]

    def result():
        return [(out.float().reshape(M, K // GROUP, GROUP) * scales[:, :, None]).reshape(M, K), scales]

    return Case([config(4, stages)], launch, result, expected)


main("lmdeploy_swiglu_quant", draw, make, 0.07)
