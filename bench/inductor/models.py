"""Models of real shape, in plain PyTorch: each is a module, its inputs, and whether a training step is measured."""
import math

import torch
import torch.nn.functional as F
from torch import nn


# ---- a Llama-like block: RMS norm, rotary attention over groups of heads, SwiGLU ------------------------------------
class RmsNorm(nn.Module):

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Llama(nn.Module):

    def __init__(self, width=4096, heads=32, groups=8, hidden=14336, length=2048):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.before, self.between = RmsNorm(width), RmsNorm(width)
        self.qkv = nn.Linear(width, (heads + 2 * groups) * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        angles = torch.outer(torch.arange(length), 1e4**(-torch.arange(0, self.size, 2) / self.size)).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, -1, self.size).transpose(1, 2).split(
            [self.heads, self.groups, self.groups], 1)
        q, k = rotate(q, self.cos[:length], self.sin[:length]), rotate(k, self.cos[:length], self.sin[:length])
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, width))
        h = self.between(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


# ---- ResNet-50 ------------------------------------------------------------------------------------------------------
class Bottleneck(nn.Module):

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.a, self.na = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.b, self.nb = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.c, self.nc = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.skip = None
        if stride != 1 or inputs != 4 * width:
            self.skip = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        y = F.relu(self.nb(self.b(y)))
        return F.relu(self.nc(self.c(y)) + (x if self.skip is None else self.skip(x)))


class ResNet50(nn.Module):

    def __init__(self, depths=(3, 4, 6, 3), width=64, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], width
        for stage, depth in enumerate(depths):
            for i in range(depth):
                blocks.append(Bottleneck(inputs, width << stage, 2 if stage and not i else 1))
                inputs = 4 * (width << stage)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inputs, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


# ---- a vision transformer, and GPT-2 --------------------------------------------------------------------------------
class Layer(nn.Module):

    def __init__(self, width, heads, is_causal):
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh" if self.is_causal else "none"))


class Vit(nn.Module):

    def __init__(self, width=768, heads=12, depth=12, patch=16, size=224, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch)**2 + 1, width) * 0.02)
        self.layers = nn.Sequential(*[Layer(width, heads, False) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


class Gpt2(nn.Module):

    def __init__(self, width=768, heads=12, depth=12, vocabulary=50257, length=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*[Layer(width, heads, True) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        for e in (self.words, self.places): nn.init.normal_(e.weight, std=0.02)

    def forward(self, text):
        x = self.words(text) + self.places.weight[:text.shape[1]]
        scores = F.linear(self.norm(self.layers(x)), self.words.weight)
        return F.cross_entropy(scores[:, :-1].flatten(0, 1).float(), text[:, 1:].flatten())


# ---- a Mamba-2 block: the state-space recurrence in chunks ----------------------------------------------------------
def sums_between(x):
    """The sum of x[j + 1] to x[i] at [i, j], minus infinity above the diagonal."""
    length = x.shape[-1]
    total = x.cumsum(-1)
    lower = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
    return (total[..., :, None] - total[..., None, :]).masked_fill(~lower, -math.inf)


def state_space(x, decay, b, c, chunk):
    x, decay, b, c = (t.unflatten(1, (-1, chunk)) for t in (x, decay, b, c))
    decay = decay.permute(0, 3, 1, 2)
    total = decay.cumsum(-1)
    inside = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, sums_between(decay).exp(), x)
    states = torch.einsum("bcln,bhcl,bclhp->bchpn", b, (total[..., -1:] - total).exp(), x)
    states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
    carried = sums_between(F.pad(total[..., -1], (1, 0))).exp()
    states = torch.einsum("bhzc,bchpn->bzhpn", carried, states)[:, :-1]
    before = torch.einsum("bcln,bchpn,bhcl->bclhp", c, states, total.exp())
    return (inside + before).flatten(1, 2)


class Mamba2(nn.Module):

    def __init__(self, width=2048, state=128, head=64, taps=4, chunk=128):
        super().__init__()
        self.inner, self.state, self.heads, self.chunk = 2 * width, state, 2 * width // head, chunk
        self.mixed = self.inner + 2 * state
        self.norm, self.between = RmsNorm(width), RmsNorm(self.inner)
        self.enter = nn.Linear(width, self.inner + self.mixed + self.heads, bias=False)
        self.taps = nn.Conv1d(self.mixed, self.mixed, taps, groups=self.mixed, padding=taps - 1)
        self.rate = nn.Parameter(torch.linspace(0, 2.7, self.heads))
        self.bias, self.through = nn.Parameter(torch.full((self.heads, ), -4.0)), nn.Parameter(torch.ones(self.heads))
        self.leave = nn.Linear(self.inner, width, bias=False)

    def forward(self, x):
        gate, mixed, step = self.enter(self.norm(x)).split([self.inner, self.mixed, self.heads], -1)
        mixed = F.silu(self.taps(mixed.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
        v, b, c = mixed.split([self.inner, self.state, self.state], -1)
        v = v.unflatten(-1, (self.heads, -1)).float()
        step = F.softplus(step.float() + self.bias.float())
        y = state_space(v * step[..., None], -self.rate.float().exp() * step, b.float(), c.float(), self.chunk)
        y = (y + v * self.through.float()[:, None]).flatten(2).to(x.dtype)
        return x + self.leave(self.between(y * F.silu(gate)))


def normal(*shape):
    return lambda device, dtype: torch.randn(*shape, device=device).to(dtype)


def words(batch, length, vocabulary):
    return lambda device, dtype: torch.randint(vocabulary, (batch, length), device=device)


# name: (module, input, whether it is trained); behind it the same for a machine without a GPU, so that it can be tried
MODELS = {
    "llama_block": (lambda: Llama(), normal(4, 2048, 4096), False),
    "resnet50": (lambda: ResNet50(), normal(64, 3, 224, 224), True),
    "vit_b_16": (lambda: Vit(), normal(64, 3, 224, 224), False),
    "mamba2_block": (lambda: Mamba2(), normal(4, 2048, 2048), False),
    "gpt2_step": (lambda: Gpt2(), words(8, 1024, 50257), True),
}
SMALL = {
    "llama_block": (lambda: Llama(64, 4, 2, 128, 32), normal(2, 32, 64), False),
    "resnet50": (lambda: ResNet50((1, 1, 1, 1), 8, 10), normal(2, 3, 64, 64), True),
    "vit_b_16": (lambda: Vit(32, 2, 2, 8, 32, 10), normal(2, 3, 32, 32), False),
    "mamba2_block": (lambda: Mamba2(32, 16, 16, 4, 16), normal(2, 64, 32), False),
    "gpt2_step": (lambda: Gpt2(32, 2, 2, 101, 16), words(2, 16, 101), True),
}
