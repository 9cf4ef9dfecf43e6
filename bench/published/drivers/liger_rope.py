# Rotary embedding in place, all heads of a token in one program.
from harness import *
from src_liger_rope import _triton_rope


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=20, HQ=6, HK=2, D=64)
    return dict(B=d.between(1, 4), T=d.between(256, 8192), HQ=d.pick([8, 28, 32]), HK=d.pick([4, 8]), D=d.pick([64, 128]))


def make(B, T, HQ, HK, D):
    q0, k0 = randn(B, T, HQ, D, dtype=BF16), randn(B, T, HK, D, dtype=BF16)
    q, k = q0.clone(), k0.clone()
    angles = torch.rand((1, T, D // 2), device=DEVICE) * 6.0
    angles = torch.cat([angles, angles], dim=-1)
    cos, sin = torch.cos(angles).to(BF16), torch.sin(angles).to(BF16)
    heads, key_heads, width = [triton.next_power_of_2(n) for n in (HQ, HK, D)]

    def reset():
        q.copy_(q0)
        k.copy_(k0)

    def launch(c):
        _triton_rope[(B * T,)](q, q.stride(1), k, k.stride(1), cos, cos.stride(1), sin, sin.stride(1), T, B, 1, HQ, HK, D,
                               heads, key_heads, width, BLOCK_SIZE=max(heads, key_heads), BACKWARD_PASS=False, **c)

    def rotated(x):
        a, b = x[:, :, :, :D // 2].float(), x[:, :, :, D // 2:].float()
        c, s = cos[:, :, None, :D // 2].float(), sin[:, :, None, :D // 2].float()
        return torch.cat([a * c - b * s, b * c + a * s], dim=-1)

    return Case([config()], launch, lambda: [q, k], lambda: [rotated(q0), rotated(k0)], reset)


main("liger_rope", draw, make, 0.02)
