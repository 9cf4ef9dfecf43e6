"""Speech: features, losses, alignments."""
import math

import torch
import torch.nn.functional as F

from draw import DEVICE, integers, line, rand, uniform


@line
def mfcc(d):
    """From a mel spectrogram: decibels with a floor below the loudest, and a cosine transform."""
    b, m, k, n = 1 + d.below(16), d.pick([40, 64, 128]), d.pick([13, 40]), d.length([101, 500, 1001, 3000])

    def f(mel):
        db = 10.0 * torch.log10(torch.clamp(mel, min=1e-10))
        db = torch.max(db, (db.amax(dim=(-2, -1)) - 80.0).view(-1, 1, 1))
        i = torch.arange(float(m), device=mel.device)
        j = torch.arange(float(k), device=mel.device).unsqueeze(1)
        dct = torch.cos(math.pi / m * (i + 0.5) * j)
        dct[0] *= 1.0 / math.sqrt(2.0)
        dct = (dct * math.sqrt(2.0 / m)).t()
        return torch.matmul(db.transpose(-1, -2), dct).transpose(-1, -2)

    return f, [uniform((b, m, n)) * 10]


@line
def mel_filterbank(d):
    """Triangles on the mel scale, and the spectrogram by them."""
    b, m, n = 1 + d.below(8), d.pick([40, 80, 128]), d.length([101, 500, 1001])
    bins = d.pick([201, 257, 513])

    def f(spec):
        freqs = torch.linspace(0, 8000, bins, device=spec.device)
        top = 2595.0 * math.log10(1.0 + 8000.0 / 700.0)
        points = 700.0 * (10.0 ** (torch.linspace(0.0, top, m + 2, device=spec.device) / 2595.0) - 1.0)
        diff = points[1:] - points[:-1]
        slopes = points.unsqueeze(0) - freqs.unsqueeze(1)
        down = (-1.0 * slopes[:, :-2]) / diff[:-1]
        up = slopes[:, 2:] / diff[1:]
        bank = torch.max(torch.zeros(1, device=spec.device), torch.min(down, up))
        return torch.log(torch.matmul(spec.transpose(-1, -2), bank).transpose(-1, -2) + 1e-6)

    return f, [uniform((b, bins, n))]


@line
def delta_features(d):
    """Slopes by regression over five frames, with the edges repeated, and their own slopes."""
    b, c, n = 1 + d.below(16), d.pick([13, 40, 80]), d.length([101, 500, 1001, 3000])

    def f(x):
        kernel = torch.arange(-2, 3, 1, device=x.device, dtype=x.dtype).repeat(c, 1, 1)

        def delta(y):
            return F.conv1d(F.pad(y, (2, 2), mode="replicate"), kernel, groups=c) / 10.0

        first = delta(x)
        return torch.cat([x, first, delta(first)], dim=1)

    return f, [rand((b, c, n))]


@line
def masked_mean_norm(d):
    """Features of utterances normed over their own length."""
    b, c, n = 1 + d.below(32), d.pick([40, 80]), d.length([101, 500, 1001, 3000])

    def f(x, length):
        mask = (torch.arange(n, device=x.device)[None, :] < length[:, None]).unsqueeze(-1)
        count = length[:, None, None].float()
        mean = x.masked_fill(~mask, 0.0).sum(1, keepdim=True) / count
        var = ((x - mean) ** 2).masked_fill(~mask, 0.0).sum(1, keepdim=True) / (count - 1).clamp(min=1)
        return ((x - mean) / (var.sqrt() + 1e-5)).masked_fill(~mask, 0.0)

    return f, [rand((b, n, c)), integers(n - 1, (b,)) + 2]


@line
def spectral_losses(d):
    """Of vocoders: spectral convergence and log magnitudes, from real and imaginary parts."""
    b, k, n = 1 + d.below(16), d.pick([257, 513]), d.length([63, 250, 601])

    def f(x, y):
        a = torch.sqrt(torch.clamp(x[..., 0] ** 2 + x[..., 1] ** 2, min=1e-7))
        m = torch.sqrt(torch.clamp(y[..., 0] ** 2 + y[..., 1] ** 2, min=1e-7))
        return torch.norm(m - a, p="fro") / torch.norm(m, p="fro"), F.l1_loss(torch.log(a), torch.log(m))

    return f, [rand((b, k, n, 2)), rand((b, k, n, 2))]


@line
def noise_at_ratio(d):
    """Noise added at a ratio in decibels over what is no padding."""
    b, n = 1 + d.below(32), d.length([16000, 48000, 160000]) + d.below(100)

    def f(wave, noise, snr, length):
        mask = torch.arange(n, device=wave.device).expand(wave.shape) < length.unsqueeze(-1)
        w, z = wave * mask, noise * mask
        ratio = 10 * (torch.log10(torch.linalg.vector_norm(w, ord=2, dim=-1) ** 2)
                      - torch.log10(torch.linalg.vector_norm(z, ord=2, dim=-1) ** 2))
        return wave + (10 ** ((ratio - snr) / 20.0)).unsqueeze(-1) * z

    return f, [rand((b, n)), rand((b, n)), uniform((b,)) * 20, integers(n // 2, (b,)) + n // 2]


@line
def ctc_alphas(d):
    """Some frames of CTC's forward recursion, in logarithms."""
    b, s, v, t = 4 + d.upto(128), 2 * d.pick([10, 25, 60]) + 1, d.pick([32, 64, 500]), 6

    def f(logp, ext, skip, alpha):
        for i in range(t):
            emit = logp[i].gather(1, ext)
            one = F.pad(alpha[:, :-1], (1, 0), value=-1e30)
            two = F.pad(alpha[:, :-2], (2, 0), value=-1e30).masked_fill(~skip, -1e30)
            alpha = torch.logsumexp(torch.stack([alpha, one, two]), dim=0) + emit
        return alpha

    return f, [F.log_softmax(rand((t, b, v)), -1), integers(v, (b, s)), uniform((b, s)) < 0.4, -uniform((b, s)) * 10]


@line
def length_regulator(d):
    """FastSpeech: each phone's vector is repeated as often as it lasts."""
    b, s, n, c = 1 + d.below(16), d.length([40, 101, 200]), d.length([250, 700, 1000]), d.pick([256, 384])

    def f(x, duration):
        ends = torch.cumsum(duration, dim=1)
        frames = torch.arange(n, device=x.device).expand(b, n).contiguous()
        place = torch.searchsorted(ends, frames, right=True)
        mask = frames < ends[:, -1:]
        place = place.clamp(max=s - 1).unsqueeze(-1).expand(-1, -1, c)
        return torch.gather(x, 1, place) * mask.unsqueeze(-1)

    return f, [rand((b, s, c)), torch.randint(1, 8, (b, s), device=DEVICE)]
