# Rotary embedding of new queries and keys, these and the values written to their places in a padded cache.
from harness import *
from src_xformers_rope_padded import _rope_padded_kernel

THETA = 10000.0


def draw(d, tiny):
    if tiny:
        return dict(B=3, HQ=4, HK=2, D=96, MOST=5, PADDING=40)
    return dict(B=d.between(1, 64), HQ=d.pick([8, 16, 32]), HK=d.pick([1, 4, 8]), D=d.pick([64, 128]), MOST=d.between(1, 200),
                PADDING=d.between(256, 4096))


def make(B, HQ, HK, D, MOST, PADDING):
    d = Draw(B, MOST, "lengths")
    new = [1 + d.next() % MOST for _ in range(B)]
    lengths = [n + d.next() % (PADDING - MOST) for n in new]
    starts = [sum(new[:i]) for i in range(B + 1)]
    q_start, k_start, k_length = [torch.tensor(x, dtype=torch.int32, device=DEVICE) for x in
                                  (starts, [PADDING * i for i in range(B + 1)], lengths)]
    total = starts[B]
    q, k, v = [randn(1, total, h, D, dtype=BF16) for h in (HQ, HK, HK)]
    out = torch.empty_like(q)
    cache_k, cache_v = [torch.zeros((1, B * PADDING, HK, D), dtype=BF16, device=DEVICE) for _ in range(2)]
    block = min(max(triton.next_power_of_2(D), 128), 4096)
    places, rows = [], []
    for i in range(B):
        for j in range(new[i]):
            places.append(lengths[i] - new[i] + j)
            rows.append(PADDING * i + places[-1])
    place, row = [torch.tensor(x, dtype=torch.int64, device=DEVICE) for x in (places, rows)]

    def launch(c):
        _rope_padded_kernel[(max(new), B, HQ + 2 * HK)](
            q, k, v, out, cache_k, cache_v, q_start, k_start, k_length, THETA, 1.0, False, 0, 0, 0, 0, None, None, HQ, HQ + HK,
            1, D, q.stride(1), 0, q.stride(2), k.stride(1), 0, k.stride(2), v.stride(1), 0, v.stride(2), cache_k.stride(1), 0,
            cache_k.stride(2), cache_v.stride(1), 0, cache_v.stride(2), 1, 1, 1, out.stride(1), 0, out.stride(2), 0, "",
            const_batch_strides=False, cache_padding_length=0, seqlenk_shift=0, BLOCK_SIZE=block, adjacents=True, **c)

    def rotated(x):
        powers = torch.arange(D // 2, device=DEVICE).float() * (-2.0 / D)
        angles = place.float()[:, None] * torch.exp(powers * math.log(THETA))[None, :]
        c, s = torch.cos(angles)[:, None, :], torch.sin(angles)[:, None, :]
        pairs = x[0].float().reshape(total, x.shape[2], D // 2, 2)
        a, b = pairs[:, :, :, 0], pairs[:, :, :, 1]
        return torch.stack([a * c - b * s, b * c + a * s], dim=-1).reshape(total, x.shape[2], D)

    return Case([config(min(max(block // 256, 1), 8))], launch, lambda: [out[0], cache_k[0][row], cache_v[0][row]],
                lambda: [rotated(q), rotated(k), v[0]])


main("xformers_rope_padded", draw, make, 0.02)
