# A convolution of images as a product of gathered patches and weights.
from harness import *
from src_gems_conv2d import conv2d_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=2, CI=10, CO=20, H=9, W=11, KERNEL=3, STRIDE=2, DILATION=1, GROUPS=2)
    groups = d.pick([1, 1, 2])
    return dict(N=d.between(1, 16), CI=d.pick([3, 32, 64, 96, 256]) * groups, CO=d.pick([32, 64, 80, 256]) * groups,
                H=d.between(14, 112), W=d.between(14, 112), KERNEL=d.pick([1, 3, 3, 5]), STRIDE=d.pick([1, 2]),
                DILATION=d.pick([1, 1, 2]), GROUPS=groups)


def make(N, CI, CO, H, W, KERNEL, STRIDE, DILATION, GROUPS):
    pad, per_in, per_out = KERNEL // 2, CI // GROUPS, CO // GROUPS
    oh, ow = [(x + 2 * pad - DILATION * (KERNEL - 1) - 1) // STRIDE + 1 for x in (H, W)]
    x, weight, bias = randn(N, CI, H, W), randn(CO, per_in, KERNEL, KERNEL), randn(CO)
    out = empty(N, CO, oh, ow)

    def launch(c):
        grid = (triton.cdiv(N * oh * ow, c["BLOCK_NI_HO_WO"]), triton.cdiv(per_out, c["BLOCK_CO"]), GROUPS)
        conv2d_forward_kernel[grid](
            x, weight, out, bias, N, H, W, CO, oh, ow, x.stride(0), x.stride(1), x.stride(2), x.stride(3), weight.stride(0),
            weight.stride(1), weight.stride(2), weight.stride(3), out.stride(0), out.stride(1), out.stride(2), out.stride(3),
            per_in, KERNEL, KERNEL, STRIDE, STRIDE, pad, pad, DILATION, DILATION, groups=GROUPS, **c)

    def expected():
        padded = torch.zeros((per_in, H + 2 * pad, W + 2 * pad), device=DEVICE)
        padded[:, pad:pad + H, pad:pad + W] = x[N - 1, CI - per_in:].float()
        rows = torch.arange(oh, device=DEVICE) * STRIDE
        columns = torch.arange(ow, device=DEVICE) * STRIDE
        total = bias[CO - per_out:].float()[:, None]
        for i in range(KERNEL):
            for j in range(KERNEL):
                patch = padded[:, rows + i * DILATION][:, :, columns + j * DILATION].reshape(per_in, oh * ow)
                total = total + weight[CO - per_out:, :, i, j].float() @ patch
        return [total.reshape(per_out, oh, ow)]

    configs = [config(4, s, BLOCK_NI_HO_WO=m, BLOCK_CO=n, BLOCK_CI=k) for m, n, k, s in [
        (64, 64, 32, 3), (32, 32, 32, 2), (128, 64, 32, 2), (128, 128, 32, 2)]]
    return Case(configs, launch, lambda: [out[N - 1, CO - per_out:]], expected)


main("gems_conv2d", draw, make, 0.01)
