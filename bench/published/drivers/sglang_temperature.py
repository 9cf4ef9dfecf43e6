# Softmax with temperatures over vocabularies, rows split: maxima and sums of parts, of rows, then probabilities.
from harness import *
from src_sglang_temperature import _combine_kernel, _normalize_kernel, _partial_max_sumexp_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=3, V=9000, BLOCK=2048)
    return dict(B=d.between(1, 64), V=d.pick([32000, 50257, 128256, 151936]), BLOCK=d.pick([4096, 8192]))


def make(B, V, BLOCK):
    x, t = torch.randn((B, V), device=DEVICE) * 3.0, torch.rand((B,), device=DEVICE) + 0.3
    y = torch.empty_like(x)
    splits = triton.cdiv(V, BLOCK)
    maxima, sums = [torch.empty((B, splits), device=DEVICE) for _ in range(2)]
    row_max, row_sum = [torch.empty((B,), device=DEVICE) for _ in range(2)]

    def launch(c):  # each kernel with the warps that it was published with
        _partial_max_sumexp_kernel[(B, splits)](x, t, maxima, sums, V, V, splits, BLOCK=BLOCK, num_warps=8)
        _combine_kernel[(B,)](maxima, sums, row_max, row_sum, splits, BLOCK=triton.next_power_of_2(splits), num_warps=1)
        _normalize_kernel[(B, splits)](x, t, row_max, row_sum, y, V, V, V, BLOCK=BLOCK, num_warps=8)

    return Case([config()], launch, lambda: [y], lambda: [torch.softmax(x / t[:, None], dim=-1)])


main("sglang_temperature", draw, make, 1e-3)
