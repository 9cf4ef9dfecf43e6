"""Norms, with residuals and gates, and what is computed by rows as they are."""
import torch
import torch.nn.functional as F

from draw import BF16, line, rand, uniform


@line
def rms_norm(d):
    n = d.width()
    t = d.dtype()

    # float32 inside and rounded before the weight, as Llama has it; the library's function rounds once at the end.
    def f(x, w):
        xf = x.float()
        return (xf * torch.rsqrt((xf * xf).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

    return f, [rand((d.rows(n), n), t), rand((n,), t)]


@line
def rms_norm_residual(d):
    n = d.width()
    t = d.dtype()

    def f(x, r, w):
        h = x + r
        hf = h.float()
        # The sum is a result too: the next layer adds to it.
        return (hf * torch.rsqrt(hf.pow(2).mean(-1, keepdim=True) + 1e-5)).to(h.dtype) * w, h

    m = d.rows(n)
    return f, [rand((m, n), t), rand((m, n), t), rand((n,), t)]


@line
def layer_norm(d):
    n = d.width()
    t = d.dtype()
    return lambda x, w, b: F.layer_norm(x, (n,), w, b), [rand((d.rows(n), n), t), rand((n,), t), rand((n,), t)]


@line
def layer_norm_written_out(d):
    n = d.width()

    def f(x):
        xf = x.float()
        m = xf.mean(-1, keepdim=True)
        # The variance from the differences, for which the row is read again or kept.
        v = ((xf - m) ** 2).mean(-1, keepdim=True)
        return ((xf - m) / torch.sqrt(v + 1e-5)).to(x.dtype)

    return f, [rand((d.rows(n), n), d.dtype())]


@line
def softmax(d):
    n = d.width()
    return lambda x: torch.softmax(x, -1), [rand((d.rows(n), n), d.dtype())]


@line
def softmax_of_a_vocabulary(d):
    n = d.vocabulary()
    return lambda x: torch.softmax(x.float(), -1), [rand((d.rows(n), n), BF16)]


@line
def log_softmax(d):
    n = d.width()
    return lambda x: F.log_softmax(x.float(), -1), [rand((d.rows(n), n), d.dtype())]


@line
def logsumexp(d):
    n = d.width()
    return lambda x: torch.logsumexp(x.float(), -1), [rand((d.rows(n), n), d.dtype())]


@line
# The clamp stands on the root, as in most published code; F.normalize() has it there too.
def l2_normalize(d):
    n = d.width()
    return lambda x: x / (x * x).sum(-1, keepdim=True).sqrt().clamp(min=1e-6), [rand((d.rows(n), n), d.dtype())]


@line
def group_norm(d):
    b, g, c, s = 1 + d.below(16), d.pick([8, 16, 32]), d.pick([2, 4, 10, 16]), d.length([7, 14, 28, 31, 56])

    # One row for a group: its length follows from the image and need not be a power of two.
    def f(x):
        y = x.float().reshape(b, g, c * s * s)
        m = y.mean(-1, keepdim=True)
        v = ((y - m) ** 2).mean(-1, keepdim=True)
        return ((y - m) * torch.rsqrt(v + 1e-5)).reshape(b, g * c, s, s).to(x.dtype)

    return f, [rand((b, g * c, s, s), BF16)]


@line
def batch_norm_inference(d):
    c, s = d.pick([64, 96, 128, 320, 513]), d.length([7, 14, 28, 31, 56])
    b = d.rows(c * s * s)

    def f(x, mean, var, w, k):
        # Folded into a scale for each channel, which an inference engine would do beforehand.
        scale = w * torch.rsqrt(var + 1e-5)
        return (x - mean[None, :, None, None]) * scale[None, :, None, None] + k[None, :, None, None]

    return f, [rand((b, c, s, s), d.dtype()), rand((c,)), uniform((c,)), rand((c,)), rand((c,))]


@line
def rms_norm_function(d):
    n = d.width()
    t = d.dtype()
    return lambda x, w: F.rms_norm(x, (n,), w, eps=1e-6), [rand((d.rows(n), n), t), rand((n,), t)]


@line
def rms_norm_of_gemma(d):
    n = d.width()
    t = d.dtype()

    def f(x, w):
        xf = x.float()
        y = xf * torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + 1e-6)
        # Gemma keeps weights around zero and adds one; rounding comes last.
        return (y * (1.0 + w.float())).type_as(x)

    return f, [rand((d.rows(n), n), t), rand((n,), t)]


@line
def rms_norm_gated(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def f(x, z, w):
        # Mamba-2's: the gate is applied before the norm.
        h = x.float() * F.silu(z.float())
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)
        return w * h.to(x.dtype)

    return f, [rand((m, n), t), rand((m, n), t), rand((n,), t)]


@line
def rms_norm_twice(d):
    """A block that norms the output of its attention before the residual is added, and the sum again after it."""
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def norm(x, w):
        xf = x.float()
        return (xf * torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

    def f(x, residual, w1, w2):
        h = residual + norm(x, w1)
        return norm(h, w2), h

    return f, [rand((m, n), t), rand((m, n), t), rand((n,), t), rand((n,), t)]


@line
def layer_norm_residual(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def f(x, r, w, b):
        h = x + r
        return F.layer_norm(h, (n,), w, b, eps=1e-6), h

    return f, [rand((m, n), t), rand((m, n), t), rand((n,), t), rand((n,), t)]


@line
def layer_norm_modulated(d):
    b, n = 1 + d.below(8), d.width(4096)
    t = d.dtype()

    def f(x, shift, scale):
        # The shift and the scale belong to a whole sequence, so they broadcast over its rows.
        return F.layer_norm(x, (n,), eps=1e-6) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)

    return f, [rand((b, d.rows(b * n), n), t), rand((b, n), t), rand((b, n), t)]


@line
def residual_gated(d):
    b, n = 1 + d.below(8), d.width(4096)
    t = d.dtype()
    s = d.rows(b * n)
    return lambda x, y, g: x + g.unsqueeze(1) * y, [rand((b, s, n), t), rand((b, s, n), t), rand((b, n), t)]


@line
def layer_scale_residual(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def f(x, y, b, gamma):
        return x + gamma * (y + b)

    return f, [rand((m, n), t), rand((m, n), t), rand((n,), t), rand((n,), t)]


@line
def dynamic_tanh(d):
    n = d.width()
    t = d.dtype()
    # From the paper on transformers without normalization: no reduction at all.
    return lambda x, a, w, b: torch.tanh(a * x) * w + b, [
        rand((d.rows(n), n), t), uniform((1,), t), rand((n,), t), rand((n,), t)]


@line
def weight_norm(d):
    n = d.width()
    m = d.rows(n)
    t = d.dtype()
    return lambda v, g: v * (g / v.norm(2, dim=1, keepdim=True)), [rand((m, n), t), uniform((m, 1), t)]


@line
def normalize(d):
    n = d.width()
    return lambda x: F.normalize(x, dim=-1), [rand((d.rows(n), n), d.dtype())]


@line
def softmax_over_columns(d):
    n = d.width(4096)
    # Along the first dimension: neighbouring threads have neighbouring columns, and a row's sum is strided.
    return lambda x: torch.softmax(x, 0), [rand((d.rows(n), n), d.dtype())]


@line
def group_norm_silu(d):
    c, s = d.pick([64, 96, 128, 320, 640]), d.length([16, 28, 31, 64])
    t = d.dtype()
    b = min(d.rows(c * s * s), 32)
    return lambda x, w, k: F.silu(F.group_norm(x, 32, w, k, eps=1e-6)), [
        rand((b, c, s, s), t), rand((c,), t), rand((c,), t)]


@line
def instance_norm(d):
    c, s = d.pick([3, 16, 64, 128]), d.length([28, 61, 128])
    b = min(d.rows(c * s * s), 64)
    return lambda x, w, k: F.instance_norm(x, weight=w, bias=k), [rand((b, c, s, s)), rand((c,)), rand((c,))]


@line
def batch_norm_training(d):
    c, s = d.pick([64, 96, 128, 320, 513]), d.length([7, 14, 28, 31, 56])
    # Two rows at least: the variance of one has no divisor.
    b = 2 + d.rows(c * s * s)

    def f(x, mean, var, w, k):
        # The running statistics change in place.
        return F.relu(F.batch_norm(x, mean, var, w, k, training=True, momentum=0.1))

    return f, [rand((b, c, s, s), d.dtype()), rand((c,)), uniform((c,)), rand((c,)), rand((c,))]


@line
def batch_norm_written_out(d):
    c, s = d.pick([64, 96, 128, 320, 513]), d.length([7, 14, 28, 31, 56])
    b = 2 + d.rows(c * s * s)

    def f(x, running_mean, running_var, w, k):
        mean = x.mean((0, 2, 3))
        var = x.var((0, 2, 3), unbiased=False)
        y = (x - mean.view(1, -1, 1, 1)) / torch.sqrt(var.view(1, -1, 1, 1) + 1e-5)
        y = y * w.view(1, -1, 1, 1) + k.view(1, -1, 1, 1)
        # Three results of one pass, of which two are small.
        return y, 0.9 * running_mean + 0.1 * mean, 0.9 * running_var + 0.1 * var

    return f, [rand((b, c, s, s)), rand((c,)), uniform((c,)), rand((c,)), rand((c,))]


@line
def local_response_norm(d):
    c, s = d.pick([64, 96, 256]), d.length([13, 27, 55])
    return lambda x: F.local_response_norm(x, 5), [rand((min(d.rows(c * s * s), 128), c, s, s))]
