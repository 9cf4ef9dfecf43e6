# Training at test time: the states of a linear model that each chunk's loss moves, with a norm between two products.
from harness import *
from src_fla_ttt_h import chunk_ttt_linear_fwd_kernel_h

CHUNK = 16


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=56, H=2, D=64)
    return dict(B=d.between(1, 9), T=d.between(512, 4096), H=d.pick([8, 16, 32]), D=d.pick([64, 128]))


def make(B, T, H, D):
    n = triton.cdiv(T, CHUNK)
    k, v = randn(B, T, H, D, dtype=BF16, scale=0.3), randn(B, T, H, D, dtype=BF16, scale=0.3)
    v_new = empty(B, T, H, D, dtype=BF16)
    w, b = torch.rand((H, D), device=DEVICE), randn(H, D, dtype=torch.float32, scale=0.1)
    eta = (torch.rand((B, T, H), device=DEVICE) * 0.02).to(BF16)
    h, hb = empty(B, n, H, D, D, dtype=BF16), empty(B, n, H, 1, D, dtype=BF16)
    h0 = randn(B, H, D, D, dtype=torch.float32, scale=0.2)

    def launch(c):
        chunk_ttt_linear_fwd_kernel_h[(1, 1, B * H)](
            k=k, v=v, v_new=v_new, eta=eta, w=w, b=b, eps=1e-6, h=h, hb=hb, h0=h0, hb0=None, ht=None, hbt=None,
            cu_seqlens=None, chunk_offsets=None, T=T, H=H, K=D, V=D, BT=CHUNK, BK=D, BV=D, USE_INITIAL_STATE=True,
            USE_INITIAL_STATE_B=False, STORE_FINAL_STATE=False, IS_VARLEN=False, **c)

    def expected():
        state, bias = h0[B - 1, H - 1], torch.zeros((D,), device=DEVICE)
        wi, bi = w[H - 1][None, :], b[H - 1][None, :]
        for i in range(3):
            before = state
            own = slice(i * CHUNK, min((i + 1) * CHUNK, T))
            ki, vi = k[B - 1, own, H - 1].float(), v[B - 1, own, H - 1].float()
            x = ki @ state + bias
            mean = x.mean(1).reshape(-1, 1)
            rstd = 1.0 / torch.sqrt(((x - mean) * (x - mean)).mean(1).reshape(-1, 1) + 1e-6)
            hat = (x - mean) * rstd
            g = (hat * wi + bi - vi + ki) * wi
            new = rstd * (D * g - g.sum(1).reshape(-1, 1) - hat * (g * hat).sum(1).reshape(-1, 1)) / D
            rate = eta[B - 1, min((i + 1) * CHUNK, T) - 1, H - 1].float()
            state = state - (rate * ki).T @ new
            bias = bias - (rate * new).sum(0)
        return [before, new]

    def result():
        return [h[B - 1, 2, H - 1], v_new[B - 1, 2 * CHUNK:3 * CHUNK, H - 1]]

    return Case([config(w_, 3) for w_ in (4, 1, 2, 8)], launch, result, expected)


main("fla_ttt_h", draw, make, 0.05)
