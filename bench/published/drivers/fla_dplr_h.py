# States of a delta rule with diagonal plus low rank transitions: three products of each chunk, one of float32.
from harness import *
from src_fla_dplr_h import chunk_dplr_fwd_kernel_h

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, K=64, V=64)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([8, 16, 32]), K=d.pick([64, 128]),
                V=d.pick([64, 128]))


def make(B, T, H, K, V):
    n = triton.cdiv(T, CHUNK)
    kg, w, bg = [randn(B, T, H, K, dtype=BF16, scale=0.1) for _ in range(3)]
    v, u, v_new = [randn(B, T, H, V, dtype=BF16) for _ in range(3)]
    gk = torch.rand((B, T, H, K), device=DEVICE) * -2.0
    h = empty(B, n, H, K, V, dtype=BF16)

    def launch(c):
        chunk_dplr_fwd_kernel_h[(1, triton.cdiv(V, 64), B * H)](
            kg=kg, v=v, w=w, bg=bg, u=u, v_new=v_new, gk=gk, h=h, h0=None, ht=None, cu_seqlens=None, chunk_offsets=None,
            T=T, H=H, K=K, V=V, BT=CHUNK, BC=64, BK=K, BV=64, USE_INITIAL_STATE=False, STORE_FINAL_STATE=False,
            IS_VARLEN=False, **c)

    def expected():
        state, last = torch.zeros((K, V), device=DEVICE), 0
        for i in range(min(n, 3)):
            last = i * CHUNK
            own = slice(last, min(last + CHUNK, T))
            before = state
            kgi, wi, bgi, vi, ui = [t[B - 1, own, H - 1].float() for t in (kg, w, bg, v, u)]
            new = wi @ before + ui
            state = before * torch.exp2(gk[B - 1, min(last + CHUNK, T) - 1, H - 1])[:, None] + kgi.T @ vi + bgi.T @ new
        return [before, new]

    def result():
        last = min(n, 3) - 1
        return [h[B - 1, last, H - 1], v_new[B - 1, last * CHUNK:min((last + 1) * CHUNK, T), H - 1]]

    return Case([config(w_, s) for w_, s in [(4, 3), (8, 2), (2, 4), (4, 2)]], launch, result, expected)


main("fla_dplr_h", draw, make, 0.03)
