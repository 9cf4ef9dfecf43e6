# Triton's tutorial 06, backward, causal, in its one configuration.
from harness import *
from src_attention_backward import _attn_bwd


def draw(d, tiny):
    if tiny:
        return dict(Z=1, H=2, N=256, D=64)
    return dict(Z=d.between(1, 4), H=d.pick([8, 16, 32]), N=d.between(512, 4096, 128), D=d.pick([64, 128]))


def make(Z, H, N, D):
    scale = D ** -0.5
    q, k, v, do = [randn(Z, H, N, D) for _ in range(4)]
    dq, dk, dv = [torch.empty_like(q) for _ in range(3)]
    arg_k = k * (scale * 1.4426950408889634)
    m, delta = [torch.empty((Z, H, N), dtype=torch.float32, device=DEVICE) for _ in range(2)]
    hidden = torch.triu(torch.ones((N, N), dtype=torch.bool, device=DEVICE), 1)

    def probabilities(z, h):
        s = (q[z, h].float() @ k[z, h].float().T * scale).masked_fill(hidden, float("-inf"))
        return s, torch.softmax(s, dim=-1)

    for z in range(Z):
        for h in range(H):
            s, p = probabilities(z, h)
            m[z, h] = torch.logsumexp(s, dim=-1) * 1.4426950408889634
            delta[z, h] = (p @ v[z, h].float() * do[z, h].float()).sum(-1)

    def launch(c):
        _attn_bwd[(N // c["BLOCK_N1"], 1, Z * H)](q, arg_k, v, scale, do, dq, dk, dv, m, delta, q.stride(0), q.stride(1),
                                                  q.stride(2), q.stride(3), H, N, BLK_SLICE_FACTOR=2, HEAD_DIM=D,
                                                  CAUSAL=True, **c)

    def expected():
        p = probabilities(Z - 1, H - 1)[1]
        g = do[Z - 1, H - 1].float()
        ds = p * (g @ v[Z - 1, H - 1].float().T - delta[Z - 1, H - 1][:, None])
        return [ds @ k[Z - 1, H - 1].float() * scale, ds.T @ q[Z - 1, H - 1].float() * scale, p.T @ g]

    configs = [config(4, 5, BLOCK_M1=32, BLOCK_N1=128, BLOCK_M2=128, BLOCK_N2=32)]
    return Case(configs, launch, lambda: [t[Z - 1, H - 1] for t in (dq, dk, dv)], expected)


main("attention_backward", draw, make, 0.02)
