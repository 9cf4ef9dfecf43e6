# Rotary embedding of tiles of heads and tokens, halves or pairs.
from harness import *
from src_flash_rotary import rotary_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=20, H=5, D=64, PAIRS=1)
    return dict(B=d.between(1, 8), T=d.between(256, 8192), H=d.pick([8, 16, 32]), D=d.pick([64, 128]), PAIRS=d.pick([0, 1]))


def make(B, T, H, D, PAIRS):
    x = randn(B, T, H, D, dtype=BF16)
    y = torch.empty_like(x)
    angles = torch.rand((T, D // 2), device=DEVICE) * 6.0
    cos, sin = torch.cos(angles).to(BF16), torch.sin(angles).to(BF16)

    def launch(c):
        rotary_kernel[(triton.cdiv(H, 2), triton.cdiv(T, 8), B)](
            y, x, cos, sin, None, 0, T, H, T, y.stride(0), y.stride(1), y.stride(2), y.stride(3), x.stride(0), x.stride(1),
            x.stride(2), x.stride(3), D, False, False, PAIRS == 1, False, BLOCK_M=8, BLOCK_H=2, **c)

    def expected():
        f, c, s = x.float(), cos.float()[None, :, None, :], sin.float()[None, :, None, :]
        if PAIRS:
            f = f.reshape(B, T, H, D // 2, 2)
            a, b = f[:, :, :, :, 0], f[:, :, :, :, 1]
            return [torch.stack([a * c - b * s, a * s + b * c], dim=-1).reshape(B, T, H, D)]
        a, b = f[:, :, :, :D // 2], f[:, :, :, D // 2:]
        return [torch.cat([a * c - b * s, a * s + b * c], dim=-1)]

    return Case([config()], launch, lambda: [y], expected)


main("flash_rotary", draw, make, 0.01)
