"""What the lines are drawn with: numbers from a seed, tensors, and the table of lines.

Kiln and PyTorch both run this file and lines_*.py. They use no random module, so that both draw the same.
"""
import torch

BF16, F16, F32, FP8 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Draw:
    """A sequence of numbers from a seed (the generator of Numerical Recipes, its high bits).

    `small` is for check.py: fewer rows and shorter sequences, the same widths.
    """

    def __init__(self, seed, small=False):
        self.state = seed
        self.small = small

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
        return max(1, (size // 16 if self.small else size) // width)

    def numel(self):
        """Of a vector, such as a parameter: 2^16 to 2^24 and a remainder."""
        size = 1 << (16 + self.below(9))
        return (size // 16 if self.small else size) + self.below(1000)

    def length(self, values):
        """One of `values`: of a sequence, of an image's side, of a vocabulary, of a matrix product."""
        n = self.pick(values)
        return n // 4 if self.small and n >= 32 else n

    def upto(self, n):
        """1 to n: of a batch, of a sequence."""
        k = self.below(n)
        return 1 + (k // 8 if self.small and n >= 64 else k)

    def inner(self, most=4096):
        """Width of a matrix of a product."""
        w = self.width(most)
        return 1 + w // 4 if self.small else w

    def vocabulary(self):
        return self.length([32000, 50257, 128256, 151936])

    def dtype(self):
        return self.pick([BF16, BF16, F16, F32])


def rand(shape, dtype=F32):
    return torch.randn(shape, device=DEVICE).to(dtype)


def uniform(shape, dtype=F32):
    return torch.rand(shape, device=DEVICE).to(dtype)


def integers(n, shape):
    return torch.randint(0, n, shape, device=DEVICE)


LINES = {}
RANDOM = set()


def line(f):
    """A function that draws its inputs and gives the line and its arguments."""
    LINES[f.__name__] = f
    return f


def random(f):
    """A line with random numbers of its own, so that only dtypes and shapes can be compared."""
    RANDOM.add(f.__name__)
    return f


def drawn(seed, count, prefixes=()):
    """`count` draws: (name, seed of its Draw), of the lines whose names or modules begin so, in an order of the seed."""
    d = Draw(seed)
    names = [n for n in LINES
             if not prefixes or any(n.startswith(p) or LINES[n].__module__.startswith(p) for p in prefixes)]
    for i in range(len(names) - 1, 0, -1):
        j = d.below(i + 1)
        names[i], names[j] = names[j], names[i]
    return [(names[i % len(names)], d.below(1 << 20)) for i in range(count or len(names))]
