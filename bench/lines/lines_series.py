"""Audio, time series, text and tables before they reach a model."""
import math

import torch
import torch.nn.functional as F

from draw import BF16, DEVICE, integers, line, rand, uniform


@line
def cumsum_rows(d):
    n = d.width()
    return lambda x: torch.cumsum(x, -1), [rand((d.rows(n), n))]


@line
def cumsum_long(d):
    n = d.numel()
    return lambda x: torch.cumsum(x, 0), [rand((n,))]


@line
def transpose(d):
    n = d.width()
    return lambda x: x.T.contiguous(), [rand((d.rows(n), n), d.dtype())]


def series(d):
    """Of a batch: its length may be anything."""
    n = d.length([500, 1000, 4096, 16000]) + d.below(100)
    return d.rows(n, 1 << 24), n


@line
def moving_average(d):
    m, n = series(d)
    w = d.pick([5, 20, 64])

    def f(x):
        c = torch.cumsum(F.pad(x, (1, 0)), dim=-1)
        return (c[:, w:] - c[:, :-w]) / w

    return f, [rand((m, n))]


@line
def rolling_deviation(d):
    m, n = series(d)
    w = d.pick([5, 20, 64])
    return lambda x: x.unfold(-1, w, 1).std(dim=-1), [rand((min(m, 1 + (1 << 22) // n), n))]


@line
def window_maximum(d):
    m, n = series(d)
    w, step = d.pick([(8, 4), (25, 10), (64, 64)])
    return lambda x: x.unfold(-1, w, step).amax(-1), [rand((m, n), d.dtype())]


@line
def smooth_exponentially(d):
    """By the matrix of all weights."""
    n = d.length([128, 250, 512])
    m = d.rows(n, 1 << 22)

    def f(x):
        i = torch.arange(n, device=x.device)
        w = 0.1 * 0.9 ** (i[:, None] - i[None, :]).clamp(min=0).float()
        return x @ torch.tril(w).t()

    return f, [rand((m, n))]


@line
def discounted_returns(d):
    n = d.pick([64, 100, 256])
    m = d.rows(n, 1 << 23)

    def f(reward):
        g = 0.99 ** torch.arange(n, device=reward.device)
        return (reward * g).flip(-1).cumsum(-1).flip(-1) / g

    return f, [rand((m, n))]


@line
def advantages(d):
    """Temporal differences, normed over the batch."""
    n = d.pick([64, 100, 256])
    m = d.rows(n, 1 << 23)

    def f(reward, value, done):
        delta = reward + 0.99 * value[:, 1:] * (1 - done) - value[:, :-1]
        return (delta - delta.mean()) / (delta.std() + 1e-8)

    return f, [rand((m, n)), rand((m, n + 1)), (uniform((m, n)) < 0.02).float()]


@line
def drawdown(d):
    m, n = series(d)

    def f(price):
        peak = price.cummax(dim=-1).values
        return (price - peak) / peak, ((price - peak) / peak).amin(-1)

    return f, [uniform((m, n)) + 1]


@line
def log_returns(d):
    m, n = series(d)

    def f(price):
        r = torch.diff(torch.log(price), dim=-1)
        return (r - r.mean(-1, keepdim=True)) / r.std(-1, keepdim=True)

    return f, [uniform((m, n)) + 1]


@line
def pre_emphasis(d):
    m, n = series(d)
    return lambda x: torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], dim=1), [rand((m, n))]


@line
def windowed_frames(d):
    m, n = series(d)
    return lambda x, w: x.unfold(-1, 400, 160) * w, [rand((m, n + 400)), torch.hann_window(400, device=DEVICE)]


@line
def frame_energy(d):
    m, n = series(d)
    return lambda x: 10 * torch.log10(x.unfold(-1, 400, 160).pow(2).mean(-1) + 1e-10), [rand((m, n + 400))]


@line
def log_mel(d):
    """Of Whisper, from the power spectrum on."""
    b, n = 1 + d.below(8), d.length([500, 1500, 3000])

    def f(power, filters):
        mel = filters @ power
        log_spec = torch.clamp(mel, min=1e-10).log10()
        log_spec = torch.maximum(log_spec, log_spec.amax(dim=(1, 2), keepdim=True) - 8.0)
        return (log_spec + 4.0) / 4.0

    return f, [uniform((b, 201, n)), uniform((80, 201))]


@line
def mu_law(d):
    m, n = series(d)

    def f(x):
        mu = torch.tensor(255.0)
        y = torch.sign(x) * torch.log1p(mu * torch.abs(x)) / torch.log1p(mu)
        return ((y + 1) / 2 * mu + 0.5).to(torch.int64)

    return f, [uniform((m, n)) * 2 - 1]


@line
def spectral_mask(d):
    """SpecAugment with one band of each kind."""
    b, c, n = 1 + d.below(16), 80, d.length([500, 1500, 3000])

    def f(x, f0, f1, t0, t1):
        i, j = torch.arange(c, device=x.device), torch.arange(n, device=x.device)
        band = (i >= f0[:, None]) & (i < f1[:, None])
        time = (j >= t0[:, None]) & (j < t1[:, None])
        return torch.where(band[:, :, None] | time[:, None, :], x.mean(), x)

    return f, [rand((b, c, n)), integers(40, (b,)), integers(80, (b,)), integers(n // 2, (b,)), integers(n, (b,))]


@line
def hour_features(d):
    n = d.numel()

    def f(t):
        hour = (t // 3600) % 24
        day = (t // 86400 + 4) % 7
        a, b = 2 * math.pi * hour / 24, 2 * math.pi * day / 7
        return torch.stack([a.sin(), a.cos(), b.sin(), b.cos()], dim=-1)

    return f, [integers(1 << 31, (n,))]


@line
def position_ids(d):
    b, n = 1 + d.below(256), d.length([128, 500, 2048])

    def f(mask):
        pos = mask.long().cumsum(-1) - 1
        return pos.masked_fill_(mask == 0, 1)

    return f, [(uniform((b, n)) < 0.9).to(torch.int64)]


@line
def shift_labels(d):
    b, n = 1 + d.below(256), d.length([128, 500, 2048])

    def f(ids, mask):
        labels = torch.where(mask.bool(), ids, -100)
        return F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()

    return f, [integers(50000, (b, n)), (uniform((b, n)) < 0.9).to(torch.int64)]


@line
def mask_tokens(d):
    """Of masked language models: 80 % mask, 10 % another token, 10 % the same."""
    b, n = 1 + d.below(256), d.length([128, 500, 2048])

    def f(ids, u, v, other):
        chosen = u < 0.15
        masked = torch.where(chosen & (v < 0.8), 103, ids)
        masked = torch.where(chosen & (v >= 0.8) & (v < 0.9), other, masked)
        return masked, ids.masked_fill(~chosen, -100)

    return f, [integers(30000, (b, n)), uniform((b, n)), uniform((b, n)), integers(30000, (b, n))]


@line
def document_mask(d):
    """Of packed sequences: causal within a document."""
    b, n = 1 + d.below(8), d.length([128, 250, 512, 1024])

    def f(ids):
        doc = (ids == 0).cumsum(-1)
        same = doc[:, :, None] == doc[:, None, :]
        return (same & torch.tril(torch.ones(n, n, dtype=torch.bool, device=ids.device))).unsqueeze(1)

    return f, [integers(50, (b, n))]


@line
def one_hot(d):
    n = d.pick([10, 32, 100, 1000])
    m = d.rows(n)
    return lambda i: F.one_hot(i, n).to(BF16), [integers(n, (m,))]


@line
def bits_of_bytes(d):
    n = d.numel() // 8

    def f(x):
        return ((x.unsqueeze(-1) >> torch.arange(8, device=x.device, dtype=torch.uint8)) & 1).to(torch.float32)

    return f, [integers(256, (n,)).to(torch.uint8)]


@line
def power_spectrum(d):
    m, n = series(d)
    m = min(m, 1 + (1 << 22) // n)
    return lambda x: torch.fft.rfft(x * torch.hann_window(n, device=x.device)).abs().pow(2), [rand((m, n))]


@line
def nearest_code(d):
    """Of vector quantisation, with its loss."""
    m, n, k = 64 + d.upto(8000), d.pick([256, 1024]), d.pick([32, 64, 256])

    def f(z, codebook):
        dist = torch.cdist(z, codebook)
        idx = dist.argmin(dim=1)
        q = F.embedding(idx, codebook)
        return q, idx, 1.25 * F.mse_loss(q, z)

    return f, [rand((m, k)), rand((n, k))]


@line
def log_cumulative(d):
    """Sums of probabilities in logarithms, as of hazards."""
    m, n = series(d)
    return lambda x: torch.logcumsumexp(x, dim=-1), [rand((m, n))]
