# Rotary embedding in place with three positions (time, height, width) of each token, as Qwen2-VL has.
from harness import *
from src_liger_mrope import _triton_qwen2vl_mrope


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=20, HQ=6, HK=2, D=64)
    return dict(B=d.between(1, 4), T=d.between(256, 8192), HQ=d.pick([12, 28, 32]), HK=d.pick([2, 4, 8]), D=128)


def make(B, T, HQ, HK, D):
    q0, k0 = randn(B, T, HQ, D, dtype=BF16), randn(B, T, HK, D, dtype=BF16)
    q, k = q0.clone(), k0.clone()
    angles = torch.rand((3, B, T, D // 2), device=DEVICE) * 6.0
    angles = torch.cat([angles, angles], dim=-1)
    cos, sin = torch.cos(angles).to(BF16), torch.sin(angles).to(BF16)
    time, height = D // 8, D * 3 // 16
    heads, key_heads, width = [triton.next_power_of_2(n) for n in (HQ, HK, D)]

    def reset():
        q.copy_(q0)
        k.copy_(k0)

    def launch(c):
        _triton_qwen2vl_mrope[(B * T,)](q, k, cos, sin, T, B, HQ, HK, D, heads, key_heads, width, time, height,
                                        BLOCK_SIZE=max(heads, key_heads), BACKWARD_PASS=False, **c)

    def sections(x):
        parts = [x[0, :, :, :time], x[1, :, :, time:time + height], x[2, :, :, time + height:D // 2]]
        return torch.cat(parts, dim=-1).float()[:, :, None, :]

    def rotated(x):
        a, b = x[:, :, :, :D // 2].float(), x[:, :, :, D // 2:].float()
        c, s = sections(cos), sections(sin)
        return torch.cat([a * c - b * s, b * c + a * s], dim=-1)

    return Case([config()], launch, lambda: [q, k], lambda: [rotated(q0), rotated(k0)], reset)


main("liger_mrope", draw, make, 0.02)
