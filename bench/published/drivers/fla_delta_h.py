# The states of the gated delta rule, chunk after chunk.
from harness import *
from src_fla_delta_h import chunk_gated_delta_rule_fwd_kernel_h_blockdim64

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, K=64, V=64)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([4, 8, 16]), K=d.pick([64, 128]), V=d.pick([64, 128]))


def make(B, T, H, K, V):
    n = triton.cdiv(T, CHUNK)
    k = randn(B, T, H, K, dtype=BF16, scale=K ** -0.5)
    w = randn(B, T, H, K, dtype=BF16, scale=0.5 * K ** -0.5)
    u = randn(B, T, H, V, dtype=BF16)
    steps = torch.rand((B, n * CHUNK, H), device=DEVICE) * -0.1
    g = torch.cumsum(steps.reshape(B, n, CHUNK, H), dim=2).reshape(B, n * CHUNK, H)[:, :T].contiguous()
    h, new = empty(B, n, H, K, V, dtype=BF16), torch.empty_like(u)

    def launch(c):
        grid = (triton.cdiv(V, c["BV"]) * B * H,)
        chunk_gated_delta_rule_fwd_kernel_h_blockdim64[grid](
            k=k, v=u, w=w, v_new=new, g=g, gk=None, h=h, h0=None, ht=None, cu_seqlens=None, chunk_offsets=None, T=T, H=H,
            HV=H, K=K, V=V, BT=CHUNK, STATE_V_FIRST=False, USE_G=True, USE_GK=False, USE_INITIAL_STATE=False,
            STORE_FINAL_STATE=False, SAVE_NEW_VALUE=True, IS_VARLEN=False, **c)

    shown = min(n, 4)  # the states of the first chunks depend on all that the kernel does

    def expected():
        state = torch.zeros((K, V), device=DEVICE)
        states, values = [], []
        for i in range(shown):
            rows = slice(i * CHUNK, min((i + 1) * CHUNK, T))
            states.append(state)
            v = u[B - 1, rows, H - 1].float() - w[B - 1, rows, H - 1].float() @ state
            values.append(v)
            last, gates = g[B - 1, min((i + 1) * CHUNK, T) - 1, H - 1], g[B - 1, rows, H - 1]
            v = v * torch.exp2(last - gates)[:, None]
            state = state * torch.exp2(last) + k[B - 1, rows, H - 1].float().T @ v
        return [torch.stack(states), torch.cat(values)]

    configs = [config(w_, s, BV=bv) for bv, w_, s in [(32, 4, 2), (32, 2, 3), (64, 4, 3), (32, 4, 4)]]
    return Case(configs, launch, lambda: [h[B - 1, :shown, H - 1], new[B - 1, :min(T, shown * CHUNK), H - 1]], expected)


main("fla_delta_h", draw, make, 0.03)
