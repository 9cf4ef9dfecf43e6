# Causal attention of sequences of different lengths, which also copies keys and values into the pages of a cache.
from harness import *
from src_colossal_prefill import _fwd_context_paged_attention_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, HKV=2, GROUP=2, N=100, D=64, BLOCK=32)
    return dict(B=d.between(1, 8), HKV=d.pick([4, 8]), GROUP=d.pick([1, 4]), N=d.between(512, 4096), D=d.pick([64, 128]),
                BLOCK=d.pick([32, 64]))


def make(B, HKV, GROUP, N, D, BLOCK):
    lengths = [N - i * (N // 16) for i in range(B)]
    begins = [sum(lengths[:i]) for i in range(B)]
    total, heads, scale, pages = sum(lengths), HKV * GROUP, D ** -0.5, triton.cdiv(N, BLOCK)
    q, k, v = [randn(total, h, D) for h in (heads, HKV, HKV)]
    o = torch.empty_like(q)
    caches = [torch.zeros((B * pages, HKV, BLOCK, D), dtype=torch.float16, device=DEVICE) for _ in range(2)]
    # Pages in any order.
    table = ((torch.arange(B * pages, dtype=torch.int32, device=DEVICE) + 3) % (B * pages)).to(torch.int32).reshape(B, pages)
    sizes = torch.tensor(lengths, dtype=torch.int32, device=DEVICE)

    def launch(c):
        _fwd_context_paged_attention_kernel[(B, heads, pages)](
            q, k, v, o, caches[0], caches[1], table, B, q.stride(0), q.stride(1), q.stride(2), k.stride(0), k.stride(1),
            k.stride(2), v.stride(0), v.stride(1), v.stride(2), o.stride(0), D, 1, caches[0].stride(0), caches[0].stride(1),
            caches[0].stride(2), caches[0].stride(3), table.stride(0), table.stride(1), sizes, scale, GROUP, BLOCK,
            HEAD_DIM=D, BLOCK_M=BLOCK, BLOCK_N=BLOCK, **c)

    n, begin = lengths[B - 1], begins[B - 1]

    def cached(cache):
        return cache[table[B - 1].to(torch.int64), HKV - 1].reshape(-1, D)[:n]

    def expected():
        qi, ki, vi = q[begin:, heads - 1].float(), k[begin:, HKV - 1].float(), v[begin:, HKV - 1].float()
        hidden = torch.triu(torch.ones((n, n), dtype=torch.bool, device=DEVICE), 1)
        return [torch.softmax((qi @ ki.T * scale).masked_fill(hidden, float("-inf")), dim=-1) @ vi, ki, vi]

    return Case([config(4, 3)], launch, lambda: [o[begin:, heads - 1], cached(caches[0]), cached(caches[1])], expected)


main("colossal_prefill", draw, make, 0.02)
