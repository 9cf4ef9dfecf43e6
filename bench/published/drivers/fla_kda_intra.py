# Products of queries and of keys with the keys before them in sub-chunks of 16, gated for each channel, for each token.
from harness import *
from src_fla_kda_intra import chunk_kda_fwd_kernel_intra_token_parallel

BT, BC = 64, 16


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=70, H=3, K=64)
    return dict(B=d.pick([1, 2]), T=d.between(512, 8192), H=d.pick([8, 16, 32]), K=d.pick([64, 128]))


def make(B, T, H, K):
    q, k = randn(B, T, H, K, dtype=BF16), randn(B, T, H, K, dtype=BF16, scale=K ** -0.5)
    g = torch.cumsum(torch.nn.functional.logsigmoid(torch.randn((B, T, H, K), device=DEVICE)) * 0.1, dim=1)
    beta = torch.rand((B, T, H), device=DEVICE).to(BF16)
    aqk = torch.zeros((B, T, H, BT), dtype=BF16, device=DEVICE)
    akk = torch.zeros((B, T, H, BC), device=DEVICE)
    scale = K ** -0.5

    def launch(c):
        chunk_kda_fwd_kernel_intra_token_parallel[(B * T, triton.cdiv(H, c["BH"]))](
            q, k, g, beta, aqk, akk, scale, None, B, T, H=H, HV=H, K=K, BK=triton.next_power_of_2(K), BT=BT, BC=BC,
            IS_VARLEN=False, **c)

    def expected():
        # The second sub-chunk of the first chunk.
        qs, ks, gs, bs = [v[:, BC:2 * BC].float() for v in (q, k, g, beta)]
        decay = torch.exp2(gs[:, :, None] - gs[:, None, :])
        lower = torch.tril(torch.ones((BC, BC), device=DEVICE))[None, :, :, None]
        strict = lower - torch.eye(BC, device=DEVICE)[None, :, :, None]
        by_q = (qs[:, :, None] * ks[:, None, :] * decay).sum(-1) * scale * lower
        by_k = (ks[:, :, None] * ks[:, None, :] * decay).sum(-1) * bs[:, :, None] * strict
        return [by_q.transpose(2, 3), by_k.transpose(2, 3)]

    configs = [config(w, BH=bh) for bh, w in ((1, 1), (2, 1), (4, 2), (4, 4), (8, 4), (8, 8))]
    return Case(configs, launch, lambda: [aqk[:, BC:2 * BC, :, BC:2 * BC], akk[:, BC:2 * BC]], expected)


main("fla_kda_intra", draw, make, 0.01)
