"""Activations, gates, layers with products, and gradients written out."""
import torch
import torch.nn.functional as F

from draw import BF16, integers, line, rand, random, uniform


@line
def swiglu(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)
    return lambda a, b: F.silu(a) * b, [rand((m, n), t), rand((m, n), t)]


@line
def swiglu_halves(d):
    n = d.width(8192)

    def f(x):
        # Views of one tensor: no copy is made of either half.
        a, b = x[:, :n], x[:, n:]
        return F.silu(a) * b

    return f, [rand((d.rows(2 * n), 2 * n), d.dtype())]


@line
def gelu_bias(d):
    n = d.width()
    t = d.dtype()
    return lambda x, b: F.gelu(x + b), [rand((d.rows(n), n), t), rand((n,), t)]


@line
def gelu_backward(d):
    n = d.width()
    t = d.dtype()

    def f(x, g):
        xf = x.float()
        cdf = 0.5 * (1 + torch.erf(xf * 0.7071067811865476))
        # The constants are 1 / sqrt(2) and 1 / sqrt(2 pi).
        pdf = torch.exp(-0.5 * xf * xf) * 0.3989422804014327
        return (g.float() * (cdf + xf * pdf)).to(x.dtype)

    m = d.rows(n)
    return f, [rand((m, n), t), rand((m, n), t)]


@line
def relu_squared(d):
    n = d.width()
    return lambda x: torch.relu(x) ** 2, [rand((d.rows(n), n), d.dtype())]


@line
def clamp_scale(d):
    n = d.numel()
    return lambda x: (x * 1.7 + 0.3).clamp(-1, 1), [rand((n,), d.dtype())]


@line
def tanh_soft_cap(d):
    n = d.width()
    # Gemma's cap of logits.
    return lambda x: 30.0 * torch.tanh(x / 30.0), [rand((d.rows(n), n), d.dtype())]


@line
def linear_gelu(d):
    m, k, n = 8 * d.upto(512), d.inner(), d.inner(8192)
    # 0.02 keeps the sums near 1, where a GELU is neither zero nor the identity.
    return lambda x, w, b: F.gelu(x @ w + b), [rand((m, k), BF16), rand((k, n), BF16) * 0.02, rand((n,), BF16)]


@line
def gated_mlp(d):
    m, k, n = 8 * d.upto(256), 64 * (1 + d.below(48)), 64 * (1 + d.below(96))
    return lambda x, a, b: F.silu(x @ a) * (x @ b), [
        # Two products of the same rows, whose results meet element by element.
        rand((m, k), BF16), rand((k, n), BF16) * 0.02, rand((k, n), BF16) * 0.02]


@line
def bias_gradient(d):
    n = d.width()
    # A sum down the columns in float32 of halves.
    return lambda g: g.float().sum(0).to(g.dtype), [rand((d.rows(n), n), BF16)]


@line
def geglu(d):
    n = d.width(8192)

    def f(x):
        x, gate = x.chunk(2, dim=-1)
        return x * F.gelu(gate, approximate="tanh")

    return f, [rand((d.rows(2 * n), 2 * n), d.dtype())]


@line
def swiglu_interleaved(d):
    """Of gpt-oss: gate and value alternate, both clamped."""
    n = d.width(8192)

    def f(x, bias):
        x = x + bias
        # Every other element: two strided views of one tensor.
        gate, up = x[..., ::2], x[..., 1::2]
        gate = gate.clamp(max=7.0)
        up = up.clamp(min=-7.0, max=7.0)
        return (up + 1) * (gate * torch.sigmoid(gate * 1.702))

    t = d.dtype()
    return f, [rand((d.rows(2 * n), 2 * n), t), rand((2 * n,), t)]


@line
def mish_bias(d):
    n = d.width()
    t = d.dtype()
    return lambda x, b: F.mish(x + b), [rand((d.rows(n), n), t), rand((n,), t)]


@line
def hardswish_scale(d):
    c, s = d.pick([16, 40, 96, 112]), d.length([7, 14, 28, 56])
    t = d.dtype()
    b = d.rows(c * s * s)
    return lambda x, w, k: F.hardswish(x * w[:, None, None] + k[:, None, None]), [
        rand((b, c, s, s), t), rand((c,), t), rand((c,), t)]


@line
def leaky_relu_bias(d):
    n = d.width()
    t = d.dtype()
    # StyleGAN's gain, which keeps the variance.
    return lambda x, b: F.leaky_relu(x + b, 0.2) * 2 ** 0.5, [rand((d.rows(n), n), t), rand((n,), t)]


@line
def prelu(d):
    c, s = d.pick([16, 64, 96]), d.length([14, 31, 56, 112])
    t = d.dtype()
    return lambda x, w: F.prelu(x, w), [rand((d.rows(c * s * s), c, s, s), t), uniform((c,), t)]


