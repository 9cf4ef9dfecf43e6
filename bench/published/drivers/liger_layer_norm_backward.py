# The gradients of a layer norm: rows, and sums of columns in one part for each SM.
from harness import *
from src_liger_layer_norm_backward import _layer_norm_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(512, 16384, 8))


def make(N, D):
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3
    x, dy, w = randn(N, D, dtype=BF16), randn(N, D, dtype=BF16), randn(D, dtype=BF16)
    mean = x.float().mean(-1).to(BF16)
    rstd = (1 / torch.sqrt(x.float().var(-1, unbiased=False) + 1e-5)).to(BF16)
    dx = torch.empty_like(x)
    dw, db = torch.empty((count, D), device=DEVICE), torch.empty((count, D), device=DEVICE)
    block, warps = row_settings(D)

    def launch(c):
        _layer_norm_backward_kernel[(count,)](x, x.stride(0), w, mean, 1, rstd, 1, dx, dx.stride(0), dw, dw.stride(0), db,
                                              db.stride(0), dy, dy.stride(0), N, D, rows_per_program=triton.cdiv(N, count),
                                              BLOCK_SIZE=block, **c)

    def expected():
        r = rstd.float()[:, None]
        hat = (x.float() - mean.float()[:, None]) * r
        wdy = w.float() * dy.float()
        c1, c2 = (hat * wdy).mean(-1, keepdim=True), wdy.mean(-1, keepdim=True)
        return [(wdy - (hat * c1 + c2)) * r, (dy.float() * hat).sum(0), dy.float().sum(0)]

    return Case([config(warps)], launch, lambda: [dx, dw.sum(0), db.sum(0)], expected)


main("liger_layer_norm_backward", draw, make, 0.01)
