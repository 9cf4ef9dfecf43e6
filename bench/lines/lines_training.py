"""Losses, metrics and cells of training code that the other modules lack."""
import math

import torch
import torch.nn.functional as F

from draw import BF16, F32, integers, line, rand, uniform


@line
def spectral_norm(d):
    """One power iteration, and the weight by its largest singular value."""
    m, n = d.inner(), d.inner()

    def f(w, u):
        v = F.normalize(torch.mv(w.t(), u), dim=0, eps=1e-12)
        u = F.normalize(torch.mv(w, v), dim=0, eps=1e-12)
        sigma = torch.dot(u, torch.mv(w, v))
        return w / sigma, u, v

    return f, [rand((m, n)), rand((m,))]


@line
def supervised_contrastive(d):
    b, e = 16 + d.upto(2000), d.pick([64, 100, 128])

    def f(x, labels):
        x = F.normalize(x, dim=1)
        logits = x @ x.T / 0.07
        logits = logits - logits.max(dim=1, keepdim=True).values.detach()
        others = ~torch.eye(b, dtype=torch.bool, device=x.device)
        same = ((labels[:, None] == labels[None, :]) & others).float()
        logp = logits - torch.log((logits.exp() * others).sum(1, keepdim=True))
        return -((same * logp).sum(1) / same.sum(1).clamp(min=1)).mean()

    return f, [rand((b, e)), integers(10, (b,))]


@line
def angular_margin(d):
    """ArcFace: the angle to the own class gets a margin."""
    b, c, e = 8 + d.upto(512), 100 + d.upto(20000), d.pick([128, 512])

    def f(x, w, label):
        cosine = F.linear(F.normalize(x), F.normalize(w))
        sine = torch.sqrt((1.0 - cosine.pow(2)).clamp(0, 1))
        phi = cosine * math.cos(0.5) - sine * math.sin(0.5)
        phi = torch.where(cosine > math.cos(math.pi - 0.5), phi, cosine - math.sin(math.pi - 0.5) * 0.5)
        one_hot = F.one_hot(label, c).to(x.dtype)
        return F.cross_entropy(30.0 * (one_hot * phi + (1.0 - one_hot) * cosine), label)

    return f, [rand((b, e)), rand((c, e)), integers(c, (b,))]


@line
def barlow_twins(d):
    n, c = 16 + d.upto(1000), d.pick([128, 333, 1024, 2048])

    def f(a, b):
        a, b = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
        corr = (a.T @ b) / n
        on = (torch.diagonal(corr) - 1).pow(2).sum()
        off = corr.pow(2).sum() - torch.diagonal(corr).pow(2).sum()
        return on + 0.005 * off

    return f, [rand((n, c)), rand((n, c))]


@line
def mixture_density(d):
    """The negative log likelihood of a mixture of diagonal Gaussians."""
    m, k, e = 64 + d.upto(20000), d.pick([5, 8, 20]), d.pick([1, 3, 33])

    def f(logits, mean, log_std, y):
        z = (y.unsqueeze(1) - mean) * torch.exp(-log_std)
        logp = -0.5 * (z ** 2).sum(-1) - log_std.sum(-1) - 0.5 * e * math.log(2 * math.pi)
        return -torch.logsumexp(F.log_softmax(logits, dim=-1) + logp, dim=-1).mean()

    return f, [rand((m, k)), rand((m, k, e)), rand((m, k, e)) * 0.3, rand((m, e))]


@line
def area_under_curve(d):
    """ROC by sorted scores, as torchmetrics has it, and the average precision."""
    n = d.numel() // 4

    def f(score, label):
        order = torch.argsort(score, descending=True)
        y = label[order].float()
        tp = torch.cumsum(y, 0)
        fp = torch.arange(1, n + 1, device=y.device) - tp
        tpr, fpr = tp / tp[-1], fp / fp[-1]
        precision = tp / torch.arange(1, n + 1, device=y.device)
        return torch.trapz(tpr, fpr), (precision * y).sum() / tp[-1]

    return f, [rand((n,)), integers(2, (n,))]


@line
def chunked_cross_entropy(d):
    """Logits are made of hidden states a part of the vocabulary at a time, with a running logsumexp."""
    m, e, v, parts = 32 + d.upto(2000), d.pick([128, 256, 512]), d.pick([8000, 16000]), 4
    m, v = (m, v // 8) if d.small else (m, v)

    def f(h, w, y):
        total = torch.full((m,), -float("inf"), device=h.device)
        own = torch.zeros(m, device=h.device)
        for i, part in enumerate(w.chunk(parts)):
            logits = (h @ part.T).float()
            total = torch.logaddexp(total, torch.logsumexp(logits, dim=-1))
            local = y - i * (v // parts)
            inside = (local >= 0) & (local < v // parts)
            got = logits.gather(1, local.clamp(0, v // parts - 1).unsqueeze(1)).squeeze(1)
            own = torch.where(inside, got, own)
        return (total - own).mean()

    return f, [rand((m, e), BF16), rand((v, e), BF16) * 0.05, integers(v, (m,))]


@line
def sinkhorn(d):
    """SwAV's codes: rows and columns take turns to sum to one."""
    b, k = 64 + d.upto(4000), d.pick([100, 512, 3000])

    def f(scores):
        q = torch.exp(scores / 0.05).t()
        q = q / q.sum()
        for _ in range(3):
            q = q / q.sum(dim=1, keepdim=True) / k
            q = q / q.sum(dim=0, keepdim=True) / b
        return (q * b).t()

    return f, [uniform((b, k)) * 2 - 1]


@line
def expert_dispatch(d):
    """GShard: tokens go to their places in the experts' buffers by a one-hot product, up to a capacity."""
    s, n, e = 32 + d.upto(1000), d.pick([4, 8, 16]), d.pick([64, 256, 512])
    cap = 2 * s // n

    def f(x, logits):
        gates = F.softmax(logits, dim=1)
        index = gates.argmax(dim=1)
        mask = F.one_hot(index, n)
        loss = (gates.mean(0) * mask.float().mean(0)).sum() * n
        place = torch.cumsum(mask, dim=0) - 1
        mask = mask * (place < cap)
        place = (place * mask).sum(1)
        gates = gates * mask
        combine = torch.einsum("se,sc->sec", gates, F.one_hot(place, cap).float())
        return torch.einsum("sec,sm->ecm", combine.bool().to(x.dtype), x), combine, loss

    return f, [rand((s, e)), rand((s, n))]


@line
def lstm_cell(d):
    """A step of an LSTM with layer norms, as of ASR and RL code."""
    b, e = 8 + d.upto(2000), d.pick([64, 200, 512])
    t = d.pick([BF16, F32])

    def f(x, h, c, wi, wh, bias, weight):
        gates = F.linear(x, wi) + F.linear(h, wh) + bias
        i, f_, g, o = gates.chunk(4, dim=1)
        c = torch.sigmoid(f_ + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(F.layer_norm(c, (e,), weight)), c

    return f, [rand((b, e), t), rand((b, e), t), rand((b, e), t), rand((4 * e, e), t) * 0.05,
               rand((4 * e, e), t) * 0.05, rand((4 * e,), t), rand((e,), t)]
