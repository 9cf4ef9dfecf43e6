# A residual added, then RMS norm, casting as Llama does.
from harness import *
from src_liger_fused_add_rms_norm import _fused_add_rms_norm_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(512, 16384, 8))


def make(N, D):
    x, r, w = randn(N, D, dtype=BF16), randn(N, D, dtype=BF16), randn(D, dtype=BF16)
    y, s = torch.empty_like(x), torch.empty_like(x)
    rstd = torch.empty((N,), dtype=torch.float32, device=DEVICE)
    block, warps = row_settings(D)

    def launch(c):
        _fused_add_rms_norm_forward_kernel[(N,)](y, y.stride(0), s, s.stride(0), x, x.stride(0), r, r.stride(0), w, 1, rstd, 1,
                                                 D, 1e-6, 0.0, 0, BLOCK_SIZE=block, **c)

    def expected():
        f = (x + r).float()
        scale = 1 / torch.sqrt((f * f).mean(-1) + 1e-6)
        return [f * scale[:, None] * w.float(), f, scale]

    return Case([config(warps, 2)], launch, lambda: [y, s, rstd], expected)


main("liger_fused_add_rms_norm", draw, make, 0.02)
