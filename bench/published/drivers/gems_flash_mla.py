# Attention over latents (DeepSeek) of one query for each sequence, over pages, not split.
from harness import *
from src_gems_flash_mla import flash_mla_attn_kernel

LATENT, ALL, PAGE, BLOCK_H = 512, 576, 64, 64


def draw(d, tiny):
    if tiny:
        return dict(B=2, H=20, N=150)
    return dict(B=d.between(1, 64), H=d.pick([16, 20, 64, 128]), N=d.between(512, 8192))


def make(B, H, N):
    pages, scale = triton.cdiv(N, PAGE), ALL ** -0.5
    q, o = randn(B, H, ALL, dtype=BF16, scale=0.5), empty(B, H, LATENT, dtype=BF16)
    kv = randn(B * pages * PAGE, ALL, dtype=BF16, scale=0.5)
    table = torch.randperm(B * pages, device=DEVICE).to(torch.int32).reshape(B, pages)
    d = Draw(B, N, "lengths")
    sizes = [d.between(N // 2, N) for _ in range(B)]
    lengths = torch.tensor(sizes, dtype=torch.int32, device=DEVICE)

    def launch(c):
        flash_mla_attn_kernel[(triton.cdiv(H, BLOCK_H), B)](
            q, kv, table, lengths, o, scale, H, q.stride(0), q.stride(1), kv.stride(0), table.stride(0), o.stride(0),
            o.stride(1), o.stride(2), BLOCK_H=BLOCK_H, BLOCK_N=64, EVEN_H=H % BLOCK_H == 0, PAGE_SIZE=PAGE,
            HEAD_DIM_V=LATENT, HEAD_DIM=ALL, **c)

    def expected():
        ki = kv.reshape(B * pages, PAGE, ALL)[table[B - 1].to(torch.int64)].reshape(pages * PAGE, ALL)[:sizes[B - 1]].float()
        return [torch.softmax(q[B - 1].float() @ ki.T * scale, dim=-1) @ ki[:, :LATENT]]

    return Case([config(8, 3)], launch, lambda: [o[B - 1]], expected)


main("gems_flash_mla", draw, make, 0.02)
