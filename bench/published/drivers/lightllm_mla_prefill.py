# Attention over latents (DeepSeek): new tokens of each sequence over the latents of all before, scattered in a pool.
from harness import *
from src_lightllm_mla_prefill import _fwd_kernel

LATENT, ROPE, BLOCK = 512, 64, 32


def draw(d, tiny):
    if tiny:
        return dict(B=2, H=2, Q=40, CACHED=37)
    return dict(B=d.between(1, 6), H=d.pick([8, 16]), Q=d.between(16, 1024), CACHED=d.between(1, 2048))


def make(B, H, Q, CACHED):
    scale = (128 + ROPE) ** -0.5
    d = Draw(B, Q, "lengths")
    news = [d.between(max(Q // 2, 1), Q) for _ in range(B)]
    starts = [sum(news[:i]) for i in range(B)]
    room = Q + CACHED
    q, q_rope = randn(sum(news), H, LATENT, dtype=BF16, scale=0.3), randn(sum(news), H, ROPE, dtype=BF16)
    kv, kv_rope = randn(B * room, 1, LATENT, dtype=BF16, scale=0.3), randn(B * room, 1, ROPE, dtype=BF16)
    places = torch.randperm(B * room, device=DEVICE).to(torch.int32).reshape(B, room)
    start, length, cached, request = [torch.tensor(t, dtype=torch.int32, device=DEVICE) for t in (
        starts, [x + CACHED for x in news], [CACHED] * B, list(range(B)))]
    o = torch.empty_like(q)

    def launch(c):
        _fwd_kernel[(B, H, triton.cdiv(max(news), BLOCK))](
            q, q_rope, kv, kv_rope, scale, start, length, o, places, request, q.stride(0), q.stride(1), q.stride(2),
            q_rope.stride(0), q_rope.stride(1), q_rope.stride(2), kv.stride(0), kv.stride(1), kv.stride(2),
            kv_rope.stride(0), kv_rope.stride(1), kv_rope.stride(2), o.stride(0), o.stride(1), o.stride(2),
            places.stride(0), places.stride(1), kv_group_num=H, b_prompt_cache_len=cached, BLOCK_M=BLOCK,
            BLOCK_DMODEL=LATENT, BLOCK_ROPE_DMODEL=ROPE, BLOCK_N=BLOCK, **c)

    def expected():
        count = news[B - 1]
        here = places[B - 1, :count + CACHED].to(torch.int64)
        ki, ri = kv[here, 0].float(), kv_rope[here, 0].float()
        s = (q[starts[B - 1]:, H - 1].float() @ ki.T + q_rope[starts[B - 1]:, H - 1].float() @ ri.T) * scale
        position = torch.arange(count, device=DEVICE) + CACHED
        s = s.masked_fill(position[:, None] < torch.arange(count + CACHED, device=DEVICE)[None, :], float("-inf"))
        return [torch.softmax(s, dim=-1) @ ki]

    return Case([config(8, 1)], launch, lambda: [o[starts[B - 1]:, H - 1]], expected)


main("lightllm_mla_prefill", draw, make, 0.02)
