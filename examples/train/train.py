"""Trains a two-layer MLP, then an attention block: `kiln run examples/train/train.py`, or python3 with PyTorch.

A step is one plan: the loss, the gradients and the update are computed together when the loss is read.
"""
import torch
import torch.nn.functional as F
from torch.func import grad_and_value

torch.manual_seed(0)


def mlp(p, x):
    return F.gelu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def attention_block(p, x):
    b, t, d = x.shape
    heads = 4
    qkv = F.rms_norm(x, (d,), p["norm1"]) @ p["qkv"]
    q, k, v = [part.reshape(b, t, heads, d // heads).transpose(1, 2) for part in qkv.chunk(3, -1)]
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.transpose(1, 2).reshape(b, t, d) @ p["out"]
    hidden = F.rms_norm(x, (d,), p["norm2"]) @ p["up"]
    return x + F.silu(hidden) @ p["down"]


def weight(*shape):
    return torch.randn(*shape) * shape[0] ** -0.5


def train(name, model, p, x, target, steps, rate):
    def loss(p):
        return F.mse_loss(model(p, x), target)

    losses = []
    for _ in range(steps):
        grads, value = grad_and_value(loss)(p)
        p = {key: t - rate * grads[key] for key, t in p.items()}
        losses.append(value.item())
    print(f"{name}: {losses[0]:.3f} -> {losses[-1]:.3f}, {'falls' if losses[-1] < 0.8 * losses[0] else 'stays'}")


d, hidden = 32, 64
x = torch.randn(128, d)
layers = {"w1": weight(d, hidden), "b1": torch.zeros(hidden), "w2": weight(hidden, d), "b2": torch.zeros(d)}
train("mlp", mlp, layers, x, torch.sin(3 * x), 40, 2.0)
x = torch.randn(4, 24, d)
block = {"norm1": torch.ones(d), "qkv": weight(d, 3 * d), "out": weight(d, d), "norm2": torch.ones(d),
         "up": weight(d, 4 * d), "down": weight(4 * d, d)}
train("attention block", attention_block, block, x, x.roll(1, 1), 20, 2.0)
