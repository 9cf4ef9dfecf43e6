# Causal attention of sequences of different lengths in one batch, queries grouped by head.
from harness import *
from src_prefill import _fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, HKV=2, GROUP=2, N=150, D=64)
    return dict(B=d.between(1, 8), HKV=d.pick([4, 8]), GROUP=d.pick([1, 4]), N=d.between(512, 4096), D=d.pick([64, 128]))


def make(B, HKV, GROUP, N, D):
    lengths = [N - i * (N // 16) for i in range(B)]
    begins = [sum(lengths[:i]) for i in range(B)]
    total, heads, scale = sum(lengths), HKV * GROUP, D ** -0.5
    q, k, v = [randn(total, h, D, dtype=BF16) for h in (heads, HKV, HKV)]
    o = torch.empty_like(q)
    b_start, b_length = [torch.tensor(t, dtype=torch.int32, device=DEVICE) for t in (begins, lengths)]

    def launch(c):
        _fwd_kernel[(B, heads, triton.cdiv(N, 128))](
            q, k, v, scale, b_start, b_length, o, q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
            o.stride(0), o.stride(1), kv_group_num=GROUP, BLOCK_M=128, BLOCK_DMODEL=D, BLOCK_N=128, IS_CAUSAL=True, Lk=D, **c)

    def expected():
        n = lengths[B - 1]
        qi, ki, vi = q[begins[B - 1]:, heads - 1].float(), k[begins[B - 1]:, HKV - 1].float(), v[begins[B - 1]:, HKV - 1].float()
        hidden = torch.triu(torch.ones((n, n), dtype=torch.bool, device=DEVICE), 1)
        return [torch.softmax((qi @ ki.T * scale).masked_fill(hidden, float("-inf")), dim=-1) @ vi]

    return Case([config(4 if D == 64 else 8, 1)], launch, lambda: [o[begins[B - 1]:, heads - 1]], expected)


main("prefill", draw, make, 0.02)
