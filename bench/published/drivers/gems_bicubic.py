# Images enlarged by cubic interpolation, five by five elements weighted for each one.
from harness import *
from src_gems_bicubic import upsample_bicubic2d_aa_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, C=2, H=9, W=11, OH=20, OW=31)
    side = d.pick([28, 56, 112, 224])
    return dict(B=d.between(1, 8), C=d.pick([3, 16, 64]), H=side, W=side, OH=d.between(2 * side, 4 * side),
                OW=d.between(2 * side, 4 * side))


def make(B, C, H, W, OH, OW):
    x, y = torch.randn((B, C, H, W), device=DEVICE), torch.empty((B, C, OH, OW), device=DEVICE)

    def launch(c):
        grid = (triton.cdiv(OW, c["BLOCK_X"]), triton.cdiv(OH, c["BLOCK_Y"]))
        upsample_bicubic2d_aa_kernel[grid](y, x, B, C, OH, OW, H, W, H / OH, W / OW, **c)

    def weights(n, m):
        """What each of n elements counts for each of m."""
        far = torch.arange(n, device=DEVICE)[None, :] + 0.5 - (torch.arange(m, device=DEVICE)[:, None] + 0.5) * (n / m)
        d = far.abs()
        inner = (1.5 * d - 2.5) * d * d + 1
        outer = (((d - 5) * d + 8) * d - 4) * -0.5
        w = torch.where(d < 1, inner, torch.where(d < 2, outer, torch.zeros_like(d)))
        return w / w.sum(-1, keepdim=True)

    def expected():
        rows = weights(H, OH)
        columns = weights(W, OW)
        first, last = x[0, 0], x[B - 1, C - 1]
        return [rows @ i @ columns.t() for i in (first, last)]

    configs = [config(w, BLOCK_X=bx, BLOCK_Y=by) for bx, by, w in ((512, 2, 8), (256, 1, 4), (128, 2, 4), (64, 1, 4))]
    return Case(configs, launch, lambda: [y[0, 0], y[B - 1, C - 1]], expected)


main("gems_bicubic", draw, make, 1e-3)
