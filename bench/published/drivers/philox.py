# Philox of Triton's tl.philox and tl.rand, in integers of 64 bits.
from harness import *

LOW = 4294967295


def words(seed, counters, rounds=10):
    """The four words for counters (c, 0, 0, 0), unsigned, as int64."""
    c0, c1, c2, c3 = counters.to(torch.int64), 0, 0, 0
    k0, k1 = seed % 4294967296, seed // 4294967296
    for _ in range(rounds):
        a, b = c0 * 3528531795, c2 * 3449720151  # wraps, which the high words do not show once they are masked
        c0, c1, c2, c3 = (high(b) ^ c1 ^ k0), b & LOW, (high(a) ^ c3 ^ k1), a & LOW
        k0, k1 = (k0 + 2654435769) & LOW, (k1 + 3144134277) & LOW
    return c0, c1, c2, c3


def high(product):
    return (product >> 32) & LOW


def uniform(word):
    """What tl.rand makes of a word: float32 in [0, 1)."""
    signed = torch.where(word >= 2147483648, word - 4294967296, word)
    return torch.where(signed < 0, -signed - 1, signed).float() * 4.6566127342e-10
