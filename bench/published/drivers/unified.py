# vLLM's attention over paged keys and values: blocks of 16, queries of any number.
from harness import *
from src_unified import kernel_unified_attention_2d

D, PAGE = 128, 16


def draw(d, tiny):
    if tiny:
        return dict(B=2, HKV=2, GROUP=4, Q=20, N=100)
    n = d.between(512, 4096)
    return dict(B=d.between(1, 8), HKV=d.pick([2, 8]), GROUP=d.pick([4, 8]), Q=min(n, d.between(1, 1024)), N=n)


def make(B, HKV, GROUP, Q, N):
    pages, heads, scale = triton.cdiv(N, PAGE), HKV * GROUP, D ** -0.5
    q, o = randn(B * Q, heads, D, dtype=BF16), empty(B * Q, heads, D, dtype=BF16)
    k, v = [randn(B * pages, PAGE, HKV, D, dtype=BF16) for _ in range(2)]
    table = torch.randperm(B * pages, device=DEVICE).to(torch.int32).reshape(B, pages)
    starts = torch.arange(B + 1, dtype=torch.int32, device=DEVICE) * Q
    lengths = torch.full((B,), N, dtype=torch.int32, device=DEVICE)
    block_q = 16 // GROUP

    def launch(c):
        kernel_unified_attention_2d[(B * Q // block_q + B, HKV)](
            output_ptr=o, query_ptr=q, key_cache_ptr=k, value_cache_ptr=v, block_tables_ptr=table, seq_lens_ptr=lengths,
            alibi_slopes_ptr=None, scale=scale, k_scale=None, v_scale=None, softcap=0.0, num_query_heads=heads,
            num_queries_per_kv=GROUP, block_table_stride=table.stride(0), query_stride_0=q.stride(0),
            query_stride_1=q.stride(1), output_stride_0=o.stride(0), output_stride_1=o.stride(1), BLOCK_SIZE=PAGE,
            HEAD_SIZE=D, HEAD_SIZE_PADDED=D, USE_ALIBI_SLOPES=False, USE_SOFTCAP=False, SLIDING_WINDOW=0,
            stride_k_cache_0=k.stride(0), stride_k_cache_1=k.stride(1), stride_k_cache_2=k.stride(2),
            stride_k_cache_3=k.stride(3), stride_v_cache_0=v.stride(0), stride_v_cache_1=v.stride(1),
            stride_v_cache_2=v.stride(2), stride_v_cache_3=v.stride(3), query_start_len_ptr=starts, BLOCK_Q=block_q,
            num_seqs=B, BLOCK_M=16, **c)

    def expected():
        here = table[B - 1].to(torch.int64)
        ki, vi = [t[here, :, HKV - 1].reshape(pages * PAGE, D)[:N].float() for t in (k, v)]
        s = q[(B - 1) * Q:, heads - 1].float() @ ki.T * scale
        position = torch.arange(Q, device=DEVICE) + (N - Q)
        s = s.masked_fill(position[:, None] < torch.arange(N, device=DEVICE)[None, :], float("-inf"))
        return [torch.softmax(s, dim=-1) @ vi]

    return Case([config()], launch, lambda: [o[(B - 1) * Q:, heads - 1]], expected)


main("unified", draw, make, 0.02)
