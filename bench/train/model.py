"""Training steps, in words that PyTorch and Kiln share. step.py draws the shapes and times them."""
import random

import torch
import torch.nn.functional as F
from torch.func import grad_and_value


def weight(rows, columns, device):
    return torch.randn(rows, columns, device=device) * rows ** -0.5


class Mlp:
    """gelu(x @ w1 + b1) @ w2 + b2."""

    def __init__(self, seed, largest):
        r = random.Random(seed)
        self.rows, self.d, self.hidden = [drawn(r, 64, n) for n in (largest, largest // 2, largest)]
        self.dtype = r.choice(["bfloat16", "float32"])
        self.text = f"mlp {self.rows}x{self.d}x{self.hidden} {self.dtype}"

    def parameters(self, device):
        return {"w1": weight(self.d, self.hidden, device), "b1": torch.zeros(self.hidden, device=device),
                "w2": weight(self.hidden, self.d, device), "b2": torch.zeros(self.d, device=device)}

    def batch(self, device):
        x = torch.randn(self.rows, self.d, device=device).to(getattr(torch, self.dtype))
        return x, torch.randn(self.rows, self.d, device=device)

    def forward(self, p, x):
        return F.gelu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


class Block:
    """Causal attention and an MLP with SiLU, each after an RMS norm, with residuals."""

    def __init__(self, seed, largest):
        r = random.Random(seed)
        self.batches, self.heads, self.columns = r.choice([1, 2, 4]), r.choice([4, 8, 16]), r.choice([64, 128])
        self.tokens = drawn(r, 64, largest // 2)
        if largest < 1024:
            self.heads, self.columns = 4, 16
        self.d = self.heads * self.columns
        self.dtype = r.choice(["bfloat16", "float32"])
        self.text = f"block {self.batches}x{self.tokens}x{self.d} {self.heads} heads {self.dtype}"

    def parameters(self, device):
        d = self.d
        return {"norm1": torch.ones(d, device=device), "qkv": weight(d, 3 * d, device), "out": weight(d, d, device),
                "norm2": torch.ones(d, device=device), "up": weight(d, 4 * d, device), "down": weight(4 * d, d, device)}

    def batch(self, device):
        x = torch.randn(self.batches, self.tokens, self.d, device=device).to(getattr(torch, self.dtype))
        return x, torch.randn(self.batches, self.tokens, self.d, device=device)

    def forward(self, p, x):
        b, t, d = x.shape
        qkv = F.rms_norm(x, (d,), p["norm1"]) @ p["qkv"]
        q, k, v = [part.reshape(b, t, self.heads, self.columns).transpose(1, 2) for part in qkv.chunk(3, -1)]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed.transpose(1, 2).reshape(b, t, d) @ p["out"]
        hidden = F.rms_norm(x, (d,), p["norm2"]) @ p["up"]
        return x + F.silu(hidden) @ p["down"]


def drawn(r, low, high):
    """Log-uniform; a third multiples of 64, a third of 8, a third anything."""
    n = int(low * (high / low) ** r.random())
    by = r.choice([64, 8, 1])
    return max(by, n // by * by)


MODELS = {"mlp": Mlp, "block": Block}


def initial(model, device):
    """Parameters, and the two running means of AdamW."""
    p = model.parameters(device)
    m, v = [{k: torch.zeros_like(t) for k, t in p.items()} for _ in range(2)]
    return {"p": p, "m": m, "v": v}


def step(model, state, x, target, optimizer):
    """One step from one state to the next: parameters are float32, products in the model's dtype."""
    def loss(p):
        low = {k: t.to(x.dtype) for k, t in p.items()}
        return F.mse_loss(model.forward(low, x).float(), target)

    grads, value = grad_and_value(loss)(state["p"])
    return updated(state, grads, optimizer), value


def updated(state, grads, optimizer):
    p, m, v = state["p"], state["m"], state["v"]
    if optimizer == "sgd":
        return {"p": {k: p[k] - 0.1 * g for k, g in grads.items()}, "m": m, "v": v}
    m = {k: 0.9 * m[k] + 0.1 * g for k, g in grads.items()}
    v = {k: 0.99 * v[k] + 0.01 * g * g for k, g in grads.items()}
    return {"p": {k: p[k] * (1 - 1e-5) - 1e-3 * m[k] / (v[k].sqrt() + 1e-6) for k in p}, "m": m, "v": v}
