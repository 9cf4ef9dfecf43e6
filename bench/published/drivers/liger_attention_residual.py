# Sums of the outputs of earlier blocks, weighted by a softmax over their normalized products with one query.
from harness import *
from src_liger_attention_residual import _attn_res_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=5, T=6, D=500)
    return dict(N=d.between(3, 16), T=d.between(512, 8192), D=d.pick([1024, 2048, 4096]))


def make(N, T, D):
    v, query = randn(N, T, D, dtype=BF16), randn(D, dtype=BF16, scale=D ** -0.5)
    weight, out = randn(D, dtype=BF16, scale=0.2) + 1, empty(T, D, dtype=BF16)
    alpha, rstd = torch.empty((T, N), device=DEVICE), torch.empty((T, N), device=DEVICE)
    block, warps = row_settings(D)
    most = triton.next_power_of_2(N)

    def launch(c):
        _attn_res_fwd_kernel[(T,)](v, query, weight, out, alpha, rstd, N, T, D, 1e-6, BLOCK_D=block, MAX_BLOCKS=most, **c)

    def expected():
        f = v.float()
        inverse = torch.rsqrt((f * f).mean(-1) + 1e-6)
        keys = (f * inverse[:, :, None]).to(BF16) * weight
        a = torch.softmax((keys.float() * query.float()).sum(-1), dim=0)
        return [(a[:, :, None] * f).sum(0), a.t(), inverse.t()]

    return Case([config(warps)], launch, lambda: [out, alpha, rstd], expected)


main("liger_attention_residual", draw, make, 0.01)
