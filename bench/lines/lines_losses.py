"""Losses and metrics."""
import torch
import torch.nn.functional as F

from draw import BF16, F32, integers, line, rand, uniform


@line
def mse(d):
    n = d.width()
    # The type is drawn before the rows: a seed gives the same line only in the same order of draws.
    t = d.dtype()
    m = d.rows(n)
    return lambda a, b: ((a.float() - b.float()) ** 2).mean(), [rand((m, n), t), rand((m, n), t)]


@line
def huber(d):
    n = d.width()
    m = d.rows(n)

    def f(a, b):
        e = (a.float() - b.float()).abs()
        # Written out as people do, with the two branches computed for every element.
        return torch.where(e < 1, 0.5 * e * e, e - 0.5).mean()

    return f, [rand((m, n), BF16), rand((m, n), BF16)]


@line
def bce_with_logits(d):
    n = d.width()
    m = d.rows(n)

    def f(x, y):
        # The form that cannot overflow: exp() only of what is not positive.
        return (torch.relu(x) - x * y + torch.log(1 + torch.exp(-x.abs()))).mean()

    return f, [rand((m, n)), uniform((m, n))]


@line
def kl_divergence(d):
    n = d.width()
    m = d.rows(n)

    def f(p, q):
        lp, lq = F.log_softmax(p.float(), -1), F.log_softmax(q.float(), -1)
        # The mean of the rows' sums, as reduction="batchmean" gives.
        return (lp.exp() * (lp - lq)).sum(-1).mean()

    return f, [rand((m, n), BF16), rand((m, n), BF16)]


@line
def cosine_similarity(d):
    n = d.width()
    m = d.rows(n)

    def f(a, b):
        # As people write it; the library's own function has another order of roundings.
        return (a * b).sum(-1) / ((a * a).sum(-1).sqrt() * (b * b).sum(-1).sqrt()).clamp(min=1e-8)

    return f, [rand((m, n)), rand((m, n))]


@line
def cross_entropy(d):
    v = d.vocabulary()
    m = d.rows(v)
    # A tenth of the rows is left out, as padding is in a batch of texts.
    target = torch.where(uniform((m,)) < 0.1, -100, integers(v, (m,)))
    return lambda x, y: F.cross_entropy(x.float(), y, ignore_index=-100), [rand((m, v), d.dtype()), target]


@line
def cross_entropy_of_classes(d):
    # 21841: the classes of the full ImageNet, no multiple of anything.
    c = d.pick([2, 10, 100, 1000, 21841])
    m = d.rows(c, 1 << 23)
    return lambda x, y: F.cross_entropy(x, y), [rand((m, c), d.dtype()), integers(c, (m,))]


@line
def cross_entropy_smoothed(d):
    c = d.pick([10, 100, 1000, 21841])
    m = d.rows(c, 1 << 23)
    return lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), [rand((m, c)), integers(c, (m,))]


@line
def label_smoothing_written_out(d):
    c = d.pick([100, 1000, 32000])
    m = d.rows(c, 1 << 24)

    def f(x, target):
        logp = F.log_softmax(x.float(), dim=-1)
        # gather() beside a mean over the same row: two reductions and a look-up in one pass over the logits.
        nll = -logp.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
        return (0.9 * nll - 0.1 * logp.mean(dim=-1)).mean()

    return f, [rand((m, c), d.dtype()), integers(c, (m,))]


@line
def z_loss(d):
    v = d.vocabulary()
    m = d.rows(v)

    def f(x, target):
        x = x.float()
        # The logarithm of the sum is used twice; a fused line keeps it.
        lse = torch.logsumexp(x, -1)
        nll = lse - x.gather(-1, target[:, None]).squeeze(-1)
        return nll.mean() + 1e-4 * lse.pow(2).mean()

    return f, [rand((m, v), BF16), integers(v, (m,))]


@line
def segmentation_cross_entropy(d):
    # Channels are not the last dimension here, so rows of classes have a stride.
    b, c, s = 1 + d.below(8), d.pick([2, 19, 21, 150]), d.length([65, 128, 256])
    return lambda x, y: F.cross_entropy(x, y), [rand((b, c, s, s), d.dtype()), integers(c, (b, s, s))]


@line
def token_log_probs(d):
    v = d.vocabulary()
    m = d.rows(v)
    return lambda x, i: x.float().log_softmax(-1).gather(-1, i.unsqueeze(-1)).squeeze(-1), [
        rand((m, v), BF16), integers(v, (m,))]


