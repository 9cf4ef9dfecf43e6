"""Sampling of tokens and of diffusion."""
import torch
import torch.nn.functional as F

from draw import BF16, integers, line, rand, random, uniform


@line
def argmax(d):
    n = d.width()
    return lambda x: x.argmax(-1), [rand((d.rows(n), n), d.dtype())]


def logits(d):
    """Batch and vocabulary."""
    v = d.vocabulary()
    return d.upto(64), v


@line
def temperature(d):
    b, v = logits(d)
    return lambda x, t: torch.softmax(x.float() / t[:, None].clamp(min=1e-5), -1), [rand((b, v), BF16), uniform((b,))]


@line
def sample_exponential(d):
    """As gpt-fast samples; the noise is given."""
    b, v = logits(d)

    def f(x, u):
        probs = torch.softmax(x.float() / 0.8, dim=-1)
        return torch.argmax(probs / -torch.log(u), dim=-1, keepdim=True).to(dtype=torch.int)

    return f, [rand((b, v), BF16), uniform((b, v))]


@line
def gumbel_softmax(d):
    n = d.pick([16, 320, 1024, 8192])
    m = d.rows(n)

    def f(x, u):
        gumbels = -torch.log(-torch.log(u + 1e-10) + 1e-10)
        soft = ((x + gumbels) / 0.5).softmax(-1)
        index = soft.max(-1, keepdim=True)[1]
        hard = torch.zeros_like(x).scatter_(-1, index, 1.0)
        return hard - soft + soft

    return f, [rand((m, n)), uniform((m, n))]


@line
def top_k_filter(d):
    b, v = logits(d)

    def f(x):
        remove = x < torch.topk(x, 50)[0][..., -1, None]
        return x.masked_fill(remove, -float("inf"))

    return f, [rand((b, v), d.dtype())]


@line
def top_p_filter(d):
    b, v = logits(d)

    def f(x):
        sorted_logits, sorted_indices = torch.sort(x, descending=False)
        cumulative = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
        remove = cumulative <= (1 - 0.9)
        remove[..., -1:] = 0
        return x.masked_fill(remove.scatter(1, sorted_indices, remove), -float("inf"))

    return f, [rand((b, v)) * 3]


@line
def min_p_filter(d):
    b, v = logits(d)

    def f(x):
        p = torch.softmax(x, dim=-1)
        return x.masked_fill(p < 0.05 * p.amax(dim=-1, keepdim=True), -float("inf"))

    return f, [rand((b, v)) * 3]


@line
def epsilon_typical(d):
    """How far each token's information is from the entropy."""
    b, v = logits(d)

    def f(x):
        logp = F.log_softmax(x, dim=-1)
        entropy = -(logp * logp.exp()).nansum(-1, keepdim=True)
        return torch.abs((-logp) - entropy)

    return f, [rand((b, v)) * 3]


@line
def repetition_penalty(d):
    b, v = logits(d)

    def f(scores, ids):
        score = torch.gather(scores, 1, ids)
        score = torch.where(score < 0, score * 1.2, score / 1.2)
        return scores.scatter(1, ids, score)

    return f, [rand((b, v)), integers(v, (b, d.length([64, 500, 2000])))]


@line
def frequency_penalty(d):
    b, v = logits(d)
    return lambda x, n: x.float() - 0.5 * n - 0.3 * (n > 0), [rand((b, v), BF16), integers(3, (b, v))]


@line
def count_tokens(d):
    b, v = logits(d)
    s = d.length([64, 500, 2000])

    def f(ids):
        return torch.zeros((b, v), dtype=torch.int64, device=ids.device).scatter_add_(1, ids, torch.ones_like(ids))

    return f, [integers(v, (b, s))]


@line
def beam_scores(d):
    b, k, v = 1 + d.below(16), d.pick([4, 5, 10]), d.vocabulary()

    def f(x, scores):
        s = F.log_softmax(x.float(), dim=-1) + scores[:, None]
        top, i = torch.topk(s.view(b, k * v), 2 * k, dim=1, largest=True, sorted=True)
        return top, i // v, i % v

    return f, [rand((b * k, v)), rand((b * k,))]


@line
def speculative_acceptance(d):
    b, s, v = 1 + d.below(16), 4, d.vocabulary()

    def f(draft, target, ids, u):
        p = torch.softmax(draft.float(), -1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
        q = torch.softmax(target.float(), -1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
        accept = u < torch.clamp(q / p, max=1.0)
        return accept.int().cumprod(dim=-1).sum(-1)

    return f, [rand((b, s, v), BF16), rand((b, s, v), BF16), integers(v, (b, s)), uniform((b, s))]


@line
def contrastive_guidance(d):
    b, v = logits(d)

    def f(x):
        cond, uncond = x.float().log_softmax(-1).chunk(2, dim=0)
        return 1.5 * (cond - uncond) + uncond

    return f, [rand((2 * b, v), BF16)]


def latent(d):
    c, s = d.pick([3, 4, 16]), d.length([32, 64, 96, 128, 255])
    return min(d.rows(c * s * s), 256), c, s, s


@line
def diffusion_noise(d):
    """q(x_t | x_0), a step drawn per sample."""
    shape = latent(d)
    t = d.dtype()

    def f(x, noise, alphas_cumprod, step):
        a = alphas_cumprod[step].to(x.dtype)
        sqrt_a, sqrt_b = a.sqrt().view(-1, 1, 1, 1), (1 - a).sqrt().view(-1, 1, 1, 1)
        return sqrt_a * x + sqrt_b * noise

    return f, [rand(shape, t), rand(shape, t), uniform((1000,)), integers(1000, (shape[0],))]


@line
def ddim_step(d):
    shape = latent(d)
    t = d.dtype()

    def f(x, eps, a, a_prev):
        x0 = (x - (1 - a).sqrt() * eps) / a.sqrt()
        x0 = x0.clamp(-1, 1)
        return a_prev.sqrt() * x0 + (1 - a_prev).sqrt() * eps

    return f, [rand(shape, t), rand(shape, t), uniform((), t) * 0.9 + 0.05, uniform((), t) * 0.9 + 0.05]


@line
def guidance_rescaled(d):
    b, c, s, _ = latent(d)
    t = d.dtype()

    def f(pred):
        uncond, text = pred.chunk(2)
        y = uncond + 7.5 * (text - uncond)
        std = text.std(dim=(1, 2, 3), keepdim=True)
        return 0.7 * y * (std / y.std(dim=(1, 2, 3), keepdim=True)) + 0.3 * y

    return f, [rand((2 * b, c, s, s), t)]


@line
def flow_matching(d):
    shape = latent(d)
    t = d.dtype()

    def f(x1, x0, v, time):
        time = time[:, None, None, None]
        xt = (1 - time) * x0 + time * x1
        return xt, F.mse_loss(v.float(), (x1 - x0).float())

    return f, [rand(shape, t), rand(shape, t), rand(shape, t), uniform((shape[0],), t)]


@line
@random
def sample_of_gpt_fast(d):
    b, v = logits(d)

    def f(x):
        probs = torch.softmax(x.float() / 0.8, dim=-1)
        q = torch.empty_like(probs).exponential_(1)
        return torch.argmax(probs / q, dim=-1, keepdim=True).to(dtype=torch.int)

    return f, [rand((b, v), BF16)]


@line
@random
def gumbel_softmax_function(d):
    n = d.pick([16, 320, 1024, 8192])
    return lambda x: F.gumbel_softmax(x, tau=0.5, hard=False), [rand((d.rows(n), n))]
