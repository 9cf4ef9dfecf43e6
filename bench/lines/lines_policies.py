"""Reinforcement learning: policies, values and returns."""
import math

import torch
import torch.nn.functional as F

from draw import integers, line, rand, uniform


@line
def ppo(d):
    """Of a categorical policy: clipped policy, clipped value, entropy."""
    n, a = 256 + d.upto(60000), d.pick([4, 6, 18])

    def f(logits, value, action, old_logp, old_value, adv, ret):
        logp_all = logits - logits.logsumexp(-1, keepdim=True)
        logp = logp_all.gather(-1, action.unsqueeze(-1)).squeeze(-1)
        entropy = -(logp_all * logp_all.exp()).sum(-1)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        ratio = (logp - old_logp).exp()
        policy = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
        clipped = old_value + torch.clamp(value - old_value, -0.2, 0.2)
        v = 0.5 * torch.max((value - ret) ** 2, (clipped - ret) ** 2).mean()
        with_entropy = policy - 0.01 * entropy.mean() + 0.5 * v
        kl = ((ratio - 1) - (logp - old_logp)).mean()
        return with_entropy, kl, ((ratio - 1.0).abs() > 0.2).float().mean()

    return f, [rand((n, a)), rand((n,)), integers(a, (n,)), -uniform((n,)) * 2, rand((n,)), rand((n,)), rand((n,))]


@line
def generalized_advantages(d):
    """A loop from the last step to the first, as CleanRL has it."""
    t, n = d.pick([8, 16, 20]), 16 + d.upto(20000)

    def f(reward, value, done, last):
        adv = []
        gae = torch.zeros_like(last)
        for i in reversed(range(t)):
            following = last if i == t - 1 else value[i + 1]
            alive = 1.0 - done[i]
            delta = reward[i] + 0.99 * following * alive - value[i]
            gae = delta + 0.99 * 0.95 * alive * gae
            adv.append(gae)
        adv = torch.stack(adv[::-1])
        return adv, adv + value

    return f, [rand((t, n)), rand((t, n)), (uniform((t, n)) < 0.05).float(), rand((n,))]


@line
def squashed_gaussian(d):
    """SAC's actions and their log probabilities."""
    n, a = 256 + d.upto(60000), d.pick([1, 3, 6, 17])

    def f(out, eps):
        mean, log_std = out.chunk(2, dim=-1)
        log_std = -5 + 0.5 * 7 * (torch.tanh(log_std) + 1)
        std = log_std.exp()
        u = mean + std * eps
        logp = -((u - mean) ** 2) / (2 * std ** 2) - log_std - math.log(math.sqrt(2 * math.pi))
        logp = logp - 2 * (math.log(2) - u - F.softplus(-2 * u))
        return torch.tanh(u), logp.sum(1, keepdim=True)

    return f, [rand((n, 2 * a)), rand((n, a))]


@line
def categorical_projection(d):
    """C51: the distribution of returns, moved by a reward and put back on its atoms."""
    n, k = 32 + d.upto(8000), 51

    def f(p, reward, done):
        z = torch.linspace(-10.0, 10.0, k, device=p.device)
        tz = (reward[:, None] + (1 - done[:, None]) * 0.99 * z).clamp(-10.0, 10.0)
        b = (tz + 10.0) / (20.0 / (k - 1))
        low, high = b.floor(), b.ceil()
        to_low = (high + (low == high).float() - b) * p
        to_high = (b - low) * p
        offset = (torch.arange(n, device=p.device) * k)[:, None]
        m = torch.zeros(n * k, device=p.device)
        m.index_add_(0, (low.long() + offset).view(-1), to_low.view(-1))
        m.index_add_(0, (high.long() + offset).view(-1), to_high.view(-1))
        return m.view(n, k)

    return f, [F.softmax(rand((n, k)), -1), rand((n,)) * 3, (uniform((n,)) < 0.1).float()]


@line
def quantile_huber(d):
    """QR-DQN: every quantile against every target."""
    n, k, a = 16 + d.upto(1500), d.pick([32, 51, 200]), d.pick([4, 18])

    def f(quantiles, action, target):
        theta = quantiles.gather(1, action[:, None, None].expand(-1, 1, k)).squeeze(1)
        tau = (torch.arange(k, device=theta.device, dtype=torch.float32) + 0.5) / k
        u = target[:, None, :] - theta[:, :, None]
        huber = torch.where(u.abs() <= 1.0, 0.5 * u.pow(2), u.abs() - 0.5)
        return ((tau[None, :, None] - (u.detach() < 0).float()).abs() * huber).mean(2).sum(1).mean()

    return f, [rand((n, a, k)), integers(a, (n,)), rand((n, k))]


@line
def double_q_target(d):
    n, a = 256 + d.upto(60000), d.pick([4, 6, 18])

    def f(q, q_next, q_target, action, reward, done):
        best = q_next.argmax(dim=1, keepdim=True)
        y = reward + 0.99 * (1 - done) * q_target.gather(1, best).squeeze(1)
        td = q.gather(1, action.unsqueeze(1)).squeeze(1) - y
        # The loss, and priorities of replay.
        return F.smooth_l1_loss(td, torch.zeros_like(td)), (td.abs() + 1e-6) ** 0.6

    return f, [rand((n, a)), rand((n, a)), rand((n, a)), integers(a, (n,)), rand((n,)), (uniform((n,)) < 0.1).float()]


@line
def running_statistics(d):
    """Of observations, by the formula for two batches, and the observations normed by them."""
    c = d.pick([8, 17, 84, 376])
    m = d.rows(c, 1 << 22)

    def f(x, mean, var, count):
        batch_mean, batch_var = x.mean(0), x.var(0, unbiased=False)
        delta = batch_mean - mean
        total = count + m
        mean = mean + delta * m / total
        m2 = var * count + batch_var * m + delta ** 2 * count * m / total
        var = m2 / total
        return torch.clamp((x - mean) / torch.sqrt(var + 1e-8), -10, 10), mean, var, total

    return f, [rand((m, c)), rand((c,)), uniform((c,)) + 0.5, uniform(()) * 1000]


@line
def whitened_rewards(d):
    """RLHF: a penalty at each token, the score at the last, returns, and whitening over a mask."""
    b, n = 1 + d.below(64), d.length([53, 128, 500])

    def f(logp, ref, score, length):
        i = torch.arange(n, device=logp.device)
        mask = (i[None, :] < length[:, None]).float()
        reward = -0.05 * (logp - ref) * mask
        reward = reward + torch.where(i[None, :] == length[:, None] - 1, score[:, None], 0.0)
        ret = reward.flip(1).cumsum(1).flip(1)
        mean = (ret * mask).sum() / mask.sum()
        var = (((ret - mean) ** 2) * mask).sum() / mask.sum()
        return (ret - mean) * torch.rsqrt(var + 1e-8) * mask

    return f, [-uniform((b, n)), -uniform((b, n)), rand((b,)), integers(n, (b,)) + 1]
