# Blocks of scores sorted with their places by one warp each: bits exchanged in dimensions of two.
from harness import *
from src_lmdeploy_bitonic_topk import _bitonic_topk_kernel0


def draw(d, tiny):
    if tiny:
        return dict(B=3, N=300, TOP=64)
    return dict(B=d.between(1, 64), N=d.between(2048, 32768), TOP=d.pick([256, 512]))


def make(B, N, TOP):
    x = torch.randn((B, N), device=DEVICE)
    lengths = torch.full((B,), N, dtype=torch.int32, device=DEVICE)
    y, places = torch.empty_like(x), torch.empty((B, N), dtype=torch.int32, device=DEVICE)
    count = 8 * torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3
    whole = N // TOP * TOP

    def launch(c):
        _bitonic_topk_kernel0[(count,)](x, lengths, y, places, N, B, triton.cdiv(N, TOP), K=TOP, fill=-1, descending=1,
                                        sorted=False, **c)

    def expected():
        values = torch.sort(x[:, :whole].reshape(B, whole // TOP, TOP), dim=-1, descending=True)[0]
        return [values.reshape(B, whole), values.reshape(B, whole)]

    def result():
        return [y[:, :whole], torch.gather(x, 1, places[:, :whole].to(torch.int64))]

    return Case([config(1)], launch, result, expected)


main("lmdeploy_bitonic_topk", draw, make, 1e-6)
