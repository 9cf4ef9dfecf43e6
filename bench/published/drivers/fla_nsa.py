# Native sparse attention: each query attends to the blocks of keys that were selected for it.
from harness import *
from src_fla_nsa import parallel_nsa_fwd_kernel

GROUP = 16


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=90, H=2, K=64, V=64, S=3, BLOCK=16)
    return dict(B=d.between(1, 4), T=d.between(1024, 4096), H=d.pick([1, 2, 4]), K=d.pick([64, 96, 128]),
                V=d.pick([64, 128]), S=d.pick([8, 16]), BLOCK=d.pick([32, 64]))


def make(B, T, H, K, V, S, BLOCK):
    heads, scale = H * GROUP, K ** -0.5
    q, k, v = randn(B, T, heads, K, dtype=BF16), randn(B, T, H, K, dtype=BF16), randn(B, T, H, V, dtype=BF16)
    o, lse = empty(B, T, heads, V, dtype=BF16), empty(B, T, heads, dtype=torch.float32)
    # The own block first, then earlier ones at random; where these are too few, later ones, which the kernel skips.
    blocks = torch.arange(triton.cdiv(T, BLOCK), device=DEVICE)
    own = (torch.arange(T, device=DEVICE) // BLOCK)[:, None]
    bonus = (blocks[None, :] <= own).float() + (blocks[None, :] == own).float()
    order = torch.rand((B, T, H, triton.cdiv(T, BLOCK)), device=DEVICE) + bonus[None, :, None, :]
    chosen = torch.topk(order, S, dim=-1)[1].to(torch.int64).contiguous()
    bk, bv = [min(256, triton.next_power_of_2(x)) for x in (K, V)]

    def launch(c):
        parallel_nsa_fwd_kernel[(T, triton.cdiv(V, bv), B * H)](
            q=q, k=k, v=v, o=o, lse=lse, scale=scale, block_indices=chosen, block_counts=S, cu_seqlens_q=None,
            cu_seqlens_k=None, token_indices_q=None, TQ=T, TK=T, H=H, HQ=heads, G=GROUP, K=K, V=V, S=S, BS=BLOCK, BK=bk,
            BV=bv, IS_VARLEN=False, USE_BLOCK_COUNTS=False, **c)

    shown = [0, T // 3, T - 1]

    def expected():
        outputs, sums = [], []
        for t in shown:
            tokens = (chosen[B - 1, t, H - 1][:, None] * BLOCK + torch.arange(BLOCK, device=DEVICE)[None, :]).reshape(-1)
            seen = tokens.clamp(max=t)
            s = q[B - 1, t, heads - GROUP:].float() @ k[B - 1, seen, H - 1].float().T * scale
            s = s.masked_fill((tokens > t)[None, :], float("-inf"))
            outputs.append(torch.softmax(s, dim=-1) @ v[B - 1, seen, H - 1].float())
            sums.append(torch.logsumexp(s, dim=-1))
        return [torch.stack(outputs), torch.stack(sums)]

    def result():
        return [torch.stack([x[B - 1, t, heads - GROUP:] for t in shown]) for x in (o, lse)]

    return Case([config(4, 3), config(2, 2), config(1, 3), config(8, 1)], launch, result, expected)


main("fla_nsa", draw, make, 0.02)
