# RMS norm, casting as Llama does.
from harness import *
from src_liger_rms_norm import _rms_norm_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(512, 16384, 8))


def make(N, D):
    x, w = randn(N, D, dtype=BF16), randn(D, dtype=BF16)
    y, rstd = torch.empty_like(x), torch.empty((N,), dtype=torch.float32, device=DEVICE)
    block, warps = row_settings(D)

    def launch(c):
        _rms_norm_forward_kernel[(N,)](y, y.stride(0), x, x.stride(0), w, 1, rstd, 1, D, 1e-6, 0.0, 0,
                                       elementwise_affine=True, BLOCK_SIZE=block, **c)

    def expected():
        f = x.float()
        r = 1 / torch.sqrt((f * f).mean(-1) + 1e-6)
        return [f * r[:, None] * w.float(), r]

    return Case([config(warps)], launch, lambda: [y, rstd], expected)


main("liger_rms_norm", draw, make, 0.01)
