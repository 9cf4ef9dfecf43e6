"""Steps of a language model by backward() and AdamW: the same program for Kiln and for PyTorch, on a GPU.

    kiln language_model.py [COLUMNS BLOCKS LENGTH BATCH DTYPE WARM STEPS] [graph]
    python3 language_model.py [the same] [eager | compile | graph]

Heads have 64 columns, the vocabulary 8192 symbols. Prints the seconds of the first step, with compilation, the
milliseconds of a step after WARM more, calls included, the first and the last loss, and the most memory of tensors.
`graph` records a step in a CUDA graph after WARM steps and replays it.
"""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

torch.set_default_device("cuda")


class Block(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(columns), nn.LayerNorm(columns)
        self.qkv, self.proj = nn.Linear(columns, 3 * columns), nn.Linear(columns, columns)
        self.up, self.down = nn.Linear(columns, 4 * columns), nn.Linear(4 * columns, columns)

    def forward(self, x):
        batch, length, columns = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(columns, dim=2)
        q, k, v = (t.view(batch, length, columns // 64, 64).transpose(1, 2) for t in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).contiguous().view(batch, length, columns))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, symbols, columns, blocks, length):
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, columns), nn.Embedding(length, columns)
        self.blocks = nn.ModuleList([Block(columns) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(columns), nn.Linear(columns, symbols, bias=False)
        self.head.weight = self.symbols.weight

    def forward(self, x, next_ones):
        h = self.symbols(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        logits = self.head(self.norm(h))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), next_ones.reshape(-1))


arguments = sys.argv[1:]
how = arguments.pop() if arguments and arguments[-1] in ("eager", "compile", "graph") else "as it is"
columns, blocks, length, batch, dtype, warm, steps = arguments or [768, 8, 512, 8, "bfloat16", 5, 20]
columns, blocks, length, batch, warm, steps = [int(n) for n in (columns, blocks, length, batch, warm, steps)]
torch.manual_seed(1)
model = Model(8192, columns, blocks, length).to(getattr(torch, dtype))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=how == "graph")
run = torch.compile(model) if how == "compile" else model
text = torch.randint(0, 8192, (batch, length + 1))


def step():
    optimizer.zero_grad()
    loss = run(text[:, :-1], text[:, 1:])
    loss.backward()
    optimizer.step()
    return loss


start = time.time()
first = step().item()
first_s = time.time() - start
if how == "graph":
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = step()

    def step():
        graph.replay()
        return recorded
else:
    for _ in range(warm):
        step()
torch.cuda.synchronize()
start = time.time()
for _ in range(steps):
    last = step()
torch.cuda.synchronize()
each_ms = (time.time() - start) / steps * 1e3
print("%d blocks of %d columns, %d x %d symbols, %s, %s:" % (blocks, columns, batch, length, dtype, how),
      "first step %.2f s, then %.2f ms; loss %.4f to %.4f;" % (first_s, each_ms, first, last.item()),
      "%.2f GB" % (torch.cuda.max_memory_allocated() / 1e9))
