# RMS norm with everything but the pointers constant.
from harness import *
from src_unsloth_rms_norm import _rms_layernorm_forward


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(512, 16384, 8))


def make(N, D):
    x, w = randn(N, D, dtype=BF16), randn(D, dtype=BF16)
    y, r = torch.empty_like(x), torch.empty((N,), dtype=torch.float32, device=DEVICE)
    block, warps = row_settings(D)

    def launch(c):
        _rms_layernorm_forward[(N,)](y, y.stride(0), x, x.stride(0), w, 1, r, 1, D, 1e-6, BLOCK_SIZE=block, **c)

    def expected():
        f = x.float()
        scale = 1 / torch.sqrt((f * f).mean(-1) + 1e-6)
        return [f * scale[:, None] * w.float(), scale]

    return Case([config(warps)], launch, lambda: [y, r], expected)


main("unsloth_rms_norm", draw, make, 0.02)
