# Native sparse attention of sequences in one tensor: the blocks of keys that each query has chosen.
from harness import *
from src_topk_sparse import forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, N=150, HKV=2, GROUP=2, D=64, TOPK=3, BLOCK=32)
    return dict(B=d.between(1, 4), N=d.between(1024, 8192), HKV=d.pick([1, 2, 4]), GROUP=d.pick([8, 16]),
                D=d.pick([64, 96, 128]), TOPK=d.pick([8, 16]), BLOCK=d.pick([32, 64]))


def make(B, N, HKV, GROUP, D, TOPK, BLOCK):
    lengths = [N - i * (N // 16) for i in range(B)]
    begins = [sum(lengths[:i]) for i in range(B + 1)]
    total, heads, scale = sum(lengths), HKV * GROUP, D ** -0.5
    q, k, v = [randn(total, h, D, dtype=BF16) for h in (heads, HKV, HKV)]
    o, lse = empty(total, heads, D, dtype=BF16), empty(heads, total, dtype=torch.float32)
    cu = torch.tensor(begins, dtype=torch.int32, device=DEVICE)
    # The own block and earlier ones at random, then -1.
    blocks = torch.arange(triton.cdiv(N, BLOCK), device=DEVICE)
    own = (torch.tensor([t for n in lengths for t in range(n)], dtype=torch.int32, device=DEVICE) // BLOCK)[:, None]
    bonus = (blocks[None, :] <= own).float() + (blocks[None, :] == own).float()
    order = torch.rand((HKV, total, triton.cdiv(N, BLOCK)), device=DEVICE) + bonus[None]
    chosen = torch.topk(order, min(TOPK, triton.cdiv(N, BLOCK)), dim=-1)[1].to(torch.int32)
    chosen = torch.where(chosen <= own[None].to(torch.int32), chosen, -1).to(torch.int32).contiguous()
    topk = chosen.shape[-1]

    def launch(c):
        forward_kernel[(B, HKV, N)](
            q, k, v, chosen, o, lse, cu, cu, HKV, GROUP, D, topk, 1, scale, q.stride(0), q.stride(1), q.stride(2),
            k.stride(0), k.stride(1), k.stride(2), v.stride(0), v.stride(1), v.stride(2), chosen.stride(0),
            chosen.stride(1), chosen.stride(2), o.stride(0), o.stride(1), o.stride(2), lse.stride(0), lse.stride(1),
            BLOCK_SIZE_K=BLOCK, BLOCK_SIZE_D=triton.next_power_of_2(D), BLOCK_SIZE_H=16,
            BLOCK_SIZE_T=triton.next_power_of_2(topk), **c)

    n, begin = lengths[B - 1], begins[B - 1]
    shown = [0, n // 3, n - 1]

    def expected():
        outputs, sums = [], []
        for t in shown:
            picked = chosen[HKV - 1, begin + t]
            tokens = (picked[picked >= 0].to(torch.int64)[:, None] * BLOCK + torch.arange(BLOCK, device=DEVICE)).reshape(-1)
            tokens = tokens[tokens <= t] + begin
            s = q[begin + t, heads - GROUP:].float() @ k[tokens, HKV - 1].float().T * scale
            outputs.append(torch.softmax(s, dim=-1) @ v[tokens, HKV - 1].float())
            sums.append(torch.logsumexp(s, dim=-1) / math.log(2.0))
        return [torch.stack(outputs), torch.stack(sums)]

    def result():
        return [torch.stack([o[begin + t, heads - GROUP:] for t in shown]),
                torch.stack([lse[heads - GROUP:, begin + t] for t in shown])]

    return Case([config(4, 3) if D > 64 else config(2, 2)], launch, result, expected)


main("topk_sparse", draw, make, 0.02)
