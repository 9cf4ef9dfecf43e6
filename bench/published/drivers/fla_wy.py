# The WY representation of the gated delta rule: a chunk's inverse times its keys and values.
from harness import *
from src_fla_wy import recompute_w_u_fwd_kernel

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, K=64, V=64)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([4, 8, 16]), K=d.pick([64, 128]), V=d.pick([64, 128]))


def make(B, T, H, K, V):
    n = triton.cdiv(T, CHUNK)
    k, v, a = randn(B, T, H, K, dtype=BF16), randn(B, T, H, V, dtype=BF16), randn(B, T, H, CHUNK, dtype=BF16)
    beta, g = torch.rand((B, T, H), device=DEVICE), torch.rand((B, T, H), device=DEVICE) * -2.0
    w, u = torch.empty_like(k), torch.empty_like(v)

    def launch(c):
        recompute_w_u_fwd_kernel[(n, B * H)](k=k, v=v, beta=beta, w=w, u=u, A=a, g=g, cu_seqlens=None, chunk_indices=None,
                                             T=T, H=H, HV=H, K=K, V=V, BT=CHUNK, BK=64, BV=64, USE_G=True,
                                             IS_VARLEN=False, **c)

    def expected():
        ai, ki, vi = [t[B - 1, :CHUNK, H - 1].float() for t in (a, k, v)]
        b, decay = beta[B - 1, :CHUNK, H - 1][:, None], torch.exp2(g[B - 1, :CHUNK, H - 1])[:, None]
        return [ai @ (ki * b * decay), ai @ (vi * b)]

    configs = [config(w_, s) for w_, s in [(4, 3), (2, 2), (4, 4), (8, 2)]]
    return Case(configs, launch, lambda: [w[B - 1, :CHUNK, H - 1], u[B - 1, :CHUNK, H - 1]], expected)


main("fla_wy", draw, make, 0.02)
