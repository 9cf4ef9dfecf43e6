# Sparsemax of rows that torch has sorted: a scan, and the threshold that it gives.
from harness import *
from src_liger_sparsemax import _sparsemax_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 4096), D=d.between(256, 32768))


def make(N, D):
    x = torch.randn((N, D), device=DEVICE)
    ordered = torch.sort(x, dim=-1, descending=True)[0]
    y = torch.empty_like(x)
    block, warps = row_settings(D)

    def launch(c):
        _sparsemax_forward_kernel[(N,)](x, x.stride(0), ordered, ordered.stride(0), y, y.stride(0), D, BLOCK_SIZE=block, **c)

    def expected():
        sums = torch.cumsum(ordered, dim=-1)
        inside = ordered * (torch.arange(D, device=DEVICE)[None, :] + 1) > sums - 1
        tau = ((ordered * inside).sum(-1) - 1) / inside.sum(-1)
        return [(x - tau[:, None]).clamp(min=0.0)]

    return Case([dict(num_warps=warps)], launch, lambda: [y], expected)


main("liger_sparsemax", draw, make, 1e-3)
