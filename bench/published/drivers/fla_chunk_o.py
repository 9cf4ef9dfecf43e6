# The outputs of gated linear attention from the states and the products within chunks.
from harness import *
from src_fla_chunk_o import chunk_fwd_kernel_o

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, K=64, V=64)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([4, 8, 16]), K=d.pick([64, 128]), V=d.pick([64, 128]))


def make(B, T, H, K, V):
    n, scale = triton.cdiv(T, CHUNK), K ** -0.5
    q, k, v = randn(B, T, H, K, dtype=BF16), randn(B, T, H, K, dtype=BF16), randn(B, T, H, V, dtype=BF16)
    steps = torch.rand((B, n, CHUNK, H), device=DEVICE) * -0.1
    g = torch.cumsum(steps, dim=2).reshape(B, n * CHUNK, H)[:, :T].contiguous()
    h, o = randn(B, n, H, K, V, dtype=BF16), torch.empty_like(v)

    def launch(c):
        chunk_fwd_kernel_o[(triton.cdiv(V, c["BV"]), n, B * H)](
            q=q, k=k, v=v, h=h, g=g, g_gamma=None, o=o, cu_seqlens=None, chunk_indices=None, scale=scale, T=T, H=H, HV=H,
            K=K, V=V, BT=CHUNK, USE_G=True, USE_G_GAMMA=False, STATE_V_FIRST=False, IS_VARLEN=False, **c)

    def chunk(i):
        rows = slice(i * CHUNK, min((i + 1) * CHUNK, T))
        qi, ki, vi, gi = [t[B - 1, rows, H - 1].float() for t in (q, k, v, g)]
        within = torch.tril(qi @ ki.T * torch.exp2((gi[:, None] - gi[None, :]).clamp(max=0.0)))
        return (qi @ h[B - 1, i, H - 1].float() * torch.exp2(gi)[:, None] + within @ vi) * scale

    configs = [config(8, 3, BK=128, BV=128), config(4, 3, BK=64, BV=64), config(2, 3, BK=32, BV=32)]
    return Case(configs, launch, lambda: [o[B - 1, :CHUNK, H - 1], o[B - 1, (n - 1) * CHUNK:, H - 1]],
                lambda: [chunk(0), chunk(n - 1)])


main("fla_chunk_o", draw, make, 0.02)
