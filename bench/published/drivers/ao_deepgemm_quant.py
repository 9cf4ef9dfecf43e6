# Columns of 128 tokens of one expert quantized to float8, written transposed for grouped products.
from harness import *
from src_ao_deepgemm_quant import triton_fp8_blockwise_act_quant_k_grouped_deepgemm_kernel

BLOCK = 128


def draw(d, tiny):
    if tiny:
        return dict(E=2, BLOCKS=3, D=256)
    return dict(E=d.pick([4, 8, 16]), BLOCKS=d.between(8, 128), D=d.pick([2048, 4096, 7168]))


def make(E, BLOCKS, D):
    d = Draw(E, BLOCKS, "experts")
    sizes = [0] * E
    for _ in range(BLOCKS):
        e = d.next() % E
        sizes[e] = sizes[e] + BLOCK
    x = randn(BLOCKS * BLOCK, D, dtype=BF16)
    q = torch.empty((BLOCKS * BLOCK * D,), dtype=torch.float8_e4m3fn, device=DEVICE)
    scales = torch.empty((D, BLOCKS), device=DEVICE)
    starts, offsets, lengths = [sum(sizes[:e]) for e in range(E)], [], []
    for e in range(E):
        for b in range(sizes[e] // BLOCK):
            offsets.append(starts[e] * D + b * BLOCK)
            lengths.append(sizes[e])
    offsets, lengths = [torch.tensor(v, dtype=torch.int64, device=DEVICE) for v in (offsets, lengths)]

    def launch(c):
        triton_fp8_blockwise_act_quant_k_grouped_deepgemm_kernel[(BLOCKS, D // c["NUM_GROUPS"])](
            x, offsets, lengths, q, scales, D=D, VALID_BLOCKS=BLOCKS, BLOCK_SIZE=BLOCK, EPS=1e-12, FP8_MAX=448.0, **c)

    def result():
        parts = [q[s * D:(s + n) * D].reshape(D, n).float() for s, n in zip(starts, sizes) if n > 0]
        return [torch.cat(parts, dim=1), scales]

    def expected():
        blocks = x.float().reshape(BLOCKS, BLOCK, D)
        largest = blocks.abs().amax(dim=1)
        scaled = blocks * (448.0 / largest)[:, None, :]
        return [scaled.reshape(BLOCKS * BLOCK, D).t(), largest.t() / 448.0]

    configs = [config(w, s, NUM_GROUPS=n) for n, w, s in ((32, 4, 2), (128, 8, 2), (64, 4, 4), (16, 2, 2))]
    return Case(configs, launch, result, expected)


main("ao_deepgemm_quant", draw, make, 0.04)
