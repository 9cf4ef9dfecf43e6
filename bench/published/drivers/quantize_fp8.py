# Groups of 128 elements to float8 with a scale each.
from harness import *
from src_quantize_fp8 import _per_token_group_quant_fp8

GROUP = 128


def draw(d, tiny):
    if tiny:
        return dict(M=5, N=512)
    return dict(M=d.between(16, 8192), N=d.between(512, 8192, 128))


def make(M, N):
    x, y = randn(M, N, dtype=BF16), empty(M, N, dtype=torch.float8_e4m3fn)
    s = torch.empty((M, N // GROUP), dtype=torch.float32, device=DEVICE)

    def launch(c):
        _per_token_group_quant_fp8[(M * N // GROUP,)](x, y, s, GROUP, N, x.stride(0), 1e-10, fp8_min=-448.0, fp8_max=448.0,
                                                      BLOCK=GROUP, **c)

    def result():
        return [(y.float().reshape(M, N // GROUP, GROUP) * s[:, :, None]).reshape(M, N), s]

    return Case([config(1, 1)], launch, result,
                lambda: [x, x.float().reshape(M, N // GROUP, GROUP).abs().amax(dim=-1) / 448.0])


main("quantize_fp8", draw, make, 0.07)
