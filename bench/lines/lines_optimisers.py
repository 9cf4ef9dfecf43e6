"""Steps of optimisers and what goes with them; the state is changed in place where libraries do so."""
import torch

from draw import BF16, F32, line, rand, uniform


@line
def adamw(d):
    n = d.numel()

    def f(p, g, m, v):
        gf = g.float()
        m = m * 0.9 + gf * 0.1
        v = v * 0.95 + gf * gf * 0.05
        p = p * (1 - 1e-4) - 1e-3 * (m / 0.19) / ((v / 0.0975).sqrt() + 1e-8)
        return p, m, v

    return f, [rand((n,)), rand((n,), BF16), rand((n,)), uniform((n,))]


@line
def sgd_momentum(d):
    n = d.numel()

    def f(p, g, m):
        m = 0.9 * m + g.float()
        return p - 0.01 * m, m

    return f, [rand((n,)), rand((n,), BF16), rand((n,))]


@line
def ema(d):
    n = d.numel()
    return lambda a, b: a * 0.999 + b.float() * 0.001, [rand((n,)), rand((n,), BF16)]


@line
def gradient_norm(d):
    n = d.numel()
    return lambda g: (g.float() ** 2).sum().sqrt(), [rand((n,), d.dtype())]


@line
def adamw_in_place(d):
    """The step of torch.optim.AdamW for one tensor."""
    n = d.numel()
    t = d.pick([F32, F32, BF16])

    def f(param, grad, exp_avg, exp_avg_sq):
        param.mul_(1 - 1e-3 * 0.01)
        exp_avg.lerp_(grad, 1 - 0.9)
        exp_avg_sq.mul_(0.999).addcmul_(grad, grad, value=1 - 0.999)
        denom = (exp_avg_sq.sqrt() / 0.0316).add_(1e-8)
        param.addcdiv_(exp_avg, denom, value=-1e-3 / 0.1)
        return param, exp_avg, exp_avg_sq

    return f, [rand((n,), t), rand((n,), t), rand((n,), t), uniform((n,), t)]


@line
def adamw_master_weights(d):
    """Halves are trained, float32 kept."""
    n = d.numel()

    def f(master, g, m, v, scale):
        g = g.float() * scale
        m = torch.lerp(m, g, 0.1)
        v = torch.lerp(v, g * g, 0.05)
        master = master - 3e-4 * (m / (v.sqrt() + 1e-8) + 0.1 * master)
        return master, master.to(BF16), m, v

    return f, [rand((n,)), rand((n,), BF16), rand((n,)), uniform((n,)), uniform(())]


@line
def amsgrad(d):
    n = d.numel()

    def f(p, g, m, v, vmax):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g.square()
        vmax = torch.maximum(vmax, v)
        return p - 1e-3 * m / (vmax.sqrt() + 1e-8), m, v, vmax

    return f, [rand((n,)), rand((n,)), rand((n,)), uniform((n,)), uniform((n,))]


@line
def lion(d):
    n = d.numel()
    t = d.pick([F32, BF16])

    def f(p, g, m):
        update = m.clone().mul_(0.9).add(g, alpha=0.1).sign_()
        p.mul_(1 - 1e-4 * 0.1).add_(update, alpha=-1e-4)
        m.mul_(0.99).add_(g, alpha=0.01)
        return p, m

    return f, [rand((n,), t), rand((n,), t), rand((n,), t)]


@line
def rmsprop(d):
    n = d.numel()

    def f(p, g, sq, avg):
        sq.mul_(0.99).addcmul_(g, g, value=0.01)
        avg.lerp_(g, 0.01)
        p.addcdiv_(g, (sq - avg.square()).clamp_(min=0).sqrt_().add_(1e-8), value=-0.01)
        return p, sq, avg

    return f, [rand((n,)), rand((n,)), uniform((n,)), rand((n,)) * 0.01]


@line
def adagrad(d):
    n = d.numel()

    def f(p, g, s):
        s = s + g * g
        return p - 0.01 * g / (torch.sqrt(s) + 1e-10), s

    return f, [rand((n,)), rand((n,)), uniform((n,))]


