# Attention of one query for each sequence over keys and values scattered in a pool, split along the sequence.
from harness import *
from src_decode import _fwd_grouped_kernel_stage1

D, SPLITS = 128, 8


def draw(d, tiny):
    if tiny:
        return dict(B=2, HKV=2, GROUP=4, N=300)
    return dict(B=d.between(1, 32), HKV=d.pick([1, 4, 8]), GROUP=d.pick([4, 8]), N=d.between(512, 8192))


def make(B, HKV, GROUP, N):
    heads, scale = HKV * GROUP, D ** -0.5
    q = randn(B, heads, D, dtype=BF16)
    k, v = randn(B * N, HKV, D, dtype=BF16), randn(B * N, HKV, D, dtype=BF16)
    places = torch.randperm(B * N, device=DEVICE).to(torch.int32)
    starts = torch.arange(B + 1, device=DEVICE, dtype=torch.int32) * N
    splits = torch.full((B,), SPLITS, dtype=torch.int32, device=DEVICE)
    out = torch.zeros((B, heads, SPLITS, D), dtype=torch.float32, device=DEVICE)
    lse = torch.full((B, heads, SPLITS), float("-inf"), dtype=torch.float32, device=DEVICE)

    def launch(c):
        _fwd_grouped_kernel_stage1[(B, HKV * triton.cdiv(GROUP, 16), SPLITS)](
            q, k, v, scale, starts, places, out, lse, splits, q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0),
            v.stride(1), 0, 0, 0, 0, out.stride(0), out.stride(1), out.stride(2), kv_group_num=GROUP, q_head_num=heads,
            BLOCK_DMODEL=D, BLOCK_DPE=0, BLOCK_DV=D, BLOCK_N=32, BLOCK_H=16, MIN_BLOCK_KV=32, logit_cap=0.0,
            xai_temperature_len=-1, Lk=D, Lv=D, **c)

    def result():
        weights = torch.softmax(lse[B - 1], dim=-1)
        return [(out[B - 1] * weights[:, :, None]).sum(1)]

    def expected():
        here = places[(B - 1) * N:].to(torch.int64)
        rows = []
        for h in range(heads):
            s = k[here, h // GROUP].float() @ q[B - 1, h].float() * scale
            rows.append(torch.softmax(s, dim=-1) @ v[here, h // GROUP].float())
        return [torch.stack(rows)]

    return Case([config(4, 2)], launch, result, expected)


main("decode", draw, make, 0.02)
