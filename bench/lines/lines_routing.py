"""Embeddings, mixtures of experts, and recommenders."""
import torch
import torch.nn.functional as F

from draw import BF16, DEVICE, F32, integers, line, rand, uniform


@line
def embedding(d):
    n = d.width(4096)
    v = d.length([1000, 32000, 50257])
    return lambda w, i: w[i], [rand((v, n), BF16), integers(v, (min(d.rows(n), 16384),))]


@line
def mixture_weights(d):
    n = d.pick([8, 16, 60, 64, 128])

    def f(x):
        p = torch.softmax(x.float(), -1)
        return p / p.sum(-1, keepdim=True)

    return f, [rand((d.rows(n, 1 << 21), n), BF16)]


def router(d):
    """Tokens and experts."""
    n = d.pick([8, 16, 60, 64, 128])
    return d.rows(n, 1 << 21), n


@line
def route_top_k(d):
    m, n = router(d)

    def f(logits):
        w = F.softmax(logits, dim=1, dtype=torch.float)
        w, experts = torch.topk(w, 2, dim=-1)
        w = w / w.sum(dim=-1, keepdim=True)
        return w.to(logits.dtype), experts

    return f, [rand((m, n), F32)]


@line
def route_sigmoid(d):
    """Of DeepSeek V3: the bias chooses, and has no part in the weights."""
    m, n = router(d)

    def f(logits, bias):
        s = logits.float().sigmoid()
        _, idx = torch.topk(s + bias, k=min(8, n), dim=-1, sorted=False)
        w = s.gather(1, idx)
        return (w / (w.sum(-1, keepdim=True) + 1e-20) * 2.5).sum(-1), idx.sort(-1).values

    return f, [rand((m, n)), rand((n,))]


@line
def load_balancing_loss(d):
    m, n = router(d)

    def f(logits, experts):
        p = F.softmax(logits, dim=-1)
        mask = F.one_hot(experts, n).float()
        return n * (mask.mean(0) * p.mean(0).unsqueeze(0)).sum()

    return f, [rand((m, n)), integers(n, (m, 2))]


@line
def expert_capacity(d):
    """The place of each token in its expert's queue, and which fit."""
    m, n = router(d)

    def f(experts):
        mask = F.one_hot(experts, n)
        place = torch.cumsum(mask, dim=0) * mask
        keep = (place <= int(1.25 * m / n)) & (place > 0)
        return (place.sum(-1) - 1), keep.any(-1)

    return f, [integers(n, (m,))]


@line
def expert_counts(d):
    m, n = router(d)

    def f(experts):
        counts = F.one_hot(experts, n).sum(dim=(0, 1))
        return counts, counts.cumsum(0)

    return f, [integers(n, (m, 2))]


