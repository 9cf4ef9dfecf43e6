# The gradients of an RMS norm behind a SiLU gate: rows, and sums of columns in parts.
from harness import *
from src_mamba_gated_norm_backward import _layer_norm_bwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=13, N=500)
    return dict(M=d.between(256, 16384), N=d.pick([1024, 1536, 2048, 4096, 5120]))


def make(M, N):
    x, z, dy = [randn(M, N, dtype=BF16) for _ in range(3)]
    w = torch.randn((N,), device=DEVICE)
    gated = x.float() * z.float() * torch.sigmoid(z.float())
    rstd = 1 / torch.sqrt((gated * gated).mean(-1) + 1e-5)
    dx, dz = torch.empty_like(x), torch.empty_like(z)
    block = triton.next_power_of_2(N)
    warps = min(max(block // 256, 1), 8)
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3
    count *= triton.cdiv(4, warps)
    dw = torch.empty((count, N), device=DEVICE)

    def launch(c):
        _layer_norm_bwd_kernel[(count, 1)](x, w, None, z, None, dy, dx, dw, None, dz, None, rstd, N, N, 0, N, N, N, N, 0, M, N,
                                           1e-5, triton.cdiv(M, count), BLOCK_N=block, NORM_BEFORE_GATE=False,
                                           IS_RMS_NORM=True, HAS_BIAS=False, HAS_Z=True, RECOMPUTE_OUTPUT=False, **c)

    def expected():
        g, s = dy.float(), torch.sigmoid(z.float())
        silu = z.float() * s
        h = x.float() * silu
        hat = h * rstd[:, None]
        inner = (w * g - hat * (hat * w * g).mean(-1, keepdim=True)) * rstd[:, None]
        return [inner * silu, inner * x.float() * s * (1 + z.float() * (1 - s)), (g * hat).sum(0)]

    return Case([config(warps)], launch, lambda: [dx, dz, dw.sum(0)], expected)


main("mamba_gated_norm_backward", draw, make, 0.01)