@line
def entropy_of_logits(d):
    v = d.vocabulary()

    def f(x):
        p = torch.softmax(x, dim=-1)
        # By the identity H = logsumexp(x) - E[x], which needs no logarithm of p.
        return torch.logsumexp(x, dim=-1) - (p * x).sum(-1)

    return f, [rand((d.rows(v), v), d.dtype())]


@line
def focal(d):
    n = d.pick([1, 20, 80, 91])
    m = d.rows(n, 1 << 23)

    def f(x, y):
        p = torch.sigmoid(x)
        # From the paper on RetinaNet: easy examples weigh little by (1 - p_t) squared.
        ce = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        p_t = p * y + (1 - p) * (1 - y)
        alpha_t = 0.25 * y + 0.75 * (1 - y)
        return (alpha_t * ce * (1 - p_t) ** 2).sum() / m

    return f, [rand((m, n)), (uniform((m, n)) < 0.05).float()]


@line
def bce_pos_weight(d):
    n = d.width(4096)
    m = d.rows(n)
    return lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w), [
        rand((m, n)), (uniform((m, n)) < 0.1).float(), uniform((n,)) * 10]


@line
def dice(d):
    b, s = 1 + d.below(16), d.length([96, 128, 255, 512])

    def f(x, y):
        p = torch.sigmoid(x).flatten(1)
        y = y.flatten(1)
        # Smoothed by one, as is custom: an empty mask has no zero divisor.
        inter = (p * y).sum(1)
        return (1 - (2 * inter + 1) / (p.sum(1) + y.sum(1) + 1)).mean()

    return f, [rand((b, 1, s, s), d.dtype()), (uniform((b, 1, s, s)) < 0.3).float()]


@line
def triplet(d):
    n = d.pick([64, 128, 300, 512, 768])
    m = d.rows(n)

    def f(a, p, q):
        # By squared distances; triplet_function() is torch's own with roots.
        return F.relu((a - p).pow(2).sum(1) - (a - q).pow(2).sum(1) + 0.2).mean()

    return f, [rand((m, n)), rand((m, n)), rand((m, n))]


@line
def triplet_function(d):
    n = d.pick([64, 128, 300, 512, 768])
    m = d.rows(n, 1 << 23)
    return lambda a, p, q: F.triplet_margin_loss(a, p, q, margin=1.0), [rand((m, n)), rand((m, n)), rand((m, n))]


@line
def info_nce(d):
    m, n = 64 + d.upto(2000), d.pick([128, 256, 512, 768])
    t = d.dtype()

    def f(a, b, scale):
        # CLIP's loss: rows and columns of one matrix of products, each against its own number.
        logits = scale.exp() * F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t()
        labels = torch.arange(m, device=logits.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2

    return f, [rand((m, n), t), rand((m, n), t), uniform((), t)]


@line
def siglip(d):
    m, n = 64 + d.upto(2000), d.pick([128, 256, 512, 768])
    t = d.dtype()

    def f(a, b):
        logits = 10.0 * a @ b.t() - 10.0
        # SigLIP's: each pair by itself, so there is no sum over rows to wait for.
        labels = 2 * torch.eye(m, device=a.device, dtype=a.dtype) - 1
        return -F.logsigmoid(labels * logits).sum() / m

    return f, [F.normalize(rand((m, n)), dim=-1).to(t), F.normalize(rand((m, n)), dim=-1).to(t)]


@line
def distillation(d):
    v = d.length([1000, 32000, 50257])
    m = d.rows(v, 1 << 24)

    def f(student, teacher):
        # 4 is the square of the temperature, which keeps the gradient's size.
        return F.kl_div(F.log_softmax(student / 2.0, dim=-1), F.softmax(teacher / 2.0, dim=-1),
                        reduction="batchmean") * 4.0

    return f, [rand((m, v)), rand((m, v))]


@line
def jensen_shannon(d):
    n = d.width()
    m = d.rows(n)

    def f(p, q):
        p, q = torch.softmax(p, -1), torch.softmax(q, -1)
        # A logarithm of a mean of two distributions: no single softmax gives it.
        mid = ((p + q) / 2).log()
        return 0.5 * (F.kl_div(mid, p, reduction="none").sum(-1) + F.kl_div(mid, q, reduction="none").sum(-1))

    return f, [rand((m, n)), rand((m, n))]


@line
def gaussian_kl(d):
    n = d.pick([16, 32, 128, 512])
    m = d.rows(n)
    return lambda mu, logvar: (-0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1)).mean(), [
        rand((m, n)), rand((m, n))]