@line
def snake(d):
    """Of vocoders."""
    c, s = d.pick([24, 48, 96, 192]), d.length([800, 4001, 16000])
    t = d.dtype()
    b = d.rows(c * s, 1 << 24)
    # The small number keeps a channel whose frequency is near zero from a division by it.
    return lambda x, a: x + (a + 1e-9).reciprocal() * torch.sin(a * x).pow(2), [
        rand((b, c, s), t), uniform((1, c, 1), t) + 0.5]


@line
def dropout_residual(d):
    """With the mask given, so that both sides drop the same."""
    n = d.width()
    t = d.dtype()
    m = d.rows(n)
    # A division by what is kept, as at training.
    return lambda x, b, r, u: r + torch.where(u > 0.1, (x + b) / 0.9, 0.0), [
        rand((m, n), t), rand((n,), t), rand((m, n), t), uniform((m, n), t)]


@line
def linear_relu(d):
    m, k, n = d.upto(4096), d.inner(), d.inner()
    t = d.dtype()
    return lambda x, w, b: torch.relu(F.linear(x, w, b)), [rand((m, k), t), rand((n, k), t) * 0.02, rand((n,), t)]


@line
def linear_residual_norm(d):
    m, k, n = d.upto(4096), d.inner(), d.inner()
    t = d.dtype()

    def f(x, w, residual, g):
        h = residual + x @ w.t()
        # The sum is a result and the norm's operand: a product, a residual and a reduction.
        return F.rms_norm(h, (n,), g, 1e-6), h

    return f, [rand((m, k), t), rand((n, k), t) * 0.02, rand((m, n), t), rand((n,), t)]


@line
def lora(d):
    m, k, n, r = d.upto(2048), d.inner(), d.inner(), d.pick([8, 16, 64])
    t = d.dtype()
    # A narrow product of a narrow product, added to a wide one.
    return lambda x, w, a, b: F.linear(x, w) + F.linear(F.linear(x, a), b) * 2.0, [
        rand((m, k), t), rand((n, k), t) * 0.02, rand((r, k), t) * 0.02, rand((n, r), t)]


@line
def layer_norm_backward(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def f(dy, x, w):
        xf, g = x.float(), dy.float() * w.float()
        mean = xf.mean(-1, keepdim=True)
        rstd = torch.rsqrt(xf.var(-1, unbiased=False, keepdim=True) + 1e-5)
        xhat = (xf - mean) * rstd
        # Both means of a row belong to one pass; the other two results sum over the rows instead.
        dx = rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        return dx.to(x.dtype), (dy.float() * xhat).sum(0), dy.float().sum(0)

    return f, [rand((m, n), t), rand((m, n), t), rand((n,), t)]


@line
def rms_norm_backward(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def f(dy, x, w):
        xf, g = x.float(), dy.float() * w.float()
        # rsqrt() comes in to the third power; written out so as people write it.
        rstd = torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + 1e-6)
        dx = rstd * g - xf * rstd.pow(3) * (g * xf).mean(-1, keepdim=True)
        return dx.to(x.dtype), (dy.float() * xf * rstd).sum(0)

    return f, [rand((m, n), t), rand((m, n), t), rand((n,), t)]


@line
def softmax_backward(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def f(dp, x):
        p = torch.softmax(x, -1)
        # The row's sum of dp * p is what makes it more than pointwise.
        return p * (dp - (dp * p).sum(-1, keepdim=True))

    return f, [rand((m, n), t), rand((m, n), t)]


@line
def gelu_tanh_backward(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def f(g, x):
        t = torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        # The derivative of the tanh form, term by term: 0.1070322243 is 3 * 0.044715 * 0.79788456.
        d = 0.5 * x * ((1 - t * t) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + t)
        return d * g

    return f, [rand((m, n), t), rand((m, n), t)]


@line
def swiglu_backward(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)

    def f(dy, a, b):
        s = torch.sigmoid(a)
        # The derivative of SiLU by its own sigmoid.
        da = dy * b * s * (1 + a * (1 - s))
        return da, dy * a * s

    return f, [rand((m, n), t), rand((m, n), t), rand((m, n), t)]


@line
def cross_entropy_backward(d):
    v = d.vocabulary()
    m = d.rows(v)

    def f(logits, target):
        p = torch.softmax(logits.float(), -1)
        # One-hot is a comparison with the column here, and need never be stored.
        return ((p - F.one_hot(target, v)) / m).to(logits.dtype)

    return f, [rand((m, v), d.dtype()), integers(v, (m,))]


@line
def tanh_backward_clipped(d):
    n = d.numel()
    t = d.dtype()
    return lambda g, y: (g * (1 - y ** 2)).clamp_(-1, 1), [rand((n,), t), torch.tanh(rand((n,), t))]


@line
@random
def dropout_function(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)
    return lambda x, r: r + F.dropout(x, p=0.1), [rand((m, n), t), rand((m, n), t)]


@line
@random
def noise_injection(d):
    n = d.width()
    return lambda x: x + torch.randn_like(x) * 0.1, [rand((d.rows(n), n), d.dtype())]
