# Pages of int4 keys and values made contiguous again in float16.
from harness import *
from src_lmdeploy_flatten_kv import _flatten_kv_cache_quant

PAGE = 64


def draw(d, tiny):
    if tiny:
        return dict(B=3, H=2, D=64, MOST=150)
    return dict(B=d.between(1, 64), H=d.pick([2, 4, 8]), D=d.pick([64, 128]), MOST=d.between(256, 8192))


def make(B, H, D, MOST):
    d = Draw(B, MOST, "lengths")
    lengths = [1 + d.next() % MOST for _ in range(B)]
    pages, total = triton.cdiv(MOST, PAGE), sum(lengths)
    size = triton.cdiv(total, PAGE) * PAGE
    starts = torch.tensor([sum(lengths[:i]) for i in range(B)], dtype=torch.int32, device=DEVICE)
    seqlens = torch.tensor(lengths, dtype=torch.int32, device=DEVICE)
    table = torch.randperm(B * pages, device=DEVICE).to(torch.int32).reshape(B, pages)
    caches = [ints(0, 256, (B * pages, PAGE, H, D // 2), torch.uint8) for _ in range(2)]
    scales = [torch.rand((B * pages, PAGE, H, 2), device=DEVICE).to(torch.float16) for _ in range(2)]
    outs = [empty(H, size, D) for _ in range(2)]
    unused = torch.empty((1,), device=DEVICE)

    def launch(c):
        strides = {}
        for x, cache, scale, out in (("k", caches[0], scales[0], outs[0]), ("v", caches[1], scales[1], outs[1])):
            for i, name in enumerate("bshd"):
                strides["stride_%sc%s" % (x, name)] = cache.stride(i)
                strides["stride_%ssz%s" % (x, name)] = scale.stride(i)
            for i, name in enumerate("hsd"):
                strides["stride_%so%s" % (x, name)] = out.stride(i)
        _flatten_kv_cache_quant[(max(pages, 2), B + 1, H)](
            caches[0], caches[1], outs[0], outs[1], scales[0], scales[1], unused, unused, starts, seqlens, table,
            quant_policy=4, stride_boff=table.stride(0), OUT_SIZE=size, HEAD_DIM_K=D, HEAD_DIM_V=D, BLOCK_BS=PAGE,
            BLOCK_DK=triton.next_power_of_2(D), BLOCK_DV=triton.next_power_of_2(D), **strides, **c)

    shown = min(lengths[0], 200)
    places = torch.arange(shown, device=DEVICE)
    page = table[0][places // PAGE].to(torch.int64)

    def expected():
        parts = []
        for cache, scale in zip(caches, scales):
            codes, s = cache[page, places % PAGE].to(torch.int32), scale[page, places % PAGE].float()
            whole = torch.cat([codes & 15, codes >> 4], dim=-1).float()
            parts.append(((whole - s[:, :, 1:]) * s[:, :, :1]).transpose(0, 1))
        return parts

    return Case([config()], launch, lambda: [o[:, :shown] for o in outs], expected)


main("lmdeploy_flatten_kv", draw, make, 0.01)
