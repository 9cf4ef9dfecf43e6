# The states of gated linear attention, chunk after chunk.
from harness import *
from src_fla_chunk_h import chunk_fwd_kernel_h

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, K=64, V=64)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([4, 8, 16]), K=d.pick([64, 128]), V=d.pick([64, 128]))


def make(B, T, H, K, V):
    n = triton.cdiv(T, CHUNK)
    k, v = randn(B, T, H, K, dtype=BF16), randn(B, T, H, V, dtype=BF16)
    steps = torch.rand((B, n, CHUNK, H), device=DEVICE) * -0.1
    g = torch.cumsum(steps, dim=2).reshape(B, n * CHUNK, H)[:, :T].contiguous()
    h = empty(B, n, H, K, V, dtype=BF16)

    def launch(c):
        grid = (triton.cdiv(K, c["BK"]), triton.cdiv(V, c["BV"]), B * H)
        chunk_fwd_kernel_h[grid](k=k, v=v, h=h, g=g, g_gamma=None, gk=None, gv=None, h0=None, ht=None, cu_seqlens=None,
                                 split_offsets=None, T=T, H=H, K=K, V=V, BT=CHUNK, BS=CHUNK, USE_G=True,
                                 USE_G_GAMMA=False, USE_GK=False, USE_GV=False, USE_INITIAL_STATE=False,
                                 STORE_FINAL_STATE=False, IS_VARLEN=False, STATE_V_FIRST=False, **c)

    shown = min(n, 4)

    def expected():
        state, states = torch.zeros((K, V), device=DEVICE), []
        for i in range(shown):
            rows = slice(i * CHUNK, min((i + 1) * CHUNK, T))
            states.append(state)
            last, gates = g[B - 1, min((i + 1) * CHUNK, T) - 1, H - 1], g[B - 1, rows, H - 1]
            values = v[B - 1, rows, H - 1].float() * torch.exp2(last - gates)[:, None]
            state = state * torch.exp2(last) + k[B - 1, rows, H - 1].float().T @ values
        return [torch.stack(states)]

    configs = [config(w, s, BK=bk, BV=bv) for bk, bv, w, s in [(64, 64, 4, 3), (32, 64, 4, 3), (32, 32, 2, 4), (64, 64, 8, 2)]]
    return Case(configs, launch, lambda: [h[B - 1, :shown, H - 1]], expected)


main("fla_chunk_h", draw, make, 0.02)