@line
def sort_by_expert(d):
    n = d.width(4096)
    m = d.rows(2 * n)

    def f(x, experts):
        order = torch.argsort(experts.flatten(), stable=True)
        return x[order // 2], order

    return f, [rand((m, n), d.dtype()), integers(16, (m, 2))]


@line
def combine_experts(d):
    n = d.width(4096)
    m, k = d.rows(2 * n), 2

    def f(y, inverse, w):
        return (y[inverse].view(m, k, n) * w.unsqueeze(-1)).sum(dim=1).type_as(y)

    t = d.dtype()
    return f, [rand((m * k, n), t), torch.argsort(uniform((m * k,))), uniform((m, k))]


@line
def combine_experts_index_add(d):
    n = d.width(4096)
    m, k = d.rows(2 * n), 2

    def f(y, token, w):
        out = torch.zeros((m, n), dtype=y.dtype, device=y.device)
        return out.index_add_(0, token, y * w[:, None])

    return f, [rand((m * k, n)), torch.argsort(uniform((m * k,))) // k, uniform((m * k,))]


@line
def embed_with_positions(d):
    n, v = d.width(2048), d.length([1000, 30522, 50257])
    b, s = 1 + d.below(8), d.length([128, 384, 512])
    t = d.dtype()

    def f(ids, kinds, word, place, kind, w, k):
        e = F.embedding(ids, word) + place[:s] + F.embedding(kinds, kind)
        return F.layer_norm(e, (n,), w, k, 1e-12)

    return f, [integers(v, (b, s)), integers(2, (b, s)), rand((v, n), t), rand((512, n), t), rand((2, n), t),
               rand((n,), t), rand((n,), t)]


@line
def embedding_scaled(d):
    n, v = d.width(4096), d.length([1000, 32000, 50257])
    m = min(d.rows(n), 16384)
    return lambda i, w: F.embedding(i, w) * torch.tensor(n ** 0.5, dtype=w.dtype), [
        integers(v, (m,)), rand((v, n), d.dtype())]


@line
def embedding_bag(d):
    n, v, k = d.pick([16, 32, 64, 128]), d.length([1000, 100000, 400000]), d.pick([4, 20, 50])
    b = d.rows(n * k)
    return lambda i, w: F.embedding_bag(i, w, mode="sum"), [integers(v, (b, k)), rand((v, n))]


@line
def embedding_bag_weighted(d):
    n, v, k = d.pick([16, 32, 64, 128]), d.length([1000, 100000, 400000]), d.pick([4, 20, 50])
    b = d.rows(n * k)

    def f(i, w, weights):
        return (w[i] * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True).clamp(min=1e-6)

    return f, [integers(v, (b, k)), rand((v, n), d.dtype()), uniform((b, k))]


@line
def embedding_gradient(d):
    n, v = d.width(1024), d.length([1000, 32000, 50257])
    m = min(d.rows(n), 16384)

    def f(g, i):
        return torch.zeros((v, n), dtype=g.dtype, device=g.device).index_add_(0, i, g)

    return f, [rand((m, n)), integers(v, (m,))]


@line
def mean_pooling(d):
    """Of sentence embeddings."""
    b, s, n = 1 + d.below(64), d.length([128, 256, 512]), d.pick([384, 768, 1024])

    def f(x, mask):
        m = mask.unsqueeze(-1).expand(x.size()).float()
        y = torch.sum(x * m, 1) / torch.clamp(m.sum(1), min=1e-9)
        return F.normalize(y, p=2, dim=1)

    return f, [rand((b, s, n), d.dtype()), (uniform((b, s)) < 0.8).to(torch.int64)]


@line
def last_token_pooling(d):
    b, s, n = 1 + d.below(64), d.length([128, 256, 512]), d.pick([384, 768, 1024])

    def f(x, mask):
        last = mask.sum(dim=1) - 1
        return x[torch.arange(b, device=x.device), last]

    return f, [rand((b, s, n), d.dtype()), (torch.arange(s, device=DEVICE) <= integers(s, (b, 1))).to(torch.int64)]


@line
def attention_pooling(d):
    b, s, n = 1 + d.below(64), d.length([50, 200, 512]), d.pick([64, 128, 768])

    def f(x, w, mask):
        a = torch.softmax((x @ w).masked_fill(~mask, -1e9), dim=1)
        return (x * a.unsqueeze(-1)).sum(1)

    return f, [rand((b, s, n)), rand((n,)), (uniform((b, s)) < 0.8)]


@line
def factorization_machine(d):
    k, n = d.pick([10, 26, 39]), d.pick([8, 16, 64])
    b = d.rows(k * n)

    def f(e):
        return 0.5 * (e.sum(dim=1).pow(2) - e.pow(2).sum(dim=1)).sum(dim=1, keepdim=True)

    return f, [rand((b, k, n), d.dtype())]


@line
def dot_interaction(d):
    """Of DLRM: the products of all pairs of features."""
    k, n = d.pick([10, 27]), d.pick([16, 64, 128])
    b = d.rows(k * n, 1 << 23)

    def f(dense, e):
        x = torch.cat([dense.unsqueeze(1), e], dim=1)
        z = torch.bmm(x, x.transpose(1, 2))
        i, j = torch.tril_indices(k, k, offset=-1, device=x.device)
        return torch.cat([dense, z[:, i, j]], dim=1)

    return f, [rand((b, n)), rand((b, k - 1, n))]


@line
def cross_layer(d):
    """Of DCN: x0 * (w x + b) + x."""
    m, n = 64 + d.upto(8000), d.pick([64, 200, 429, 1024])
    t = d.dtype()
    return lambda x0, x, w, b: x0 * F.linear(x, w, b) + x, [
        rand((m, n), t), rand((m, n), t), rand((n, n), t) * 0.05, rand((n,), t)]


@line
def feature_hash(d):
    n = d.numel()
    return lambda a, b: (a * 2654435761 + b * 40503) % 100003, [integers(1 << 20, (n,)), integers(1 << 20, (n,))]


@line
def matrix_factorization(d):
    n, v = d.pick([16, 32, 64, 128]), d.length([1000, 100000])
    m = d.rows(n)

    def f(u, i, users, items, bias):
        return torch.sigmoid((users[u] * items[i]).sum(-1) + bias[i])

    return f, [integers(v, (m,)), integers(v, (m,)), rand((v, n)), rand((v, n)), rand((v,))]


@line
def sampled_softmax(d):
    """In-batch negatives with the correction for frequent items."""
    m, n = 64 + d.upto(4000), d.pick([32, 64, 128])

    def f(q, k, logq, ids):
        s = q @ k.t() / 0.05 - logq
        same = (ids[:, None] == ids[None, :]) & ~torch.eye(m, dtype=torch.bool, device=q.device)
        s = s.masked_fill(same, float("-inf"))
        return F.cross_entropy(s, torch.arange(m, device=q.device))

    return f, [F.normalize(rand((m, n)), dim=-1), F.normalize(rand((m, n)), dim=-1), torch.log(uniform((m,)) + 1e-3),
               integers(1000, (m,))]
