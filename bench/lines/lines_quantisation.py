"""Quantisation: scales, rounding, packing, and products of quantised weights."""
import torch
import torch.nn.functional as F

from draw import BF16, DEVICE, FP8, integers, line, rand, uniform


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
    q = (uniform((m, n)) * 255 - 128).to(torch.int8)
    return lambda q, s: (q.float() * s).to(BF16), [q, uniform((m, 1))]


NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
       -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
       0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]


@line
def quantize_tensor(d):
    n = d.width()

    def f(x):
        scale = x.abs().max() / 127.0
        return torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8), scale

    return f, [rand((d.rows(n), n), d.dtype())]


@line
def quantize_affine(d):
    """With a zero point per row."""
    n = d.width()

    def f(x):
        lo, hi = x.aminmax(dim=-1, keepdim=True)
        scale = ((hi - lo) / 255).clamp(min=1e-8)
        zero = torch.round(-lo / scale)
        return torch.clamp(torch.round(x / scale) + zero, 0, 255).to(torch.uint8), scale, zero

    return f, [rand((d.rows(n), n))]


@line
def quantize_groups_int4(d):
    g = d.pick([32, 64, 128])
    n = g * (1 + d.below(64))
    m = d.rows(n)

    def f(w):
        w = w.reshape(m, n // g, g).float()
        s = w.abs().amax(-1, keepdim=True) / 7
        q = (w / s).round().clamp(-8, 7).to(torch.int8) + 8
        q = q.reshape(m, n).to(torch.uint8)
        return q[:, ::2] | (q[:, 1::2] << 4), s.squeeze(-1)

    return f, [rand((m, n), d.dtype())]


@line
def unpack_int4(d):
    g = d.pick([32, 64, 128])
    n = g * (1 + d.below(64))
    m = d.rows(n)
    t = d.dtype()

    def f(packed, s):
        q = torch.stack([packed & 0xF, packed >> 4], dim=-1).reshape(m, n // g, g)
        return ((q.to(s.dtype) - 8) * s.unsqueeze(-1)).reshape(m, n)

    return f, [integers(256, (m, n // 2)).to(torch.uint8), uniform((m, n // g), t)]


@line
def unpack_gptq(d):
    """Eight values of 4 bits in an int32, along the inputs."""
    n, k = d.width(4096), 128 * (1 + d.below(32))
    g = 128

    def f(qweight, scales):
        shifts = torch.arange(0, 32, 4, device=qweight.device)
        w = (qweight.unsqueeze(1) >> shifts.view(1, -1, 1)) & 0xF
        w = w.reshape(k // g, g, n)
        return ((w - 8) * scales.unsqueeze(1)).reshape(k, n)

    q = (integers(1 << 32, (k // 8, n)) - (1 << 31)).to(torch.int32)
    return f, [q, uniform((k // g, n), torch.float16)]


@line
def quantize_nf4(d):
    n = d.numel() // 64 * 64

    def f(w, table):
        blocks = w.float().view(-1, 64)
        absmax = blocks.abs().amax(1, keepdim=True)
        edges = (table[1:] + table[:-1]) / 2
        return torch.bucketize(blocks / absmax, edges).to(torch.uint8), absmax

    return f, [rand((n,), BF16), torch.tensor(NF4, device=DEVICE)]


@line
def dequantize_nf4(d):
    n = d.numel() // 64 * 64

    def f(q, absmax, table):
        values = table[torch.stack([q >> 4, q & 15], dim=-1).long()]
        return (values.view(-1, 64) * absmax[:, None]).to(BF16)

    return f, [integers(256, (n // 2,)).to(torch.uint8), uniform((n // 64,)), torch.tensor(NF4, device=DEVICE)]


@line
def quantize_fp8_groups(d):
    """Of activations, as DeepSeek has them: a scale per 128 columns."""
    n = 128 * (1 + d.below(96))
    m = d.rows(n)

    def f(x):
        xb = x.view(m, n // 128, 128)
        amax = xb.abs().float().amax(dim=2).view(m, -1).clamp(1e-4)
        return (xb * (448.0 / amax.unsqueeze(2))).to(FP8).view(m, n), (amax / 448.0).view(m, -1)

    return f, [rand((m, n), BF16)]


@line
def dequantize_fp8_blocks(d):
    """Of weights: a scale per 128 x 128."""
    m, n = 128 * d.upto(32), 128 * (1 + d.below(64))

    def f(w, s):
        s = s.repeat_interleave(128, 0).repeat_interleave(128, 1)
        return (w.float() * s).to(BF16)

    return f, [rand((m, n)).to(FP8), uniform((m // 128, n // 128))]


@line
def quantize_mx(d):
    """Blocks of 32 with a power of two as scale."""
    n = 32 * (1 + d.below(256))
    m = d.rows(n)

    def f(x):
        xb = x.float().view(m, -1, 32)
        e = torch.floor(torch.log2(xb.abs().amax(-1, keepdim=True).clamp(min=2.0 ** -126))) - 8
        return (xb / torch.exp2(e)).clamp(-448, 448).to(FP8).view(m, n), (e + 127).to(torch.uint8).squeeze(-1)

    return f, [rand((m, n), BF16)]


@line
def fake_quantize(d):
    """Of training that knows of the quantisation."""
    n = d.width()
    m = d.rows(n)

    def f(w, s):
        q = torch.clamp((w / s).round(), -128, 127)
        return q * s, (w / s >= -128) & (w / s <= 127)

    return f, [rand((m, n)), uniform((m, 1)) * 0.02 + 0.01]


@line
def ternary_weights(d):
    n = d.width()

    def f(w):
        s = 1.0 / w.abs().mean().clamp(min=1e-5)
        return (w * s).round().clamp(-1, 1) / s

    return f, [rand((d.rows(n), n), d.dtype())]


@line
def linear_int8_weight(d):
    m, k, n = d.upto(1024), d.inner(), d.inner()
    q = integers(256, (n, k)).sub(128).to(torch.int8)
    return lambda x, q, s: F.linear(x, q.to(x.dtype)) * s, [rand((m, k), BF16), q, uniform((n,), BF16) * 0.01]


@line
def linear_int4_weight(d):
    m, k, n, g = d.upto(256), 128 * (1 + d.below(24)), d.inner(), 128

    def f(x, packed, s, z):
        w = torch.stack([packed & 0xF, packed >> 4], -1).view(n, k // g, g)
        w = ((w.to(x.dtype) - z.unsqueeze(-1)) * s.unsqueeze(-1)).view(n, k)
        return x @ w.t()

    return f, [rand((m, k), BF16), integers(256, (n, k // 2)).to(torch.uint8), uniform((n, k // g), BF16) * 0.01,
               integers(16, (n, k // g)).to(BF16)]


@line
def dequantize_product(d):
    """int32 sums of an int8 product, with scales of rows and of columns and a bias."""
    n = d.width()
    m = d.rows(n)
    return lambda acc, sx, sw, b: (acc.float() * sx * sw + b).to(BF16), [
        integers(200000, (m, n)).to(torch.int32) - 100000, uniform((m, 1)), uniform((n,)), rand((n,))]


@line
def smooth_quant(d):
    n = d.width(8192)
    m = d.rows(n)

    def f(x, w_max):
        s = (x.abs().amax(0).float() ** 0.5 / w_max.clamp(min=1e-5) ** 0.5).clamp(min=1e-5)
        return x / s.to(x.dtype), s

    return f, [rand((m, n), d.dtype()), uniform((n,))]


@line
def quantize_kv_cache(d):
    b, h, s, e = 1 + d.below(4), d.pick([2, 4, 8]), d.length([128, 500, 1024, 2048]), d.pick([64, 80, 128])

    def f(k, v):
        ks, vs = k.abs().amax(dim=(0, 2, 3)) / 448, v.abs().amax(dim=(0, 2, 3)) / 448
        return (k / ks[:, None, None]).to(FP8), (v / vs[:, None, None]).to(FP8), ks, vs

    return f, [rand((b, h, s, e), BF16), rand((b, h, s, e), BF16)]
