# Rotary embedding of queries and keys in place, halves of a head.
from harness import *
from src_lightllm_rotary import _rotary_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=20, HQ=6, HK=2, D=64)
    return dict(T=d.between(256, 16384), HQ=d.pick([8, 16, 32]), HK=d.pick([2, 4, 8]), D=d.pick([64, 128]))


def make(T, HQ, HK, D):
    q0, k0 = randn(T, HQ, D), randn(T, HK, D)
    q, k = q0.clone(), k0.clone()
    angles = torch.rand((T, D // 2), device=DEVICE) * 6.0
    cos, sin = torch.cos(angles).to(torch.float16), torch.sin(angles).to(torch.float16)

    def reset():
        q.copy_(q0)
        k.copy_(k0)

    def launch(c):
        _rotary_kernel[(triton.cdiv(HQ, 4), triton.cdiv(T, 16))](
            q, k, cos, sin, q.stride(0), q.stride(1), q.stride(2), k.stride(0), k.stride(1), k.stride(2), cos.stride(0),
            cos.stride(1), sin.stride(0), sin.stride(1), T, HQ, HK, BLOCK_HEAD=4, BLOCK_SEQ=16, BLOCK_DMODEL=D, **c)

    def rotated(x):
        a, b = x[:, :, :D // 2].float(), x[:, :, D // 2:].float()
        c, s = cos.float()[:, None, :], sin.float()[:, None, :]
        return torch.cat([a * c - b * s, a * s + b * c], dim=-1)

    # Where heads of queries and keys differ in number, programs beyond the keys do nothing to them.
    return Case([config(8 if D >= 128 else 4, 1)], launch, lambda: [q, k], lambda: [rotated(q0), rotated(k0)], reset)


main("lightllm_rotary", draw, make, 0.01)