@line
def nesterov(d):
    n = d.numel()
    t = d.pick([F32, BF16])

    def f(p, g, buf):
        g = g.add(p, alpha=1e-4)
        buf.mul_(0.9).add_(g)
        p.add_(g.add(buf, alpha=0.9), alpha=-0.01)
        return p, buf

    return f, [rand((n,), t), rand((n,), t), rand((n,), t)]


@line
def adafactor(d):
    n = d.width(8192)
    m = d.rows(n)

    def f(p, g, row, col):
        sq = g.float().square() + 1e-30
        row = row.lerp(sq.mean(dim=-1), 0.2)
        col = col.lerp(sq.mean(dim=-2), 0.2)
        r = (row / row.mean(dim=-1, keepdim=True)).rsqrt().unsqueeze(-1)
        u = r * col.rsqrt().unsqueeze(-2) * g.float()
        u = u / (u.norm(2) / (m * n) ** 0.5).clamp(min=1.0)
        return p - 1e-3 * u, row, col

    return f, [rand((m, n)), rand((m, n), BF16), uniform((m,)), uniform((n,))]


@line
def lamb(d):
    n = d.width(8192)
    m = d.rows(n, 1 << 24)

    def f(p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        update = m / (v.sqrt() + 1e-6) + 0.01 * p
        w_norm, u_norm = p.norm(), update.norm()
        trust = torch.where((w_norm > 0) & (u_norm > 0), w_norm / u_norm, 1.0)
        return p - 1e-3 * trust * update, m, v

    return f, [rand((m, n)), rand((m, n)), rand((m, n)), uniform((m, n))]


@line
def clip_gradient(d):
    n = d.numel()

    def f(g):
        norm = torch.linalg.vector_norm(g.float())
        return g * (1.0 / (norm + 1e-6)).clamp(max=1.0).to(g.dtype), norm

    return f, [rand((n,), d.dtype())]


@line
def clip_by_rows(d):
    """Adaptive clipping: no row of the gradient longer than a part of the parameter's."""
    n = d.width()
    m = d.rows(n)

    def f(p, g):
        p_norm = p.norm(dim=1, keepdim=True).clamp(min=1e-3)
        g_norm = g.norm(dim=1, keepdim=True)
        limit = p_norm * 0.01
        return torch.where(g_norm > limit, g * (limit / g_norm.clamp(min=1e-6)), g)

    return f, [rand((m, n)), rand((m, n))]


@line
def unscale_gradient(d):
    n = d.numel()
    t = d.pick([F32, BF16])

    def f(g, scale):
        g = g.float() * (1.0 / scale)
        return g, torch.isfinite(g).all()

    return f, [rand((n,), t), uniform(()) + 1000]


@line
def clip_values_and_decay(d):
    n = d.numel()
    return lambda p, g: p.mul_(1 - 1e-4).sub_(torch.clamp(g, -0.5, 0.5).nan_to_num_(0.0), alpha=0.01), [
        rand((n,)), rand((n,))]


@line
def ema_in_place(d):
    n = d.numel()
    t = d.pick([F32, BF16])
    return lambda a, b: a.mul_(0.9999).add_(b, alpha=1 - 0.9999), [rand((n,), t), rand((n,), t)]


@line
def newton_schulz(d):
    """One step of Muon."""
    n = 16 * d.upto(96)
    m = n + 16 * d.upto(64)

    def f(g):
        x = g.bfloat16()
        x = x / (x.norm() + 1e-7)
        a = x @ x.mT
        b = -4.7750 * a + 2.0315 * a @ a
        return 3.4445 * x + b @ x

    return f, [rand((n, m))]


@line
def gradient_accumulation(d):
    n = d.numel()
    return lambda acc, g: acc.add_(g.float() / 8), [rand((n,)), rand((n,), BF16)]


@line
def sam_perturbation(d):
    n = d.numel()
    return lambda p, g: p + g * (0.05 / (g.norm(p=2) + 1e-12)), [rand((n,)), rand((n,))]
