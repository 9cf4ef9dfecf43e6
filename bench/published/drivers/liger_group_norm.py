# Group norm of images, two passes over a group.
from harness import *
from src_liger_group_norm import _group_norm_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, C=8, G=4, S=30)
    return dict(B=d.between(1, 32), C=d.pick([128, 256, 320, 512]), G=32 if d.pick([0, 1]) else 16, S=d.between(64, 4096))


def make(B, C, G, S):
    x = torch.randn((B, G, C // G * S), device=DEVICE)
    y, mean, rstd = torch.empty_like(x), torch.empty((B, G), device=DEVICE), torch.empty((B, G), device=DEVICE)
    w, b, n = torch.rand((C,), device=DEVICE), torch.randn((C,), device=DEVICE), C // G * S

    def launch(c):
        _group_norm_forward_kernel[(B, G)](y, y.stride(0), y.stride(1), x, x.stride(0), x.stride(1), mean, mean.stride(0),
                                           mean.stride(1), rstd, rstd.stride(0), rstd.stride(1), w, b, n, C // G, 1e-5,
                                           BLOCK_SIZE=min(65536, triton.next_power_of_2(n)), **c)

    def expected():
        z = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
        return [(z.reshape(B, C, S) * w[None, :, None] + b[None, :, None]).reshape(B, G, n), x.mean(-1)]

    return Case([config()], launch, lambda: [y, mean], expected)


main("liger_group_norm", draw, make, 1e-3)
