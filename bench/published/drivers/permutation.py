# Where each token's rows go when they are sorted by expert, as the kernels of TransformerEngine want it.
from harness import *


class Permutation:
    """`top` different experts at random for each token: `rows` by (token, place), and the map of both."""

    def __init__(self, tokens, experts, top):
        ids = torch.topk(torch.rand((tokens, experts), device=DEVICE), top, dim=-1)[1]
        self.order = torch.argsort(ids.reshape(tokens * top), stable=True)
        rows = torch.empty((tokens * top,), dtype=torch.int64, device=DEVICE)
        rows[self.order] = torch.arange(tokens * top, device=DEVICE)
        self.ids, self.rows = ids, rows.reshape(tokens, top)
        self.map = torch.zeros((tokens, 2 * experts + 1), dtype=torch.int32, device=DEVICE)
        self.map[:, :top] = self.rows.to(torch.int32)
        self.map[:, experts:experts + top] = ids.to(torch.int32)
        self.map[:, 2 * experts] = top
