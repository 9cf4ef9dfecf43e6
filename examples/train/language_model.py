"""Trains a small language model by backward() and AdamW: `kiln run examples/train/language_model.py`, or python3 with
PyTorch.

The text is arithmetic: after "a+b=" stands the sum of two digits. A step's loss, gradients and updates are one plan.
"""
import torch
import torch.nn.functional as F
from torch import nn

SYMBOLS = "0123456789+="


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = (part.view(b, t, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LanguageModel(nn.Module):
    def __init__(self, width=32, heads=4, blocks=2, length=6):
        super().__init__()
        self.symbol, self.place = nn.Embedding(len(SYMBOLS), width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, len(SYMBOLS))

    def forward(self, text):
        x = self.symbol(text) + self.place(torch.arange(text.shape[1], device=text.device))
        return self.head(self.norm(self.blocks(x)))


def sums():
    """All sums of two digits, as places in SYMBOLS: "3+4=07"."""
    rows = [f"{a}+{b}={a + b:02d}" for a in range(10) for b in range(10)]
    return torch.tensor([[SYMBOLS.index(c) for c in row] for row in rows])


torch.manual_seed(0)
text = sums()
model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
losses = []
for step in range(60):
    optimizer.zero_grad()
    logits = model(text[:, :-1])
    # The two digits of the sum: what is before them cannot be known.
    loss = F.cross_entropy(logits[:, 3:].reshape(-1, len(SYMBOLS)), text[:, 4:].reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
print(f"language model: {losses[0]:.3f} -> {losses[-1]:.3f}, {'falls' if losses[-1] < 0.5 * losses[0] else 'stays'}")
