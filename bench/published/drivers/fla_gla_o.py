# Gated linear attention: a chunk's gated queries times its state, and its scores times its values.
from harness import *
from src_fla_gla_o import chunk_gla_fwd_kernel_o

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, K=64, V=128)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([4, 8, 16]), K=d.pick([64, 128]), V=d.pick([128, 256]))


def make(B, T, H, K, V):
    n = triton.cdiv(T, CHUNK)
    q, v, o = randn(B, T, H, K, dtype=BF16), randn(B, T, H, V, dtype=BF16), empty(B, T, H, V, dtype=BF16)
    g = torch.rand((B, T, H, K), device=DEVICE) * -2.0
    h, a = randn(B, n, H, K, V, dtype=BF16), randn(B, T, H, CHUNK, dtype=BF16)

    def launch(c):
        chunk_gla_fwd_kernel_o[(triton.cdiv(V, c["BV"]), n, B * H)](
            q=q, v=v, g=g, h=h, o=o, A=a, cu_seqlens=None, chunk_indices=None, scale=K ** -0.5, T=T, H=H, HV=H, K=K, V=V,
            BT=CHUNK, STATE_V_FIRST=False, IS_VARLEN=False, **c)

    def expected():
        own = slice(0, CHUNK)
        qi, ai, vi = [t[B - 1, own, H - 1].float() for t in (q, a, v)]
        gated = qi * torch.exp2(g[B - 1, own, H - 1])
        return [gated @ h[B - 1, 0, H - 1].float() * K ** -0.5 + torch.tril(ai) @ vi]

    configs = [config(w, s, BK=bk, BV=bv) for bk, bv, w, s in [(32, 64, 4, 3), (64, 128, 8, 3), (64, 64, 2, 2),
                                                               (64, 128, 4, 4)]]
    return Case(configs, launch, lambda: [o[B - 1, :CHUNK, H - 1]], expected)


main("fla_gla_o", draw, make, 0.02)
