"""What generation does around a model: caches, masks, places, and the choice of tokens."""
import math

import torch
import torch.nn.functional as F

from draw import BF16, DEVICE, integers, line, rand, uniform


@line
def reorder_cache(d):
    """Beams take over each other's keys and values, and get those of a new token."""
    b, h, e, s = 2 + d.below(16), d.pick([4, 8]), d.pick([64, 128]), d.length([100, 257, 1000])
    t = d.dtype()

    def f(k, v, beam, new_k, new_v):
        k, v = k.index_select(0, beam), v.index_select(0, beam)
        return torch.cat([k, new_k], dim=2), torch.cat([v, new_v], dim=2)

    return f, [rand((b, h, s, e), t), rand((b, h, s, e), t), integers(b, (b,)), rand((b, h, 1, e), t),
               rand((b, h, 1, e), t)]


@line
def no_repeated_ngrams(d):
    """Tokens that would end an n-gram which was there before."""
    b, s, n, v = 1 + d.below(16), d.length([100, 333, 1000]), d.pick([2, 3, 4]), d.vocabulary()

    def f(logits, ids):
        grams = ids.unfold(1, n, 1)
        seen = (grams[..., :-1] == ids[:, None, s - n + 1 :]).all(-1)
        banned = torch.zeros(b, v, device=ids.device).scatter_reduce(1, grams[..., -1], seen.float(), "amax")
        return logits.masked_fill(banned.bool(), -float("inf"))

    return f, [rand((b, v)), integers(20, (b, s))]


@line
def padding_causal_mask(d):
    """The 4-d mask of a batch that is padded on the left, and its positions."""
    b, s = 1 + d.below(16), d.length([63, 128, 500, 1000])

    def f(mask, x):
        low = torch.finfo(x.dtype).min
        causal = torch.full((s, s), low, dtype=x.dtype, device=x.device).triu(diagonal=1)
        causal = causal[None, None, :, :].expand(b, 1, -1, -1)
        padding = causal.eq(0.0) * mask[:, None, None, :].eq(0.0)
        position = (mask.cumsum(-1) - 1).clamp(min=0)
        return causal.masked_fill(padding, low), position

    return f, [(torch.arange(s, device=DEVICE)[None, :] >= integers(s // 2, (b,))[:, None]).long(), rand((1,), BF16)]


@line
def bucketed_positions(d):
    """T5's relative attention bias: buckets of distances, logarithmic from half on, added to scores."""
    b, h, s = 1 + d.below(4), d.pick([6, 8, 12]), d.length([64, 127, 512])

    def f(scores, table):
        context = torch.arange(s, device=scores.device)[:, None]
        memory = torch.arange(s, device=scores.device)[None, :]
        relative = memory - context
        bucket = (relative > 0).to(torch.long) * 16
        relative = torch.abs(relative)
        large = 8 + (torch.log(relative.float() / 8) / math.log(128 / 8) * (16 - 8)).to(torch.long)
        large = torch.min(large, torch.full_like(large, 15))
        bucket += torch.where(relative < 8, relative, large)
        bias = F.embedding(bucket, table).permute([2, 0, 1]).unsqueeze(0)
        return F.softmax((scores + bias).float(), dim=-1).type_as(scores)

    t = d.dtype()
    return f, [rand((b, h, s, s), t), rand((32, h), t)]


@line
def yarn_table(d):
    """Rotary tables of YaRN: frequencies blended along a ramp."""
    b, e, n = 1 + d.below(8), d.pick([64, 96, 128]), d.length([256, 1000, 4096])
    t = d.dtype()

    def f(position):
        freqs = 10000.0 ** (torch.arange(0, e, 2, dtype=torch.float32, device=position.device) / e)
        extra, inter = 1.0 / freqs, 1.0 / (16.0 * freqs)
        low = math.floor(e * math.log(4096 / (32 * 2 * math.pi)) / (2 * math.log(10000.0)))
        high = math.ceil(e * math.log(4096 / (2 * math.pi)) / (2 * math.log(10000.0)))
        ramp = (torch.arange(e // 2, dtype=torch.float32, device=position.device) - low) / (high - low)
        keep = 1 - torch.clamp(ramp, 0, 1)
        inv = inter * (1 - keep) + extra * keep
        angle = position[:, :, None].float() * inv[None, None, :]
        emb = torch.cat((angle, angle), dim=-1)
        scale = 0.1 * math.log(16.0) + 1.0
        return (emb.cos() * scale).to(t), (emb.sin() * scale).to(t)

    return f, [integers(8192, (b, n))]


def rotate_half(x):
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-b, a), dim=-1)


@line
def partial_rotary(d):
    """GPT-NeoX and Phi: only the first part of a head turns; queries and keys come as one projection."""
    b, h, e, s = 1 + d.below(8), d.pick([8, 12, 32]), d.pick([64, 80, 128]), d.length([64, 130, 500, 1024])
    r, t = e // 4 // 2 * 2, d.dtype()

    def f(qkv, cos, sin):
        q, k, v = qkv.view(b, s, h, 3 * e).transpose(1, 2).chunk(3, dim=-1)
        cos, sin = cos[None, None], sin[None, None]
        q_rot, q_pass = q[..., :r], q[..., r:]
        k_rot, k_pass = k[..., :r], k[..., r:]
        q = torch.cat((q_rot * cos + rotate_half(q_rot) * sin, q_pass), dim=-1)
        k = torch.cat((k_rot * cos + rotate_half(k_rot) * sin, k_pass), dim=-1)
        return q, k, v.contiguous()

    return f, [rand((b, s, 3 * h * e), t), rand((s, r), t), rand((s, r), t)]


@line
def multimodal_rotary(d):
    """Qwen2-VL: sections of a head turn by time, by height and by width."""
    b, h, g, s, e = 1 + d.below(4), d.pick([12, 28]), 4, d.length([64, 130, 500, 1024]), 128
    t, sections = d.dtype(), [16, 24, 24] * 2

    def f(q, k, cos, sin):
        cos = torch.cat([m[i % 3] for i, m in enumerate(cos.split(sections, dim=-1))], dim=-1).unsqueeze(1)
        sin = torch.cat([m[i % 3] for i, m in enumerate(sin.split(sections, dim=-1))], dim=-1).unsqueeze(1)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin

    return f, [rand((b, h, s, e), t), rand((b, g, s, e), t), rand((3, b, s, e), t), rand((3, b, s, e), t)]


@line
def top_n_sigma(d):
    """Logits further than n deviations below the best are never sampled."""
    b, v = 1 + d.below(64), d.vocabulary()

    def f(logits, n):
        x = logits.float() / 0.8
        floor = x.max(-1, keepdim=True).values - n * x.std(-1, keepdim=True)
        return F.softmax(x.masked_fill(x < floor, float("-inf")), dim=-1)

    return f, [rand((b, v), BF16), uniform((b, 1)) + 1]


@line
def tree_acceptance(d):
    """Medusa: which candidate of a tree the model agrees with longest, and its tokens."""
    p, s, v = d.pick([16, 42]), d.pick([4, 5]), d.vocabulary()

    def f(logits, candidates):
        match = (candidates[:, 1:] == torch.argmax(logits[:, :-1], dim=-1)).int()
        length = torch.cumprod(match, dim=1).sum(dim=1)
        best = torch.argmax(length)
        return length.max(), best, candidates[best], logits[best].float().log_softmax(-1)

    return f, [rand((p, s, v), BF16), integers(v, (p, s))]
