# Causal attention to the blocks of keys that each block of queries has chosen.
from harness import *
from src_block_sparse_attention import _triton_block_sparse_attn_fwd_kernel

BLOCK = 64


def draw(d, tiny):
    if tiny:
        return dict(Z=1, H=2, BLOCKS=4, D=64, TOPK=2)
    return dict(Z=d.between(1, 3), H=d.pick([8, 16, 32]), BLOCKS=d.between(16, 128), D=d.pick([64, 128]),
                TOPK=d.pick([8, 16, 32]))


def make(Z, H, BLOCKS, D, TOPK):
    n, scale = BLOCKS * BLOCK, D ** -0.5
    q, k, v = [randn(Z, H, n, D, dtype=BF16) for _ in range(3)]
    o = torch.empty_like(q)
    lengths = torch.tensor([n] * Z, dtype=torch.int32, device=DEVICE)
    # Blocks up to the own one in order, behind them those that are not read.
    blocks = torch.arange(BLOCKS, device=DEVICE)
    order = torch.rand((Z, H, BLOCKS, BLOCKS), device=DEVICE) + (blocks[None, :] <= blocks[:, None]).float()
    chosen = torch.sort(torch.topk(order, min(TOPK, BLOCKS), dim=-1)[1], dim=-1)[0].to(torch.int32).contiguous()

    def launch(c):
        _triton_block_sparse_attn_fwd_kernel[(BLOCKS, Z * H, 1)](
            q, k, v, lengths, scale, chosen, o, q.stride(0), q.stride(1), q.stride(2), q.stride(3), k.stride(0), k.stride(1),
            k.stride(2), k.stride(3), v.stride(0), v.stride(1), v.stride(2), v.stride(3), o.stride(0), o.stride(1),
            o.stride(2), o.stride(3), Z, H, n, BLOCKS, chosen.shape[-1], BLOCK_M=BLOCK, BLOCK_N=BLOCK, BLOCK_DMODEL=D,
            dtype=TL_BF16, **c)

    shown = [0, BLOCKS // 2, BLOCKS - 1]

    def rows(x, i):
        return x[Z - 1, H - 1, i * BLOCK:(i + 1) * BLOCK]

    def expected():
        outputs = []
        for i in shown:
            read = chosen[Z - 1, H - 1, i, :min(i + 1, chosen.shape[-1])].to(torch.int64)
            tokens = (read[:, None] * BLOCK + torch.arange(BLOCK, device=DEVICE)).reshape(-1)
            s = rows(q, i).float() @ k[Z - 1, H - 1, tokens].float().T * scale
            hidden = tokens[None, :] > (i * BLOCK + torch.arange(BLOCK, device=DEVICE))[:, None]
            outputs.append(torch.softmax(s.masked_fill(hidden, float("-inf")), dim=-1) @ v[Z - 1, H - 1, tokens].float())
        return outputs

    return Case([config(4, 2)], launch, lambda: [rows(o, i) for i in shown], expected)


main("block_sparse_attention", draw, make, 0.02)
