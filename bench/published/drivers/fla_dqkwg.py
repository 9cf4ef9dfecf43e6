# Linear attention with one decay for each head, backward: the gradients of queries and keys, chunk by chunk. Not the
# decays for each token: the repository refuses them on Hopper under this Triton, which computes them wrong (its issue 640).
from harness import *
from src_fla_dqkwg import chunk_bwd_kernel_dqkwg

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=1, GROUP=2, K=64, V=64)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([4, 8, 12]), GROUP=d.pick([1, 2]),
                K=d.pick([64, 96, 128, 256]), V=d.pick([64, 128, 256]))


def make(B, T, H, GROUP, K, V):
    n, heads, scale = triton.cdiv(T, CHUNK), H * GROUP, K ** -0.5
    q, k = [randn(B, T, H, K, dtype=BF16) for _ in range(2)]
    v, do = [randn(B, T, heads, V, dtype=BF16) for _ in range(2)]
    h, dh = [randn(B, n, heads, K, V, dtype=BF16) for _ in range(2)]
    gamma = torch.rand((heads,), device=DEVICE) * -0.1
    dq, dk = [empty(B, T, heads, K, dtype=BF16) for _ in range(2)]
    bk, bv = [min(triton.next_power_of_2(x), 128) for x in (K, V)]

    def launch(c):
        chunk_bwd_kernel_dqkwg[(triton.cdiv(K, bk), n, B * heads)](
            q=q, k=k, v=v, g=None, g_gamma=gamma, h=h, do=do, dh=dh, dq=dq, dk=dk, dw=None, dv=None, dg=None,
            cu_seqlens=None, chunk_indices=None, scale=scale, B=B, T=T, H=H, HV=heads, K=K, V=V, BT=CHUNK, BK=bk, BV=bv,
            USE_G=False, USE_G_GAMMA=True, USE_DW=False, STATE_V_FIRST=False, IS_VARLEN=False, **c)

    def chunk(i):
        rows = slice(i * CHUNK, min((i + 1) * CHUNK, T))
        qi, ki = [t[B - 1, rows, H - 1].float() for t in (q, k)]
        vi, doi = [t[B - 1, rows, heads - 1].float() for t in (v, do)]
        count = min(CHUNK, T - i * CHUNK)
        g = (torch.arange(count, device=DEVICE) + 1).float() * gamma[heads - 1]
        last = gamma[heads - 1] * count
        ds = torch.tril(doi @ vi.T * torch.exp2((g[:, None] - g[None, :]).clamp(max=0.0))) * scale
        state, dstate = [t[B - 1, i, heads - 1].float() for t in (h, dh)]
        return [doi @ state.T * torch.exp2(g)[:, None] * scale + ds @ ki,
                vi @ dstate.T * torch.exp2(last - g)[:, None] + ds.T @ qi]

    def result():
        return [t[B - 1, rows, heads - 1] for rows in (slice(0, CHUNK), slice((n - 1) * CHUNK, T)) for t in (dq, dk)]

    return Case([config(4, 2), config(8, 3), config(2, 4), config(4, 4)], launch, result,
                lambda: chunk(0) + chunk(n - 1))


main("fla_dqkwg", draw, make, 0.02)
