# Images enlarged or shrunk to their nearest elements.
from harness import *
from src_gems_upsample_nearest import upsample_nearest2d_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=1, C=6, IH=9, IW=12, OH=20, OW=31)
    side = d.pick([28, 56, 112])
    return dict(N=d.between(1, 8), C=d.pick([16, 64, 256]), IH=side, IW=side, OH=d.between(side, 4 * side),
                OW=d.between(side, 4 * side))


def make(N, C, IH, IW, OH, OW):
    x = randn(N, C, IH, IW, dtype=torch.float32)
    # The published kernel does not mask: its last block writes beyond an image, into the next, and beyond the last one.
    room = torch.empty((N * C * OH * OW + 4096,), device=DEVICE)

    def launch(c):
        grid = (triton.cdiv(OH * OW, c["BLOCK_SIZE"]), triton.cdiv(N * C, 4))
        upsample_nearest2d_kernel[grid](room, x, N, C, OH, OW, IH, IW, IH / OH, IW / OW, SAME_H=OH == IH, SAME_W=OW == IW,
                                        USE_INT32_IDX=True, **c)

    def expected():
        rows = (torch.arange(OH, device=DEVICE) * (IH / OH)).to(torch.int64).clamp(max=IH - 1)
        columns = (torch.arange(OW, device=DEVICE) * (IW / OW)).to(torch.int64).clamp(max=IW - 1)
        return [x[:, :, rows][:, :, :, columns]]

    configs = [config(w, BLOCK_SIZE=b) for b, w in ((1024, 4), (512, 4), (2048, 8))]
    return Case(configs, launch, lambda: [room[:N * C * OH * OW].reshape(N, C, OH, OW)], expected)


main("gems_upsample_nearest", draw, make, 1e-6)
