# Attention of one query for each sequence over pages of keys and values, split along the sequence.
from harness import *
from src_lmdeploy_paged import _fwd_grouped_split_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, HKV=2, GROUP=4, D=96, N=150, PAGE=32, CAP=30)
    return dict(B=d.between(1, 32), HKV=d.pick([1, 4, 8]), GROUP=d.pick([1, 4, 7, 8]), D=d.pick([64, 96, 128]),
                N=d.between(512, 8192), PAGE=d.pick([32, 64]), CAP=d.pick([0, 0, 30]))


def make(B, HKV, GROUP, D, N, PAGE, CAP):
    pages, heads, scale = triton.cdiv(N, PAGE), HKV * GROUP, D ** -0.5
    q = randn(B, heads, D, dtype=BF16)
    k, v = [randn(B * pages, PAGE, HKV, D, dtype=BF16) for _ in range(2)]
    table = torch.randperm(B * pages, device=DEVICE).to(torch.int32).reshape(B, pages)
    d = Draw(B, N, "lengths")
    sizes = [d.between(max(N // 2, 1), N) for _ in range(B)]
    lengths = torch.tensor(sizes, dtype=torch.int32, device=DEVICE)
    # What does not fit a power of two is multiplied apart.
    first = triton.next_power_of_2(D)
    rest = 0
    if first != D:
        first = first // 2
        rest = max(16, triton.next_power_of_2(D - first))
    block_h = max(16, min(PAGE, triton.next_power_of_2(GROUP)))
    tiles = triton.cdiv(GROUP, block_h) * HKV
    room, splits = triton.cdiv(264 // tiles, triton.next_power_of_2(B)), 4  # as published, for 132 processors
    while splits * 2 <= min(room, 128):
        splits = splits * 2
    out = torch.zeros((B, heads, splits, D + 2), dtype=torch.float32, device=DEVICE)

    def launch(c):
        _fwd_grouped_split_kernel[(tiles, splits, B)](
            q, k, v, scale, lengths, table, out, None, stride_qbs=q.stride(0), stride_qh=q.stride(1), stride_qd=q.stride(2),
            stride_kp=k.stride(0), stride_kbs=k.stride(1), stride_kh=k.stride(2), stride_kd=k.stride(3),
            stride_vp=v.stride(0), stride_vbs=v.stride(1), stride_vh=v.stride(2), stride_vd=v.stride(3),
            stride_ok=out.stride(2), stride_obs=out.stride(0), stride_oh=out.stride(1), stride_od=out.stride(3),
            stride_boffb=table.stride(0), kv_group_num=GROUP, seq_len=1, window_size=0, head_size=D, head_size_v=D,
            num_heads_q=heads, logit_softcapping=float(CAP), shared_kv=False, SPLIT_K=splits, BLOCK_DMODEL=first,
            BLOCK_DV=triton.next_power_of_2(D), BLOCK_N=PAGE, BLOCK_H=block_h, BLOCK_DMODEL1=rest, **c)

    def result():
        largest, total = out[B - 1, :, :, D], out[B - 1, :, :, D + 1]
        weights = torch.exp2(largest - largest.max(-1)[0][:, None])
        return [(out[B - 1, :, :, :D] * weights[:, :, None]).sum(1) / (total * weights).sum(-1)[:, None]]

    def expected():
        here, rows = table[B - 1].to(torch.int64), []
        for h in range(heads):
            ki, vi = [t[here, :, h // GROUP].reshape(pages * PAGE, D)[:sizes[B - 1]].float() for t in (k, v)]
            s = ki @ q[B - 1, h].float() * scale
            if CAP > 0:
                s = torch.tanh(s / CAP) * CAP
            rows.append(torch.softmax(s, dim=-1) @ vi)
        return [torch.stack(rows)]

    return Case([config(4, 2 if first * block_h > 4096 else 3)], launch, result, expected)


main("lmdeploy_paged", draw, make, 0.02)
