# Tokens sorted by expert, as the kernels of mixtures of experts want them.
from harness import *


class Routing:
    """`top` experts at random for each token; for each size of blocks the padded order of the (token, expert) pairs."""

    def __init__(self, tokens, experts, top):
        self.pairs = tokens * top
        self.experts, self.top = experts, top
        # By this draw, and not by torch's generator, so that both sides fill the same number of blocks.
        d = Draw(tokens, experts, "routing to %d" % top)
        self.ids = [d.next() % experts for _ in range(self.pairs)]
        self.members = [[] for _ in range(experts)]
        for i, e in enumerate(self.ids):
            self.members[e].append(i)
        self.blocks = {}

    def by_block(self, block):
        """(sorted pairs, expert of each block, number of sorted pairs), padded as moe_align_block_size does."""
        if block not in self.blocks:
            order, owners = [], []
            for e, pairs in enumerate(self.members):
                count = triton.cdiv(len(pairs), block)
                order += pairs + [self.pairs] * (count * block - len(pairs))
                owners += [e] * count
            total = len(order)
            room = self.pairs + self.experts * (block - 1)
            order += [self.pairs] * (room - total)
            owners += [0] * (triton.cdiv(room, block) - len(owners))
            self.blocks[block] = [torch.tensor(t, dtype=torch.int32, device=DEVICE) for t in (order, owners, [total])]
        return self.blocks[block]

    def rows(self, tokens, block):
        """Rows that the grid covers: small batches do not fill a block of each expert."""
        length = self.pairs + self.experts * (block - 1)
        return min(length, tokens * self.top * block) if tokens < block else length

    def some(self):
        """Two experts that have tokens: (expert, its pairs as an index)."""
        busy = [e for e in range(self.experts) if len(self.members[e]) > 0]
        return [(e, torch.tensor(self.members[e], dtype=torch.int64, device=DEVICE)) for e in (busy[0], busy[-1])]
