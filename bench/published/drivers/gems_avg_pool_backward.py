# The gradient of means of windows of 3 by 3 in steps of two.
from harness import *
from src_gems_avg_pool_backward import avg_pool2d_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, C=3, H=20, W=23)
    side = d.pick([28, 56, 112, 113])
    return dict(B=d.between(1, 32), C=d.pick([64, 128, 256]), H=side, W=side)


def make(B, C, H, W):
    oh, ow = (H - 1) // 2 + 1, (W - 1) // 2 + 1
    dy, dx = torch.randn((B, C, oh, ow), device=DEVICE), torch.empty((B, C, H, W), device=DEVICE)

    def launch(c):
        grid = (B * C, triton.cdiv(H, c["BLOCK_H"]) * triton.cdiv(W, c["BLOCK_W"]))
        avg_pool2d_backward_kernel[grid](dy, dx, C, H, W, oh, ow, dx.stride(0), dx.stride(1), dx.stride(2), dx.stride(3),
                                         dy.stride(0), dy.stride(1), dy.stride(2), dy.stride(3), 3, 3, 2, 2, 1, 1, 1, 1,
                                         COUNT_INCLUDE_PAD=True, divisor_override=0.0, **c)

    def expected():
        padded = torch.zeros((B, C, 2 * oh + 1, 2 * ow + 1), device=DEVICE)
        for i in range(9):
            h, w = i // 3, i % 3
            padded[:, :, h:h + 2 * oh:2, w:w + 2 * ow:2] += dy / 9.0
        return [padded[:, :, 1:H + 1, 1:W + 1]]

    configs = [config(w, s, BLOCK_H=h, BLOCK_W=n) for h, n, w, s in ((16, 16, 4, 4), (32, 32, 8, 2), (32, 64, 8, 2))]
    return Case(configs, launch, lambda: [dx], expected)


main("gems_avg_pool_backward", draw, make, 1e-5)
