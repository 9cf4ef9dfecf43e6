# Lines as users of PyTorch write them, with shapes drawn from a seed. Kiln and PyTorch both run this file: peers.py
# appends Kiln's side to it, and imports it for PyTorch's. It uses no random module, so that both draw the same.
import torch
import torch.nn.functional as F

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


class Draw:
    """A sequence of numbers from a seed (the generator of Numerical Recipes, its high bits)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1664525 + 1013904223) % 4294967296
        return (self.state >> 8) % n

    def pick(self, values):
        return values[self.below(len(values))]

    def width(self, most=16384):
        """Of a row: a model's width, a multiple of 8, or anything."""
        kind = self.below(4)
        if kind < 2:
            w = self.pick([128, 256, 512, 768, 1024, 1280, 2048, 2560, 3072, 4096, 5120, 8192, 11008, 14336])
        elif kind == 2:
            w = 8 * (1 + self.below(2048))
        else:
            w = 1 + self.below(16384)
        return min(w, most)

    def rows(self, width, most=1 << 25):
        """So that rows x width is between 2^16 and `most` elements, evenly in the logarithm."""
        size = 1 << (16 + self.below(10))
        size = min(size + self.below(size), most)
        return max(1, size // width)

    def dtype(self):
        return self.pick([BF16, BF16, F16, F32])


def rand(shape, dtype=F32):
    return torch.randn(shape, device="cuda").to(dtype)


LINES = {}


def line(f):
    LINES[f.__name__] = f
    return f


# Each function draws its inputs and gives the line and its arguments.


@line
def rms_norm(d):
    n = d.width()
    t = d.dtype()

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
        v = ((xf - m) ** 2).mean(-1, keepdim=True)
        return ((xf - m) / torch.sqrt(v + 1e-5)).to(x.dtype)

    return f, [rand((d.rows(n), n), d.dtype())]


@line
def softmax(d):
    n = d.width()
    return lambda x: torch.softmax(x, -1), [rand((d.rows(n), n), d.dtype())]


@line
def softmax_of_a_vocabulary(d):
    n = d.pick([32000, 50257, 128256, 151936])
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
def l2_normalize(d):
    n = d.width()
    return lambda x: x / (x * x).sum(-1, keepdim=True).sqrt().clamp(min=1e-6), [rand((d.rows(n), n), d.dtype())]


@line
def group_norm(d):
    b, g, c, s = 1 + d.below(16), d.pick([8, 16, 32]), d.pick([2, 4, 10, 16]), d.pick([7, 14, 28, 31, 56])

    def f(x):
        y = x.float().reshape(b, g, c * s * s)
        m = y.mean(-1, keepdim=True)
        v = ((y - m) ** 2).mean(-1, keepdim=True)
        return ((y - m) * torch.rsqrt(v + 1e-5)).reshape(b, g * c, s, s).to(x.dtype)

    return f, [rand((b, g * c, s, s), BF16)]


@line
def batch_norm_inference(d):
    c, s = d.pick([64, 96, 128, 320, 513]), d.pick([7, 14, 28, 31, 56])
    b = d.rows(c * s * s)

    def f(x, mean, var, w, k):
        return (x - mean[None, :, None, None]) * (w * torch.rsqrt(var + 1e-5))[None, :, None, None] + k[None, :, None, None]

    return f, [rand((b, c, s, s), d.dtype()), rand((c,)), torch.rand((c,), device="cuda"), rand((c,)), rand((c,))]


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
        pdf = torch.exp(-0.5 * xf * xf) * 0.3989422804014327
        return (g.float() * (cdf + xf * pdf)).to(x.dtype)

    m = d.rows(n)
    return f, [rand((m, n), t), rand((m, n), t)]


@line
def relu_squared(d):
    n = d.width()
    return lambda x: torch.relu(x) ** 2, [rand((d.rows(n), n), d.dtype())]


@line
def mse(d):
    n = d.width()
    t = d.dtype()
    m = d.rows(n)
    return lambda a, b: ((a.float() - b.float()) ** 2).mean(), [rand((m, n), t), rand((m, n), t)]


@line
def huber(d):
    n = d.width()
    m = d.rows(n)

    def f(a, b):
        e = (a.float() - b.float()).abs()
        return torch.where(e < 1, 0.5 * e * e, e - 0.5).mean()

    return f, [rand((m, n), BF16), rand((m, n), BF16)]


@line
def bce_with_logits(d):
    n = d.width()
    m = d.rows(n)

    def f(x, y):
        return (torch.relu(x) - x * y + torch.log(1 + torch.exp(-x.abs()))).mean()

    return f, [rand((m, n)), torch.rand((m, n), device="cuda")]


@line
def kl_divergence(d):
    n = d.width()
    m = d.rows(n)

    def f(p, q):
        lp, lq = F.log_softmax(p.float(), -1), F.log_softmax(q.float(), -1)
        return (lp.exp() * (lp - lq)).sum(-1).mean()

    return f, [rand((m, n), BF16), rand((m, n), BF16)]


@line
def cosine_similarity(d):
    n = d.width()
    m = d.rows(n)

    def f(a, b):
        return (a * b).sum(-1) / ((a * a).sum(-1).sqrt() * (b * b).sum(-1).sqrt()).clamp(min=1e-8)

    return f, [rand((m, n)), rand((m, n))]


@line
def adamw(d):
    n = (1 << (16 + d.below(9))) + d.below(1000)

    def f(p, g, m, v):
        gf = g.float()
        m = m * 0.9 + gf * 0.1
        v = v * 0.95 + gf * gf * 0.05
        p = p * (1 - 1e-4) - 1e-3 * (m / 0.19) / ((v / 0.0975).sqrt() + 1e-8)
        return p, m, v

    return f, [rand((n,)), rand((n,), BF16), rand((n,)), torch.rand((n,), device="cuda")]


@line
def sgd_momentum(d):
    n = (1 << (16 + d.below(9))) + d.below(1000)

    def f(p, g, m):
        m = 0.9 * m + g.float()
        return p - 0.01 * m, m

    return f, [rand((n,)), rand((n,), BF16), rand((n,))]


@line
def ema(d):
    n = (1 << (16 + d.below(9))) + d.below(1000)
    return lambda a, b: a * 0.999 + b.float() * 0.001, [rand((n,)), rand((n,), BF16)]


@line
def gradient_norm(d):
    n = (1 << (16 + d.below(10))) + d.below(1000)
    return lambda g: (g.float() ** 2).sum().sqrt(), [rand((n,), d.dtype())]


@line
def quantize_rows(d):
    n = d.width()

    def f(x):
        xf = x.float()
        s = xf.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
        return torch.round(xf / s).clamp(-128, 127).to(torch.int8), s

    return f, [rand((d.rows(n), n), d.dtype())]


@line
def quantize_fp8(d):
    n = d.width()

    def f(x):
        s = 448.0 / x.abs().max().float().clamp(min=1e-12)
        return (x.float() * s).clamp(-448, 448).to(torch.float8_e4m3fn)

    return f, [rand((d.rows(n), n), BF16)]


@line
def dequantize(d):
    n = d.width()
    m = d.rows(n)
    q = (torch.rand((m, n), device="cuda") * 255 - 128).to(torch.int8)
    return lambda q, s: (q.float() * s).to(BF16), [q, torch.rand((m, 1), device="cuda")]


@line
def rotary(d):
    b, s, h, e = 1 + d.below(4), d.pick([128, 500, 1024, 2048]), d.pick([8, 12, 32]), d.pick([64, 80, 128])

    def f(x, cos, sin):
        x1, x2 = x[..., : e // 2], x[..., e // 2 :]
        return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], -1)

    return f, [rand((b, h, s, e), BF16), rand((s, e // 2), BF16), rand((s, e // 2), BF16)]


@line
def masked_softmax(d):
    b, h, s = 1 + d.below(4), d.pick([4, 8, 12]), d.pick([64, 127, 256, 512, 1000])

    def f(x, keep):
        return torch.softmax(torch.where(keep, x.float() * 0.125, -1e9), -1).to(x.dtype)

    return f, [rand((b, h, s, s), BF16), rand((s, s)) > 0]


@line
def attention_written_out(d):
    h, s, e = d.pick([4, 8, 16]), d.pick([128, 256, 500, 1024]), d.pick([64, 128])

    def f(q, k, v):
        return torch.softmax((q @ k.transpose(-1, -2)).float() * 0.125, -1).to(v.dtype) @ v

    return f, [rand((h, s, e), BF16), rand((h, s, e), BF16), rand((h, s, e), BF16)]


@line
def linear_gelu(d):
    m, k, n = 8 * (1 + d.below(512)), d.width(4096), d.width(8192)
    return lambda x, w, b: F.gelu(x @ w + b), [rand((m, k), BF16), rand((k, n), BF16) * 0.02, rand((n,), BF16)]


@line
def gated_mlp(d):
    m, k, n = 8 * (1 + d.below(256)), 64 * (1 + d.below(48)), 64 * (1 + d.below(96))
    return lambda x, a, b: F.silu(x @ a) * (x @ b), [rand((m, k), BF16), rand((k, n), BF16) * 0.02, rand((k, n), BF16) * 0.02]


@line
def column_sum(d):
    n = d.width()
    return lambda x: x.sum(0), [rand((d.rows(n), n), d.dtype())]


@line
def bias_gradient(d):
    n = d.width()
    return lambda g: g.float().sum(0).to(g.dtype), [rand((d.rows(n), n), BF16)]


@line
def column_variance(d):
    n = d.width()
    return lambda x: x.var(0), [rand((2 + d.rows(n), n))]


@line
def row_variance(d):
    n = 1 + d.width()
    return lambda x: x.var(-1), [rand((d.rows(n), n), d.dtype())]


@line
def argmax(d):
    n = d.width()
    return lambda x: x.argmax(-1), [rand((d.rows(n), n), d.dtype())]


@line
def max_of_all(d):
    n = d.width()
    return lambda x: x.abs().max(), [rand((d.rows(n), n), d.dtype())]


@line
def transpose(d):
    n = d.width()
    return lambda x: x.T.contiguous(), [rand((d.rows(n), n), d.dtype())]


@line
def split_heads(d):
    b, s, h, e = 1 + d.below(4), d.pick([128, 500, 1024, 2048]), d.pick([8, 12, 32]), d.pick([64, 80, 128])
    return lambda x: x.reshape(b, s, h, e).permute(0, 2, 1, 3).contiguous(), [rand((b, s, h * e), BF16)]


@line
def image_to_tensor(d):
    b, s = 1 + d.below(16), d.pick([32, 113, 224, 299])
    img = (torch.rand((b, s, s, 3), device="cuda") * 255).to(torch.uint8)

    def f(img, mean, std):
        return (((img.float() / 255 - mean) / std).permute(0, 3, 1, 2)).contiguous()

    return f, [img, torch.rand((3,), device="cuda"), torch.rand((3,), device="cuda") + 0.5]


@line
def cumsum_rows(d):
    n = d.width()
    return lambda x: torch.cumsum(x, -1), [rand((d.rows(n), n))]


@line
def cumsum_long(d):
    n = (1 << (16 + d.below(9))) + d.below(1000)
    return lambda x: torch.cumsum(x, 0), [rand((n,))]


@line
def embedding(d):
    n = d.width(4096)
    v = d.pick([1000, 32000, 50257])
    i = (torch.rand((min(d.rows(n), 16384),), device="cuda") * v).to(torch.int64).clamp(0, v - 1)
    return lambda w, i: w[i], [rand((v, n), BF16), i]


@line
def clamp_scale(d):
    n = (1 << (16 + d.below(10))) + d.below(1000)
    return lambda x: (x * 1.7 + 0.3).clamp(-1, 1), [rand((n,), d.dtype())]


@line
def tanh_soft_cap(d):
    n = d.width()
    return lambda x: 30.0 * torch.tanh(x / 30.0), [rand((d.rows(n), n), d.dtype())]


@line
def mixture_weights(d):
    n = d.pick([8, 16, 60, 64, 128])

    def f(x):
        p = torch.softmax(x.float(), -1)
        return p / p.sum(-1, keepdim=True)

    return f, [rand((d.rows(n, 1 << 21), n), BF16)]


@line
def distance_matrix(d):
    m, n, k = 64 + d.below(2000), 64 + d.below(2000), d.pick([16, 64, 100, 256])

    def f(a, b):
        return (a * a).sum(-1, keepdim=True) + (b * b).sum(-1)[None, :] - 2 * (a @ b.T)

    return f, [rand((m, k), F16), rand((n, k), F16)]


def drawn(seed, count):
    """`count` draws: (name, line, arguments) made when asked for, so that memory holds one at a time."""
    d = Draw(seed)
    names = list(LINES)
    out = []
    for i in range(count):
        out.append((names[i % len(names)], d.below(1 << 20)))
    return out
