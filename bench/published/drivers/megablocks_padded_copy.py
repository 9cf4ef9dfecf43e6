# Tokens scaled and copied to the rows of their experts, each expert's padded to blocks of 128.
from harness import *
from src_megablocks_padded_copy import _padded_copy


def draw(d, tiny):
    if tiny:
        return dict(T=50, E=8, TOP=2, D=256)
    return dict(T=d.between(256, 16384), E=d.pick([8, 32, 64]), TOP=d.pick([1, 2, 4]), D=d.pick([1024, 2048, 4096]))


def make(T, E, TOP, D):
    n = T * TOP
    ids = torch.randint(0, E, (n,), device=DEVICE)
    order = torch.argsort(ids, stable=True)
    owners = torch.index_select(ids, 0, order)
    counts = (ids[:, None] == torch.arange(E, device=DEVICE)[None, :]).sum(0)
    bins, padded = torch.cumsum(counts, dim=0), torch.cumsum((counts + 127) // 128 * 128, dim=0)
    x, weights = randn(T, D, dtype=BF16), torch.rand((n,), device=DEVICE).to(BF16)
    y = torch.zeros((n + E * 127, D), dtype=BF16, device=DEVICE)
    indices, bin_ids, ends, padded_ends = [t.to(torch.int32) for t in (order, owners, bins, padded)]
    starts = (padded - (counts + 127) // 128 * 128) - (bins - counts)
    rows = torch.arange(n, device=DEVICE) + torch.index_select(starts, 0, owners)

    def launch(c):
        _padded_copy[(n,)](x, y, indices, bin_ids, weights, ends, padded_ends, NUM_COLUMNS=D, A_TO_B=True, TOP_K=TOP,
                           SCALE=True, **c)

    def expected():
        return [torch.index_select(x, 0, order // TOP).float() * torch.index_select(weights, 0, order).float()[:, None]]

    configs = [config(w, BLOCK_X=b) for b, w in ((64, 2), (256, 2), (256, 4))]
    return Case(configs, launch, lambda: [torch.index_select(y, 0, rows)], expected)


main("megablocks_padded_copy", draw, make, 0.01)
