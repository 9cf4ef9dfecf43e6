# Tokens sorted by expert: histograms with atomics, sums, and a sort with a segmented scan in each tile.
from harness import *
from src_liger_moe_router import (_moe_router_histogram_kernel, _moe_router_prefix_sum_kernel,
                                  _moe_router_scatter_kernel)

ROWS = 128


def draw(d, tiny):
    if tiny:
        return dict(T=300, E=8, TOP=3)
    return dict(T=d.between(256, 32768), E=d.pick([8, 60, 64, 128]), TOP=d.pick([2, 4, 6, 8]))


def make(T, E, TOP):
    ids = ints(0, E, (T, TOP))
    width, experts = triton.next_power_of_2(TOP), triton.next_power_of_2(E)
    tokens = max(1, 1024 // width)
    tiles = triton.cdiv(T, tokens)
    counts = torch.empty((E, tiles), dtype=torch.int32, device=DEVICE)
    starts, tile_starts = [torch.empty((E + 1,), dtype=torch.int32, device=DEVICE) for _ in range(2)]
    members = (ids.reshape(T * TOP, 1) == torch.arange(E, device=DEVICE)[None, :]).sum(0).to(torch.int32)
    blocks = (members + ROWS - 1) // ROWS
    total = int(blocks.sum().item())
    block_starts, block_experts = [torch.empty((total,), dtype=torch.int32, device=DEVICE) for _ in range(2)]
    order, places, rows = [torch.empty((T * TOP,), dtype=torch.int32, device=DEVICE) for _ in range(3)]

    def launch(c):
        _moe_router_histogram_kernel[(tiles,)](ids, counts, T, E=E, n_tiles=tiles, TOKENS_PER_TILE=tokens, K_POW2=width,
                                               K=TOP, E_POW2=experts, **c)
        sums = counts.sum(1).to(torch.int32)
        _moe_router_prefix_sum_kernel[(E + 2,)](sums, starts, tile_starts, E=E, partial_sum_ptr=counts, n_tiles=tiles,
                                                TK=T * TOP, BLOCK_M=128, BLOCK_N=experts, BLOCK_M_TOKEN=ROWS, **c)
        _moe_router_scatter_kernel[(tiles,)](order, places, rows, block_starts, block_experts, ids, T, counts, tiles, starts,
                                             tile_starts, K_POW2=width, K=TOP, TOKENS_PER_BLOCK=tokens, BLOCK_M_TOKEN=ROWS,
                                             **c)

    def expected():
        flat = ids.reshape(T * TOP)
        inorder = torch.argsort(flat, stable=True)
        ends = torch.cumsum(blocks, dim=0)
        block = torch.arange(total, device=DEVICE)
        owner = (block[:, None] >= ends[None, :]).sum(-1)
        first = torch.cumsum(members, dim=0) - members
        inside = block - (ends - blocks)[owner]
        return [inorder, inorder // TOP, torch.argsort(inorder), first, owner, first[owner] + inside * ROWS]

    return Case([config()], launch, lambda: [order, rows, places, starts[:E], block_experts, block_starts], expected)


main("liger_moe_router", draw, make, 0)
