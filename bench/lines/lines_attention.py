"""Attention and its parts, position codes, and state space models."""
import math

import torch
import torch.nn.functional as F

from draw import BF16, DEVICE, F32, integers, line, rand, uniform


@line
def rotary(d):
    b, s, h, e = 1 + d.below(4), d.length([128, 500, 1024, 2048]), d.pick([8, 12, 32]), d.pick([64, 80, 128])

    def f(x, cos, sin):
        x1, x2 = x[..., : e // 2], x[..., e // 2 :]
        return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], -1)

    return f, [rand((b, h, s, e), BF16), rand((s, e // 2), BF16), rand((s, e // 2), BF16)]


@line
def masked_softmax(d):
    b, h, s = 1 + d.below(4), d.pick([4, 8, 12]), d.length([64, 127, 256, 512, 1000])

    def f(x, keep):
        return torch.softmax(torch.where(keep, x.float() * 0.125, -1e9), -1).to(x.dtype)

    return f, [rand((b, h, s, s), BF16), rand((s, s)) > 0]


@line
def attention_written_out(d):
    h, s, e = d.pick([4, 8, 16]), d.length([128, 256, 500, 1024]), d.pick([64, 128])

    def f(q, k, v):
        return torch.softmax((q @ k.transpose(-1, -2)).float() * 0.125, -1).to(v.dtype) @ v

    return f, [rand((h, s, e), BF16), rand((h, s, e), BF16), rand((h, s, e), BF16)]


@line
def split_heads(d):
    b, s, h, e = 1 + d.below(4), d.length([128, 500, 1024, 2048]), d.pick([8, 12, 32]), d.pick([64, 80, 128])
    return lambda x: x.reshape(b, s, h, e).permute(0, 2, 1, 3).contiguous(), [rand((b, s, h * e), BF16)]


def heads(d):
    """Batch, heads, sequence, head."""
    return 1 + d.below(4), d.pick([4, 8, 12, 32]), d.length([127, 500, 1024, 2048]), d.pick([64, 80, 128])


def scores(d):
    """Batch, heads, sequence, of scores of sequence x sequence."""
    return 1 + d.below(4), d.pick([4, 8, 12]), d.length([64, 127, 256, 512, 1000])


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def repeat_kv(x, n):
    b, h, s, e = x.shape
    return x[:, :, None, :, :].expand(b, h, n, s, e).reshape(b, h * n, s, e)


@line
def rotary_of_transformers(d):
    b, h, s, e = heads(d)
    g = h // 4
    t = d.dtype()

    def f(q, k, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin

    return f, [rand((b, h, s, e), t), rand((b, g, s, e), t), rand((b, s, e), t), rand((b, s, e), t)]


@line
def rotary_interleaved(d):
    """Pairs of neighbours, in float32, as gpt-fast does it."""
    b, h, s, e = heads(d)

    def f(x, freqs):
        xs = x.float().reshape(*x.shape[:-1], -1, 2)
        freqs = freqs.view(1, xs.size(1), 1, xs.size(3), 2)
        out = torch.stack([xs[..., 0] * freqs[..., 0] - xs[..., 1] * freqs[..., 1],
                           xs[..., 1] * freqs[..., 0] + xs[..., 0] * freqs[..., 1]], -1)
        return out.flatten(3).type_as(x)

    return f, [rand((b, s, h, e), d.dtype()), rand((s, e // 2, 2))]


@line
def rotary_at_positions(d):
    b, h, s, e = heads(d)
    t = d.dtype()

    def f(q, cos, sin, position_ids):
        cos, sin = cos[position_ids].unsqueeze(2), sin[position_ids].unsqueeze(2)
        return q * cos + rotate_half(q) * sin

    return f, [rand((b, s, h, e), t), rand((4096, e), t), rand((4096, e), t), integers(4096, (b, s))]


@line
def rotary_table(d):
    s, e = d.length([2048, 8192, 32768]), d.pick([64, 80, 128])

    def f(inv_freq, position_ids):
        freqs = torch.outer(position_ids.float(), inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(BF16), emb.sin().to(BF16)

    inv = 1.0 / (10000.0 ** (torch.arange(0, e, 2, device=DEVICE).float() / e))
    return f, [inv, integers(s, (s,))]


@line
def timestep_embedding(d):
    n = d.pick([256, 320, 512])
    m = d.rows(n, 1 << 22)

    def f(t):
        half = n // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(0, half, dtype=F32, device=t.device) / half)
        args = t[:, None].float() * freqs[None]
        return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)

    return f, [uniform((m,)) * 1000]


@line
def qk_norm_rotary(d):
    """Of Qwen 3: each head is normed before its rotation."""
    b, h, s, e = heads(d)
    t = d.dtype()

    def f(q, w, cos, sin):
        qf = q.float()
        q = w * (qf * torch.rsqrt(qf.pow(2).mean(-1, keepdim=True) + 1e-6)).to(q.dtype)
        q = q.transpose(1, 2)
        return q * cos + rotate_half(q) * sin

    return f, [rand((b, s, h, e), t), rand((e,), t), rand((s, e), t), rand((s, e), t)]


@line
def causal_softmax(d):
    b, h, s = scores(d)

    def f(x):
        mask = torch.triu(torch.ones(s, s, dtype=torch.bool, device=x.device), diagonal=1)
        return F.softmax(x.masked_fill(mask, float("-inf")), dim=-1, dtype=torch.float32).to(x.dtype)

    return f, [rand((b, h, s, s), d.dtype())]


@line
def softmax_of_a_padding_mask(d):
    b, h, s = scores(d)

    def f(x, lengths):
        mask = torch.arange(s, device=x.device)[None, :] < lengths[:, None]
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        return torch.softmax(x * 0.125 + bias, dim=-1)

    return f, [rand((b, h, s, s), d.dtype()), 1 + integers(s, (b,))]


@line
def sliding_window_softmax(d):
    b, h, s = scores(d)
    w = d.pick([16, 100, 128])

    def f(x):
        i = torch.arange(s, device=x.device)
        dist = i[:, None] - i[None, :]
        keep = (dist >= 0) & (dist < w)
        return torch.softmax(torch.where(keep, x.float(), float("-inf")), -1).to(x.dtype)

    return f, [rand((b, h, s, s), d.dtype())]


@line
def alibi_softmax(d):
    b, h, s = scores(d)

    def f(x, slopes):
        i = torch.arange(s, device=x.device)
        bias = -(i[:, None] - i[None, :]).abs() * slopes[:, None, None]
        return torch.softmax(x + bias, dim=-1)

    return f, [rand((b, h, s, s), d.dtype()), 2.0 ** -(8.0 * uniform((h,)))]


@line
def relative_position_bias(d):
    """Of Swin: windows of w x w, and a table of (2w - 1)^2 rows."""
    w, h = d.pick([7, 8, 12]), d.pick([3, 4, 6, 12])
    b = d.rows(h * w ** 4, 1 << 24)

    def f(attn, table, index):
        bias = table[index.view(-1)].view(w * w, w * w, -1).permute(2, 0, 1).contiguous()
        return F.softmax(attn + bias.unsqueeze(0), dim=-1)

    t, n = d.dtype(), (2 * w - 1) ** 2
    return f, [rand((b, h, w * w, w * w), t), rand((n, h), t), integers(n, (w * w, w * w))]


@line
def soft_capped_softmax(d):
    b, h, s = scores(d)

    def f(x, mask):
        x = torch.tanh(x / 50.0) * 50.0 + mask
        return F.softmax(x, dim=-1, dtype=torch.float32).to(x.dtype)

    t = d.dtype()
    mask = torch.where(rand((s, s)) > 0, 0.0, -30000.0).to(t)
    return f, [rand((b, h, s, s), t), mask]


@line
def softmax_with_sinks(d):
    """Of gpt-oss: a logit per head that takes part in the sum alone."""
    b, h, s = scores(d)
    t = d.dtype()

    def f(x, sinks):
        sinks = sinks.reshape(1, -1, 1, 1).expand(b, -1, s, -1)
        logits = torch.cat([x, sinks], dim=-1)
        logits = logits - logits.max(dim=-1, keepdim=True).values
        return F.softmax(logits, dim=-1, dtype=logits.dtype)[..., :-1]

    return f, [rand((b, h, s, s), t), rand((h,), t)]


@line
def grouped_attention(d):
    b, h, s, e = 1 + d.below(2), d.pick([8, 16, 32]), d.length([128, 250, 512, 1024]), d.pick([64, 128])

    def f(q, k, v, mask):
        k, v = repeat_kv(k, 4), repeat_kv(v, 4)
        w = torch.matmul(q, k.transpose(2, 3)) * e ** -0.5 + mask
        w = F.softmax(w, dim=-1, dtype=torch.float32).to(q.dtype)
        return torch.matmul(w, v).transpose(1, 2).contiguous()

    mask = torch.where(rand((s, s)) > 0, 0.0, -30000.0).to(BF16)
    return f, [rand((b, h, s, e), BF16), rand((b, h // 4, s, e), BF16), rand((b, h // 4, s, e), BF16), mask]


@line
def attention_causal(d):
    b, h, s, e = 1 + d.below(2), d.pick([4, 8, 16]), d.length([128, 500, 1024, 2048]), d.pick([64, 80, 128])
    t = d.dtype()
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [
        rand((b, h, s, e), t), rand((b, h, s, e), t), rand((b, h, s, e), t)]


@line
def attention_masked(d):
    b, h, s, e = 1 + d.below(2), d.pick([4, 8, 16]), d.length([128, 500, 1024]), d.pick([64, 80, 128])
    t = d.pick([BF16, F32])
    keep = (rand((b, 1, s, s)) > 0) | (torch.arange(s, device=DEVICE) == 0)
    return lambda q, k, v, keep: F.scaled_dot_product_attention(q, k, v, attn_mask=keep), [
        rand((b, h, s, e), t), rand((b, h, s, e), t), rand((b, h, s, e), t), keep]


@line
def attention_of_one_token(d):
    b, h, s, e = 1 + d.below(16), d.pick([8, 32]), d.length([500, 2048, 4096]), d.pick([64, 128])

    def f(q, k, v, length):
        w = (q.unsqueeze(2) * e ** -0.5) @ k.transpose(-2, -1)
        w = w.masked_fill(torch.arange(s, device=q.device) >= length[:, None, None, None], float("-inf"))
        return (w.softmax(-1) @ v).squeeze(2)

    return f, [rand((b, h, e), BF16), rand((b, h, s, e), BF16), rand((b, h, s, e), BF16), 1 + integers(s, (b,))]


@line
def linear_attention(d):
    b, h, s, e = heads(d)

    def f(q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.einsum("bhse,bhsf->bhef", k, v)
        z = 1 / (torch.einsum("bhse,bhe->bhs", q, k.sum(dim=2)) + 1e-6)
        return torch.einsum("bhse,bhef,bhs->bhsf", q, kv, z)

    return f, [rand((b, h, s, e)), rand((b, h, s, e)), rand((b, h, s, e))]


@line
def split_qkv(d):
    b, h, s, e = heads(d)

    def f(x, bias):
        q, k, v = (x + bias).view(b, s, 3, h, e).permute(2, 0, 3, 1, 4).unbind(0)
        return q.contiguous() * e ** -0.5, k.contiguous(), v.contiguous()

    t = d.dtype()
    return f, [rand((b, s, 3 * h * e), t), rand((3 * h * e,), t)]


@line
def merge_heads_gated(d):
    b, h, s, e = heads(d)
    t = d.dtype()
    return lambda x, g: x.transpose(1, 2).reshape(b, s, h * e) * torch.sigmoid(g), [
        rand((b, h, s, e), t), rand((b, s, h * e), t)]


@line
def write_kv_cache(d):
    b, h, e = 1 + d.below(4), d.pick([4, 8]), d.pick([64, 128])
    s, n = 4096 // (4 if d.small else 1), d.pick([1, 16, 500])

    def f(cache, pos, k):
        cache[:, :, pos] = k
        return cache

    t = d.dtype()
    return f, [rand((b, h, s, e), t), torch.arange(n, device=DEVICE) + 7, rand((b, h, n, e), t)]


@line
def mamba_discretise(d):
    b, c, n = 1 + d.below(4), d.pick([256, 768, 1536]), 16
    s = min(d.rows(b * c * n), 4096)

    def f(dt, bias, a_log, bm, x):
        dt = F.softplus(dt + bias)
        a = -torch.exp(a_log.float())
        return torch.exp(dt.unsqueeze(-1) * a), dt.unsqueeze(-1) * bm.unsqueeze(2) * x.unsqueeze(-1)

    return f, [rand((b, s, c)), rand((c,)), rand((c, n)), rand((b, s, n)), rand((b, s, c))]


@line
def mamba_conv(d):
    """A causal convolution of four steps, each channel by itself."""
    b, c, s = 1 + d.below(4), d.pick([256, 768, 1536]), d.length([128, 500, 2048])
    t = d.dtype()
    return lambda x, w, k: F.silu(F.conv1d(x, w, k, groups=c, padding=3)[..., :s]), [
        rand((b, c, s), t), rand((c, 1, 4), t), rand((c,), t)]


@line
def segment_sums(d):
    """The decays within a chunk of Mamba 2."""
    s = d.pick([64, 100, 128, 256])
    m = d.rows(s * s)

    def f(a):
        c = torch.cumsum(a, dim=-1)
        seg = c[..., :, None] - c[..., None, :]
        keep = torch.tril(torch.ones(s, s, device=a.device, dtype=torch.bool))
        return torch.exp(seg.masked_fill(~keep, -torch.inf))

    return f, [-uniform((m, s))]


@line
def delta_rule_gates(d):
    h = d.pick([8, 16, 32])
    m = d.rows(h, 1 << 22)

    def f(a, b, a_log, dt_bias):
        return -a_log.float().exp() * F.softplus(a.float() + dt_bias), b.sigmoid()

    t = d.dtype()
    return f, [rand((m, h), t), rand((m, h), t), rand((h,)), rand((h,))]


@line
def token_shift(d):
    """Of RWKV: each token mixed with the one before it."""
    b, n = 1 + d.below(8), d.width(4096)
    t = d.dtype()

    def f(x, mu_k, mu_r):
        dx = F.pad(x, (0, 0, 1, -1)) - x
        return x + dx * mu_k, x + dx * mu_r

    return f, [rand((b, 2 + d.rows(b * n), n), t), rand((n,), t), rand((n,), t)]
