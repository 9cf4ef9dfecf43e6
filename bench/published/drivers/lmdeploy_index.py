# Scores of an indexer: every head's product of float8 with a page of keys, made positive and summed over the heads.
from harness import *
from src_lmdeploy_index import _fp8_index_kernel

PAGE = 64


def draw(d, tiny):
    if tiny:
        return dict(B=2, Q=3, L=200, H=64)
    return dict(B=d.between(1, 16), Q=d.pick([1, 2, 64]), L=d.between(1024, 16384), H=d.pick([32, 64]))


def make(B, Q, L, H):
    d = Draw(B, L, "lengths")
    lengths = [d.between(max(Q, L // 2), L) for _ in range(B)]
    pages = triton.cdiv(L, PAGE)
    total = B * pages
    q, keys = randn(B * Q, H, 128, dtype=torch.float8_e4m3fn), randn(total, PAGE, 128, dtype=torch.float8_e4m3fn)
    q_scale, key_scale = torch.rand((B * Q, H), device=DEVICE), torch.rand((total, PAGE), device=DEVICE)
    table = torch.tensor([[(b * pages + p) * 7 % total if total % 7 else b * pages + p for p in range(pages)]
                          for b in range(B)], dtype=torch.int32, device=DEVICE)
    starts = torch.tensor([b * Q for b in range(B + 1)], dtype=torch.int32, device=DEVICE)
    seen = torch.tensor(lengths, dtype=torch.int32, device=DEVICE)
    out = torch.empty((B * Q, pages * PAGE), device=DEVICE)
    sms = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 4
    split = max(1, triton.cdiv(sms * 2, B * Q))

    def launch(c):
        _fp8_index_kernel[(B * Q, split)](
            q, q_scale, keys, key_scale, starts, seen, table, seen, seen, out, *q.stride(), *q_scale.stride(),
            *keys.stride(), *key_scale.stride(), *table.stride(), *out.stride(), max_q_seqlen=Q, causal=True,
            use_raw_causal_seqlen=False, return_row_k_seqlen=False, trim_causal_tail=True, COMPRESS_RATIO=1,
            num_split=split, BLOCK_H=H, BLOCK_N=PAGE, BLOCK_D=128, **c)

    def valid(b):
        return lengths[b] - Q + 1  # of a sequence's first query

    def expected():
        shown = []
        for b in (0, B - 1):
            k = torch.cat([keys[i].float() for i in table[b].tolist()])[:valid(b)]
            scale = torch.cat([key_scale[i] for i in table[b].tolist()])[:valid(b)]
            logits = (q[b * Q].float() @ k.T).clamp(min=0.0) * q_scale[b * Q][:, None]
            shown.append(logits.sum(0) * scale)
        return shown

    return Case([config(4, 3)], launch, lambda: [out[b * Q, :valid(b)] for b in (0, B - 1)], expected)


main("lmdeploy_index", draw, make, 0.02)