@line
def gaussian_nll(d):
    n = d.numel()

    def f(mu, logvar, y):
        # By the variance's logarithm, so that it cannot become negative.
        return 0.5 * (logvar + (y - mu) ** 2 / logvar.exp().clamp(min=1e-6)).mean()

    return f, [rand((n,)), rand((n,)), rand((n,))]


@line
def smooth_l1_weighted(d):
    m = d.rows(4, 1 << 22)

    # As detectors use it for boxes: four coordinates, and a weight for those that match.
    def f(pred, target, w):
        loss = F.smooth_l1_loss(pred, target, beta=1 / 9, reduction="none").sum(-1)
        return (loss * w).sum() / w.sum().clamp(min=1)

    return f, [rand((m, 4)), rand((m, 4)), (uniform((m,)) < 0.2).float()]


@line
def masked_token_loss(d):
    b, s = 1 + d.below(64), d.length([128, 500, 2048, 8192])

    def f(loss, mask):
        return ((loss * mask).sum(-1) / mask.sum(-1).clamp(min=1)).mean()

    return f, [uniform((b, s)), (uniform((b, s)) < 0.7).to(F32)]


@line
def dpo(d):
    b, s = 1 + d.below(64), d.length([128, 500, 2048, 8192])

    def f(chosen, rejected, ref_chosen, ref_rejected, mask):
        # Sums of the tokens' log-probabilities, of the four runs of two models.
        chosen, ref_chosen = (chosen * mask).sum(-1), (ref_chosen * mask).sum(-1)
        rejected, ref_rejected = (rejected * mask).sum(-1), (ref_rejected * mask).sum(-1)
        margin = (chosen - rejected) - (ref_chosen - ref_rejected)
        return -F.logsigmoid(0.1 * margin).mean(), (margin > 0).float().mean()

    return f, [-uniform((b, s)), -uniform((b, s)), -uniform((b, s)), -uniform((b, s)), (uniform((b, s)) < 0.8).to(F32)]


@line
def grpo(d):
    b, g, s = 1 + d.below(16), d.pick([4, 8, 16]), d.length([128, 500, 2048, 4096])

    def f(logp, old, ref, reward, mask):
        # The advantage of a group of answers to one question: g rewards around their mean.
        adv = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)
        adv = adv.view(-1, 1)
        ratio = torch.exp(logp - old)
        policy = torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv)
        # The unbiased estimate of the divergence that is never negative (Schulman's k3).
        kl = torch.exp(ref - logp) - (ref - logp) - 1
        loss = -(policy - 0.04 * kl)
        return ((loss * mask).sum(1) / mask.sum(1).clamp(min=1.0)).mean()

    return f, [-uniform((b * g, s)), -uniform((b * g, s)), -uniform((b * g, s)), rand((b, g)),
               (uniform((b * g, s)) < 0.8).to(F32)]


@line
def charbonnier(d):
    b, s = 1 + d.below(16), d.length([64, 127, 256, 384])
    t = d.dtype()
    return lambda a, b: torch.sqrt((a - b) ** 2 + 1e-6).mean(), [uniform((b, 3, s, s), t), uniform((b, 3, s, s), t)]


@line
def psnr(d):
    b, s = 1 + d.below(16), d.length([64, 127, 256, 384])
    # Three dimensions at once, and then a scalar function of each mean.
    return lambda a, b: 10 * torch.log10(1.0 / ((a - b) ** 2).mean(dim=(1, 2, 3))), [
        uniform((b, 3, s, s)), uniform((b, 3, s, s))]


@line
def accuracy_top5(d):
    m, c = 64 + d.upto(8000), d.pick([100, 1000])

    def f(x, y):
        pred = x.topk(5, dim=1).indices
        # The best five by topk(), which is sorted: column 0 is the best.
        correct = pred.eq(y.view(-1, 1))
        return correct[:, 0].float().mean(), correct.any(1).float().mean()

    return f, [rand((m, c)), integers(c, (m,))]


@line
def margin_ranking(d):
    n = d.numel()
    return lambda a, b, y: F.margin_ranking_loss(a, b, y, margin=0.5), [rand((n,)), rand((n,)), torch.sign(rand((n,)))]


@line
def cosine_embedding(d):
    n = d.pick([64, 128, 300, 512, 768])
    m = d.rows(n)
    return lambda a, b, y: F.cosine_embedding_loss(a, b, y, margin=0.2), [
        rand((m, n)), rand((m, n)), torch.sign(rand((m,)))]


@line
def poisson_nll(d):
    n = d.numel()
    return lambda x, y: F.poisson_nll_loss(x, y), [rand((n,)), torch.floor(uniform((n,)) * 5)]
