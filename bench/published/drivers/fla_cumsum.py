# Running sums within chunks of 64, over a vector for each head.
from harness import *
from src_fla_cumsum import chunk_local_cumsum_vector_kernel

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, S=96)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([4, 8, 16]), S=d.pick([64, 100, 128]))


def make(B, T, H, S):
    n = triton.cdiv(T, CHUNK)
    s = torch.randn((B, T, H, S), device=DEVICE)
    o = torch.empty_like(s)

    def launch(c):
        chunk_local_cumsum_vector_kernel[(triton.cdiv(S, c["BS"]), n, B * H)](
            s=s, o=o, scale=None, cu_seqlens=None, chunk_indices=None, T=T, B=B, H=H, S=S, BT=CHUNK, REVERSE=False,
            HAS_SCALE=False, IS_VARLEN=False, **c)

    configs = [config(w, BS=bs) for bs, w in [(64, 4), (32, 2), (64, 8), (32, 4)]]
    return Case(configs, launch, lambda: [o[B - 1, :CHUNK], o[0, (n - 1) * CHUNK:]],
                lambda: [torch.cumsum(s[B - 1, :CHUNK], dim=0), torch.cumsum(s[0, (n - 1) * CHUNK:], dim=0)])


main("fla_cumsum", draw, make, 1e-4)
