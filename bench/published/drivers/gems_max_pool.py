# Maxima of windows of 3 by 3 in steps of two, and their places.
from harness import *
from src_gems_max_pool import max_pool2d_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, C=3, H=20, W=23)
    side = d.pick([28, 56, 112, 113])
    return dict(B=d.between(1, 32), C=d.pick([64, 128, 256]), H=side, W=side)


def make(B, C, H, W):
    x = torch.randn((B, C, H, W), device=DEVICE)
    oh, ow = (H - 1) // 2 + 1, (W - 1) // 2 + 1
    y = torch.empty((B, C, oh, ow), device=DEVICE)
    places = torch.empty((B, C, oh, ow), dtype=torch.int64, device=DEVICE)

    def launch(c):
        grid = (B * C, triton.cdiv(oh, c["BLOCK_H"]) * triton.cdiv(ow, c["BLOCK_W"]))
        max_pool2d_forward_kernel[grid](x, y, places, x.stride(0), x.stride(1), x.stride(2), x.stride(3), C, H, W, oh, ow,
                                        3, 3, 2, 2, 1, 1, 1, 1, **c)

    def expected():
        padded = torch.full((B, C, 2 * oh + 1, 2 * ow + 1), -1e30, device=DEVICE)
        padded[:, :, 1:H + 1, 1:W + 1] = x
        best = padded[:, :, 0:2 * oh:2, 0:2 * ow:2]
        for i in range(9):
            h, w = i // 3, i % 3
            best = torch.maximum(best, padded[:, :, h:h + 2 * oh:2, w:w + 2 * ow:2])
        return [best, best.reshape(B * C, oh * ow)]

    configs = [config(w, s, BLOCK_H=h, BLOCK_W=n) for h, n, w, s in ((16, 16, 4, 4), (8, 8, 2, 5), (32, 32, 8, 2))]
    return Case(configs, launch,
                lambda: [y, torch.gather(x.reshape(B * C, H * W), 1, places.reshape(B * C, oh * ow))], expected)


main("gems_max_pool", draw, make, 1e-6)
