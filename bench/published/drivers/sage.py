# Attention of int8 queries and keys with a scale for each block, float16 values.
from harness import *
from src_sage import _attn_fwd

BLOCK_M, BLOCK_N = 128, 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, H=2, N=192, D=64)
    return dict(B=d.between(1, 3), H=d.pick([8, 16, 32]), N=d.between(512, 4096, 64), D=d.pick([64, 128]))


def make(B, H, N, D):
    q, k = ints(-127, 128, (B, H, N, D), torch.int8), ints(-127, 128, (B, H, N, D), torch.int8)
    v = randn(B, H, N, D)
    q_scale = torch.rand((B, H, triton.cdiv(N, BLOCK_M)), device=DEVICE) * 0.004 + 0.004
    k_scale = torch.rand((B, H, triton.cdiv(N, BLOCK_N)), device=DEVICE) * 0.004 + 0.004
    o = torch.empty_like(v)
    lse = torch.empty([0], dtype=torch.float32, device="cpu")

    def launch(c):
        _attn_fwd[(triton.cdiv(N, BLOCK_M), H, B)](
            q, k, v, q_scale, k_scale, o, None, lse, q.stride(0), q.stride(1), q.stride(2), k.stride(0), k.stride(1),
            k.stride(2), v.stride(0), v.stride(1), v.stride(2), o.stride(0), o.stride(1), o.stride(2), 0, 0, 0, 0, N, N,
            H, 1, D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, STAGE=1, RETURN_LSE=False, **c)

    def expected():
        heads = []
        for h in (0, H - 1):
            qf = q[B - 1, h].float() * q_scale[B - 1, h].repeat_interleave(BLOCK_M)[:N, None]
            kf = k[B - 1, h].float() * k_scale[B - 1, h].repeat_interleave(BLOCK_N)[:N, None]
            heads.append(torch.softmax(qf @ kf.T * math.log(2.0), dim=-1) @ v[B - 1, h].float())
        return heads

    configs = [config(4, 3) if D == 64 else config(8, 4)]
    return Case(configs, launch, lambda: [o[B - 1, 0], o[B - 1, H - 1]], expected)


main("sage", draw, make, 0.03)
