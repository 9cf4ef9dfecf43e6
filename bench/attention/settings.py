# Settings of attention drawn from a seed, for scripts of run.py and gradient.py, which put this in front of their own
# text, so that it runs under Kiln and under Triton alike.
import random
import sys

import torch
import triton.testing

SETTINGS = 24
MOST_FLOP = 4e12


def draw(seed):
    """Columns, causal or not, heads of keys with how many heads of q each, rows; every third length is ragged."""
    chosen = random.Random(seed)
    settings = []
    for i in range(SETTINGS):
        d = chosen.choice([64, 96, 128, 256]) if i % 2 else chosen.choice([64, 128])
        causal = chosen.random() < 0.5
        n = int(2 ** chosen.uniform(7, 15))
        n = n if i % 3 == 0 else max(128, n // 128 * 128)
        group = chosen.choice([1, 1, 4, 8])
        keys = 2 ** chosen.randint(1, 5)
        while keys > 1 and 4 * keys * group * n * n * d > MOST_FLOP:
            keys //= 2
        dtype = chosen.choice(["float16", "bfloat16"])
        settings.append((d, causal, keys, group, n, dtype))
    return settings


def flop(d, causal, keys, group, n, dtype):
    return 4.0 * keys * group * n * n * d * (0.5 if causal else 1.0)


def tensors(d, causal, keys, group, n, dtype):
    def normal(heads):
        return torch.randn((heads, n, d), device="cuda", dtype=torch.float32).to(getattr(torch, dtype))

    return normal(keys * group), normal(keys), normal(keys)
