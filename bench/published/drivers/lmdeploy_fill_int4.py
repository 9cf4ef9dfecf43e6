# Keys and values written to the pages of their sequences as int4, two in a byte, with a scale and a zero of each head.
from harness import *
from src_lmdeploy_fill_int4 import _fill_kv_cache_quant_kernel

PAGE = 64


def draw(d, tiny):
    if tiny:
        return dict(B=3, H=2, D=64, MOST=90, DECODE=0)
    return dict(B=d.between(1, 64), H=d.pick([2, 4, 8]), D=d.pick([64, 128]), MOST=d.between(64, 2048), DECODE=d.pick([0, 1]))


def make(B, H, D, MOST, DECODE):
    d = Draw(B, MOST, "lengths")
    new = [1 if DECODE else 1 + d.next() % MOST for _ in range(B)]
    old = [d.next() % MOST for _ in range(B)]
    starts = [sum(new[:i]) for i in range(B)]
    pages = triton.cdiv(2 * MOST, PAGE) + 1
    q_start, q_len, kv_len = [ints_of(x) for x in (starts, new, [n + o for n, o in zip(new, old)])]
    total = sum(new)
    k, v = randn(total, H, D, dtype=BF16), randn(total, H, D, dtype=BF16)
    table = torch.randperm(B * pages, device=DEVICE).to(torch.int32).reshape(B, pages)
    caches = [torch.zeros((B * pages, PAGE, H, D // 2), dtype=torch.uint8, device=DEVICE) for _ in range(2)]
    scales = [torch.zeros((B * pages, PAGE, H, 2), dtype=BF16, device=DEVICE) for _ in range(2)]
    unused = torch.empty((1,), device=DEVICE)
    half = D // 2

    def launch(c):
        grid = (H, 1 if DECODE else triton.cdiv(max(new), PAGE) + 1, B)
        strides = {}
        for x, state, cache, scale in (("k", k, caches[0], scales[0]), ("v", v, caches[1], scales[1])):
            for i, name in enumerate("shd"):
                strides["stride_%ss%s" % (x, name)] = state.stride(i)
            for i, name in enumerate("nbhd"):
                strides["stride_%sc%s" % (x, name)] = cache.stride(i)
                strides["stride_%ssz%s" % (x, name)] = scale.stride(i)
        _fill_kv_cache_quant_kernel[grid](
            k, v, caches[0], caches[1], scales[0], scales[1], unused, unused, unused, unused, q_start, q_len, kv_len, table,
            is_decoding=DECODE == 1, head_dim=half, head_dim_v=half, quant_policy=4, stride_boff=table.stride(0), BLOCK=PAGE,
            BLOCK_D=half, BLOCK_DV=half, **strides, **c)

    where = []
    for i in range(B):
        where += [(i, old[i] + j) for j in range(new[i])]
    sequence, place = [torch.tensor([w[n] for w in where], dtype=torch.int64, device=DEVICE) for n in (0, 1)]
    page = table[sequence, place // PAGE].to(torch.int64)

    def result():
        out = []
        for cache, scale in zip(caches, scales):
            bytes_, s = cache[page, place % PAGE], scale[page, place % PAGE].float()
            whole = torch.cat([bytes_ & 15, bytes_ >> 4], dim=-1).float()
            out += [(whole - s[:, :, 1:]) * s[:, :, :1], s[:, :, 0]]
        return out

    def expected():
        out = []
        for x in (k, v):
            x = x.float()
            out += [x, (x.amax(dim=-1) - x.amin(dim=-1)) / 15]
        return out

    # Half a step of sixteen between the smallest and the largest element.
    return Case([config(4, 1)], launch, result, expected)


def ints_of(values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


main("lmdeploy_fill_int4", draw, make, 0.08)
