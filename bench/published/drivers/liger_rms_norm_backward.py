# The gradients of an RMS norm: rows, and sums of columns in one part for each SM.
from harness import *
from src_liger_rms_norm_backward import _rms_norm_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(512, 16384, 8))


def make(N, D):
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3
    x, dy, w = randn(N, D, dtype=BF16), randn(N, D, dtype=BF16), randn(D, dtype=BF16)
    rstd = 1 / torch.sqrt((x.float() * x.float()).mean(-1) + 1e-6)
    dx, dw = torch.empty_like(x), torch.empty((count, D), device=DEVICE)
    block, warps = row_settings(D)

    def launch(c):
        _rms_norm_backward_kernel[(count,)](dy, dy.stride(0), dx, dx.stride(0), x, x.stride(0), TL_BF16, w, 1, rstd, 1, dw,
                                            dw.stride(0), N, D, 0.0, triton.cdiv(N, count), 0, elementwise_affine=True,
                                            BLOCK_SIZE=block, **c)

    def expected():
        hat = x.float() * rstd[:, None]
        wdy = w.float() * dy.float()
        return [(wdy - hat * (hat * wdy).mean(-1, keepdim=True)) * rstd[:, None], (dy.float() * hat).sum(0)]

    return Case([config(warps)], launch, lambda: [dx, dw.sum(0)], expected)


main("liger_rms_norm_backward", draw, make, 0.01)
