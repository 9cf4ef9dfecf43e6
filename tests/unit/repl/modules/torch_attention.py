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


for i in range(16):
    d = random.choice([16, 24, 64, 72, 128, 256])
    n, keys = random.randint(1, 300), random.randint(1, 300)
    causal, group = random.random() < 0.5, random.choice([1, 1, 2, 4])
    dtype = random.choice([torch.float16, torch.bfloat16])
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
    got = _attention.attention(q, k, v, by, causal)
    want = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal, scale=scale,
                                          enable_gqa=True)
    assert got.shape == want.shape and got.dtype == dtype, case
    off = (got.float() - want).abs().max().item()
    assert off <= (8e-3 if dtype is torch.float16 else 6e-2), f"{off}: {case}"
    same = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)
    if q.is_cuda:
        assert torch.equal(got, same), case
    else:
        assert torch.allclose(got.float(), same.float(), atol=6e-2), case

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
