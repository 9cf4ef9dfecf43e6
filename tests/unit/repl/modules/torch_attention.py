"""scaled_dot_product_attention by its kernel against the scores written out: random shapes, on the session's device."""
import random
import sys

import torch
import torch.nn.functional as F
from torch import _attention

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
print("seed", seed)
random.seed(seed)
torch.manual_seed(seed)


def normal(*shape):
    return torch.randn(*shape)


most_off = {torch.float16: 8e-3, torch.bfloat16: 6e-2, torch.float32: 2e-5}

for i in range(16):
    d = random.choice([16, 24, 64, 72, 128, 256])
    n, keys = random.randint(1, 300), random.randint(1, 300)
    causal, group = random.random() < 0.5, random.choice([1, 1, 2, 4])
    dtype = random.choice([torch.float16, torch.bfloat16] + [torch.float32] * (d <= 128))
    of_keys = random.choice([1, 2, 3])
    batch = random.choice([[], [2], [2, 1]])
    q = normal(*batch, of_keys * group, n, d).to(dtype)
    k = normal(*batch, of_keys, keys, d).to(dtype)
    v = normal(*batch, of_keys, keys, d).to(dtype)
    if random.random() < 0.5:  # as models split heads: a view that is not contiguous
        q = normal(*batch, n, of_keys * group, d).to(dtype).transpose(-3, -2)
    scale = random.choice([None, 0.02, 1.5 / d])
    by = d**-0.5 if scale is None else scale
    case = f"{batch} {of_keys} x {group}, {n} rows, {keys} keys, {d}, {dtype}, causal {causal}, {scale}"
    got = _attention.attention(q, k, v, by, causal, None)
    want = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal, scale=scale,
                                          enable_gqa=True)
    assert got.shape == want.shape and got.dtype == dtype, case
    off = (got.double() - want).abs().max().item()
    assert off <= most_off[dtype], f"{off}: {case}"
    same = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)
    if q.is_cuda:
        assert torch.equal(got, same), case
    else:
        assert torch.allclose(got.float(), same.float(), atol=6e-2), case


def random_mask(shape):
    """Of what broadcasts to `shape`, some of it views, with rows that look nowhere where it is bool."""
    short = shape[random.randint(0, len(shape) - 2):]
    short = [1 if i < len(short) - 1 and random.random() < 0.4 else n for i, n in enumerate(short)]
    kind = random.choice([torch.bool, torch.float32, torch.float16])
    turned = random.random() < 0.3
    mask = normal(*(short[:-2] + [short[-1], short[-2]])).mT if turned else normal(*short)
    if kind is torch.bool:
        return mask > 0.5
    mask = torch.where(mask > 1.5, float("-inf"), mask)
    mask = torch.where(torch.arange(short[-1]) == 0, 0.25, mask)  # all rows see the first key
    return mask.to(kind)


for i in range(16):
    d, rank = random.choice([16, 64, 72, 128]), random.choice([2, 3, 4])
    n, keys = random.choice([1, 37, 64, 130, 200]), random.choice([1, 16, 96, 129, 200])
    lead = [random.randint(1, 3) for _ in range(rank - 2)]
    dtype = random.choice([torch.float16, torch.float32])
    q, k, v = (normal(*lead, m, d).to(dtype) for m in (n, keys, keys))
    mask = random_mask(lead + [n, keys])
    case = f"{lead} {n} rows, {keys} keys, {d}, {dtype}, mask {mask.dtype} {tuple(mask.shape)} {mask.stride()}"
    scale = random.choice([0.02, d**-0.5])
    got = _attention.attention(q, k, v, scale, False, mask)
    want = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), scale=scale,
                                          attn_mask=mask if mask.dtype is torch.bool else mask.double())
    assert got.shape == want.shape and got.dtype is dtype, case
    off = (got.double() - want).abs().max().item()
    assert off <= most_off[dtype], f"{off}: {case}"
    same = F.scaled_dot_product_attention(q, k, v, scale=scale, attn_mask=mask)
    assert torch.equal(got, same) if q.is_cuda else torch.allclose(got.float(), same.float(), atol=6e-2), case

for i in range(8):
    d, causal, group = random.choice([16, 64, 72, 128]), random.random() < 0.5, random.choice([1, 1, 3])
    n, keys, of_keys, batch = random.randint(1, 200), random.randint(1, 200), random.choice([1, 2]), random.choice([[], [2]])
    q = normal(*batch, n, of_keys * group, d).half().transpose(-3, -2)
    k, v = normal(*batch, of_keys, keys, d).half(), normal(*batch, of_keys, keys, d).half()
    g, scale = normal(*q.shape).half(), random.choice([0.02, d**-0.5])
    case = f"{batch} {of_keys} x {group}, {n} rows, {keys} keys, {d}, causal {causal}, {scale}"

    def by_scores(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)

    def by_kernels(q, k, v):
        return _attention.attention_with_gradient(q, k, v, scale, causal, by_scores)

    out, back = torch.func.vjp(by_kernels, q, k, v)
    want_out, want_back = torch.func.vjp(by_scores, q.float(), k.float(), v.float())
    assert (out.float() - want_out).abs().max().item() <= 8e-3, case
    for name, got, want in zip("qkv", back(g), want_back(g.float())):
        assert got.dtype is torch.float16 and got.shape == want.shape, (name, case)
        off, most = (got.float() - want).abs().max().item(), want.abs().max().item()
        assert off <= 4e-3 * max(1.0, most), f"d{name} is off by {off} of {most}: {case}"

# A gradient of a gradient is by the scores.
q, k, v = (normal(2, 3, 24, 16).half() for _ in range(3))


def by_scores(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=0.25)


def by_kernels(q, k, v):
    return _attention.attention_with_gradient(q, k, v, 0.25, False, by_scores)


def twice(attend):
    def slope(q):
        return torch.func.grad(lambda k: (attend(q, k, v).float() ** 2).sum())(k).float().pow(2).sum()

    return torch.func.grad(slope)(q).float()


assert twice(by_scores).abs().max() > 0.01
assert torch.allclose(twice(by_kernels), twice(by_scores), atol=0.05, rtol=0.02)

# A row that looks nowhere gives zeros, whatever says so and whichever way.
x = normal(1, 2, 6, 16).half()
added = torch.zeros(6, 6)
added[2] = float("-inf")
for mask in (added, added.half(), added == 0):
    for out in (F.scaled_dot_product_attention(x, x, x, attn_mask=mask), _attention.attention(x, x, x, 0.25, False, mask),
                F.scaled_dot_product_attention(x.float(), x.float(), x.float(),
                                               attn_mask=mask if mask.dtype is torch.bool else mask.float())):
        assert (out[:, :, 2] == 0).all() and not out.isnan().any(), mask.dtype
    slope = torch.func.grad(lambda q: F.scaled_dot_product_attention(q, x, x, attn_mask=mask).float().sum())(x)
    assert (slope[:, :, 2] == 0).all() and not slope.isnan().any(), mask.dtype

x = normal(2, 3, 40, 64).half()
for mask in (torch.zeros(40, 40).half(), torch.ones(40, 40, dtype=torch.bool)):
    assert torch.allclose(F.scaled_dot_product_attention(x, x, x, attn_mask=mask).float(),
                          F.scaled_dot_product_attention(x, x, x).float(), atol=1e-2)
for wrong in (lambda: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2]),
              lambda: F.scaled_dot_product_attention(x, x[..., :32], x)):
    try:
        wrong()
    except (RuntimeError, TypeError):
        continue
    raise AssertionError("not refused")
print("ok")
