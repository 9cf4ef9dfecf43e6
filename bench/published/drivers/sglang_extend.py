# New tokens of each sequence over what is cached of it, scattered in a pool, and over one another: causal, in a window,
# or by the mask of a tree of drafts.
from harness import *
from src_sglang_extend import _fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, HKV=1, GROUP=2, D=64, Q=24, CACHED=90, WINDOW=-1, TREE=1)
    tree = d.pick([0, 0, 1])
    return dict(B=d.between(1, 8), HKV=d.pick([2, 8]), GROUP=d.pick([1, 4, 7]), D=d.pick([64, 80, 128, 256]),
                Q=d.pick([8, 16, 63]) if tree else d.between(64, 2048), CACHED=d.between(64, 4096),
                WINDOW=-1 if tree else d.pick([-1, -1, 511]), TREE=tree)


def make(B, HKV, GROUP, D, Q, CACHED, WINDOW, TREE):
    heads, scale = HKV * GROUP, D ** -0.5
    d = Draw(B, Q, "lengths")
    news = [Q if TREE else d.between(max(Q // 2, 1), Q) for _ in range(B)]
    olds = [d.between(max(CACHED // 2, 1), CACHED) for _ in range(B)]
    q_starts, k_starts = [[sum(t[:i]) for i in range(B + 1)] for t in (news, olds)]
    q = randn(sum(news), heads, D, dtype=BF16)
    k, v = [randn(sum(news), HKV, D, dtype=BF16) for _ in range(2)]
    old_k, old_v = [randn(sum(olds), HKV, D, dtype=BF16) for _ in range(2)]
    places = torch.randperm(sum(olds), device=DEVICE).to(torch.int64)
    q_start, k_start = [torch.tensor(t, dtype=torch.int32, device=DEVICE) for t in (q_starts, k_starts)]
    o = torch.empty_like(q)

    # A draft sees itself and the drafts on its way to the root; a row of the mask covers what is cached too.
    rows = []
    for i in range(Q if TREE else 1):
        row = list(rows[d.next() % i]) if i > 0 else [0] * Q
        row[i] = 1
        rows.append(row)
    drafts = torch.tensor(rows, dtype=torch.uint8, device=DEVICE)
    masks, ends = [], [0]
    for n in olds:
        if TREE:
            masks.append(torch.cat([torch.ones((Q, n), dtype=torch.uint8, device=DEVICE), drafts], dim=1).reshape(-1))
            ends.append(ends[-1] + Q * (n + Q))
    mask = torch.cat(masks) if TREE else None
    mask_start = torch.tensor(ends, dtype=torch.int64, device=DEVICE) if TREE else None
    m = 128 if D <= 128 else 64

    def launch(c):
        _fwd_kernel[(B, heads, triton.cdiv(max(news), m))](
            q, k, v, o, None, old_k, old_v, q_start, k_start, places, mask, mask_start, None, None, scale, 1.0, 1.0, GROUP,
            q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1), o.stride(0), o.stride(1), 0, 0,
            old_k.stride(0), old_k.stride(1), old_v.stride(0), old_v.stride(1), 0, 0, 0, 0, B, SLIDING_WINDOW_SIZE=WINDOW,
            logit_cap=0.0, xai_temperature_len=-1, Lq=D, Lv=D, BLOCK_DMODEL=triton.next_power_of_2(D), BLOCK_DPE=0,
            BLOCK_DV=triton.next_power_of_2(D), BLOCK_M=m, BLOCK_N=64, BLOCK_N_PREFIX=64, USE_CUSTOM_MASK=TREE == 1,
            IS_CAUSAL=True, SKIP_PREFIX_CUSTOM_MASK=True, STORE_LSE=False, SKIP_PREFIX=False, SKIP_EXTEND=False,
            STORE_TRANSPOSE=False, HAS_SINK=False, USE_COMPACT_TILE_GRID=False, USE_EXP2=False, USE_FP8_PREFIX=False,
            USE_FP8_EXTEND=False, FP8_MAX=448.0, **c)

    def expected():
        here, new, old = places[k_starts[B - 1]:], news[B - 1], olds[B - 1]
        ki, vi = [torch.cat([before[here, HKV - 1], t[q_starts[B - 1]:, HKV - 1]]).float()
                  for before, t in ((old_k, k), (old_v, v))]
        s = q[q_starts[B - 1]:, heads - 1].float() @ ki.T * scale
        position, keys = torch.arange(new, device=DEVICE)[:, None] + old, torch.arange(old + new, device=DEVICE)[None, :]
        hidden = position < keys
        if TREE:
            hidden = torch.cat([torch.zeros((Q, old), dtype=torch.bool, device=DEVICE), drafts == 0], dim=1)
        if WINDOW > 0:
            hidden = hidden | (position > keys + WINDOW)
        return [torch.softmax(s.masked_fill(hidden, float("-inf")), dim=-1) @ vi]

    return Case([config(4 if D <= 64 else 8, 1)], launch, lambda: [o[q_starts[B - 1]:, heads - 1]], expected)


main("sglang_extend", draw, make, 0.02)
