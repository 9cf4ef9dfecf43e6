# Tokens' experts counted, summed and sorted into padded blocks, in four kernels of scalars.
from harness import *
from src_vllm_moe_align import (moe_align_block_size_stage1, moe_align_block_size_stage2, moe_align_block_size_stage3,
                                moe_align_block_size_stage4)


def draw(d, tiny):
    if tiny:
        return dict(T=50, E=8, TOP=2, BLOCK=16)
    return dict(T=d.between(16, 8192), E=d.pick([8, 16, 60, 64]), TOP=d.pick([2, 4, 6]), BLOCK=d.pick([16, 64, 128]))


def make(T, E, TOP, BLOCK):
    n = T * TOP
    ids = ints(0, E, (n,))
    room = n + E * (BLOCK - 1)
    order = torch.full((room,), n, dtype=torch.int32, device=DEVICE)
    owners = torch.zeros((triton.cdiv(room, BLOCK),), dtype=torch.int32, device=DEVICE)
    total, starts = [torch.zeros((k,), dtype=torch.int32, device=DEVICE) for k in (1, E + 1)]
    counts = torch.zeros((E + 1, E), dtype=torch.int32, device=DEVICE)
    each = triton.cdiv(n, E)

    def launch(c):
        counts.zero_()
        moe_align_block_size_stage1[(E,)](ids, counts, E, n, each, **c)
        moe_align_block_size_stage2[(E,)](counts, E, **c)
        moe_align_block_size_stage3[(1,)](total, counts, starts, E, BLOCK, **c)
        moe_align_block_size_stage4[(E,)](ids, order, owners, counts, starts, E, BLOCK, n, each, **c)

    def expected():
        members = (ids[:, None] == torch.arange(E, device=DEVICE)[None, :]).sum(0)
        padded = (members + BLOCK - 1) // BLOCK * BLOCK
        ends = torch.cumsum(padded, dim=0)
        places = torch.argsort(ids, stable=True)
        sorted_ids = torch.index_select(ids, 0, places).to(torch.int64)
        inside = torch.arange(n, device=DEVICE) - (torch.cumsum(members, dim=0) - members)[sorted_ids]
        row = torch.full((room,), n, dtype=torch.int64, device=DEVICE)
        row[(ends - padded)[sorted_ids] + inside] = places
        blocks = torch.arange(owners.shape[0], device=DEVICE) * BLOCK
        owner = (blocks[:, None] >= ends[None, :]).sum(-1)
        return [row, torch.where(owner < E, owner, 0), ends[E - 1:]]

    def reset():
        order.fill_(n)
        owners.zero_()

    return Case([config()], launch, lambda: [order, owners, total], expected, reset)


main("vllm_moe_align", draw, make, 1e-6)
