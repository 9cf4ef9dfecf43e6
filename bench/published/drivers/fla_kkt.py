# Products of keys with keys within chunks, gated and masked strictly below the diagonal.
from harness import *
from src_fla_kkt import chunk_scaled_dot_kkt_fwd_kernel

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, K=64)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([4, 8, 16]), K=d.pick([64, 128]))


def make(B, T, H, K):
    n = triton.cdiv(T, CHUNK)
    k, beta = randn(B, T, H, K, dtype=BF16), torch.rand((B, T, H), device=DEVICE)
    steps = torch.rand((B, n, CHUNK, H), device=DEVICE) * -0.1
    g = torch.cumsum(steps, dim=2).reshape(B, n * CHUNK, H)[:, :T].contiguous()
    a = torch.empty((B, T, H, CHUNK), dtype=torch.float32, device=DEVICE)

    def launch(c):
        chunk_scaled_dot_kkt_fwd_kernel[(n, B * H)](k=k, g=g, beta=beta, A=a, cu_seqlens=None, chunk_indices=None, T=T, H=H,
                                                    HV=H, K=K, BT=CHUNK, IS_VARLEN=False, USE_G=True, **c)

    def expected():
        ki, gi = k[B - 1, :CHUNK, H - 1].float(), g[B - 1, :CHUNK, H - 1]
        scores = ki @ ki.T * torch.exp2((gi[:, None] - gi[None, :]).clamp(max=0.0)) * beta[B - 1, :CHUNK, H - 1][:, None]
        return [torch.tril(scores, -1)]

    configs = [config(w, s, BK=bk) for bk, w, s in [(64, 4, 3), (32, 2, 4), (128, 8, 2), (64, 2, 2)]]
    return Case(configs, launch, lambda: [a[B - 1, :CHUNK, H - 1]], expected)


main("fla_kkt", draw, make, 0.02)
