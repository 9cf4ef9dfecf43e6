# Attention of new tokens: over pages of an older cache whose keys are cut into eighths, then over themselves.
from harness import *
from src_vllm_prefix_prefill import _fwd_kernel

PAGE, X = 16, 8


def draw(d, tiny):
    if tiny:
        return dict(B=2, Q=70, C=50, H=2, KV=1, D=64)
    h = d.pick([8, 16, 32])
    return dict(B=d.between(1, 8), Q=d.between(128, 2048), C=d.between(64, 4096), H=h, KV=h // d.pick([1, 4]),
                D=d.pick([64, 128]))


def make(B, Q, C, H, KV, D):
    pages = triton.cdiv(C + Q, PAGE)
    q, out = randn(B * Q, H, D), empty(B * Q, H, D)
    k, v = randn(B * Q, KV, D), randn(B * Q, KV, D)
    keys, values = randn(B * pages, KV, D // X, PAGE, X), randn(B * pages, KV, D, PAGE)
    table = torch.arange(B * pages, dtype=torch.int32, device=DEVICE).flip(0).reshape(B, pages).contiguous()
    starts = torch.tensor([i * Q for i in range(B + 1)], dtype=torch.int32, device=DEVICE)
    lengths = torch.full((B,), C + Q, dtype=torch.int32, device=DEVICE)
    scale = torch.ones((1,), device=DEVICE)

    def launch(c):
        _fwd_kernel[(B, H, triton.cdiv(Q, 128))](
            q, k, v, keys, values, table, D ** -0.5, scale, scale, starts, lengths, X, out, table.stride(0),
            table.stride(1), *q.stride(), *k.stride(), *v.stride(), *out.stride(), *keys.stride(), *values.stride(),
            BLOCK_SIZE=PAGE, num_queries_per_kv=H // KV, IN_PRECISION=None, BLOCK_DMODEL=D, BLOCK_DMODEL_PADDED=D,
            SLIDING_WINDOW=0, SKIP_DECODE=False, BLOCK_M=128, BLOCK_N=64, num_unroll_cache=4, num_unroll_request=1, **c)

    def expected():
        kv = (H - 1) // (H // KV)
        pages_of = table[B - 1].tolist()
        old_k = torch.cat([keys[i, kv].permute(1, 0, 2).reshape(PAGE, D) for i in pages_of])[:C]
        old_v = torch.cat([values[i, kv].T for i in pages_of])[:C]
        new = slice((B - 1) * Q, B * Q)
        kk, vv = torch.cat([old_k, k[new, kv]]).float(), torch.cat([old_v, v[new, kv]]).float()
        s = q[new, H - 1].float() @ kk.T * D ** -0.5
        row, column = torch.arange(Q, device=DEVICE)[:, None], torch.arange(C + Q, device=DEVICE)[None, :]
        return [torch.softmax(torch.where(column <= row + C, s, float("-inf")), dim=-1) @ vv]

    return Case([config(4, 1)], launch, lambda: [out[(B - 1) * Q:, H - 1]], expected)


main("vllm_prefix_prefill", draw, make, 0.02)
