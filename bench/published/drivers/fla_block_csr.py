# The blocks that each query selected, turned into the queries of each block: counted, summed, scattered with atomics.
from harness import *
from src_fla_block_csr import prepare_block_csr_kernel

BLOCK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=150, H=2, S=4)
    return dict(B=d.between(1, 4), T=d.between(2048, 32768), H=d.pick([1, 2, 4]), S=16)


def make(B, T, H, S):
    blocks = triton.cdiv(T, BLOCK)
    # No block twice for a query: every STEP-th block from one at random, those behind the query left out.
    step = max(1, blocks // S)
    first = torch.randint(0, blocks, (B, T, H, 1), device=DEVICE)
    chosen = (first + step * torch.arange(S, device=DEVICE)) % max(blocks, step * S)
    own = (torch.arange(T, device=DEVICE) // BLOCK)[None, :, None, None]
    selected = torch.where(chosen <= own, chosen, -1)
    cursor = torch.zeros((B * H * blocks,), dtype=torch.int32, device=DEVICE)
    counts = torch.zeros((B * H * blocks + 1,), dtype=torch.int32, device=DEVICE)
    queries = torch.full((B * T * H * S,), -1, dtype=torch.int32, device=DEVICE)
    starts = torch.zeros((B * H * blocks + 1,), dtype=torch.int32, device=DEVICE)
    rows = max(1, min(128, triton.next_power_of_2(max(1, 2048 // S))))

    def launch(c):
        counts.zero_()
        cursor.zero_()
        grid = (triton.cdiv(T, rows), B * H)
        prepare_block_csr_kernel[grid](selected, S, None, None, cursor, queries, counts, 0, T, H=H, S=S, BT=rows, BS=BLOCK,
                                       TC=blocks, COUNT_ONLY=True, USE_BLOCK_COUNTS=False, IS_VARLEN=False, **c)
        starts.copy_(torch.cumsum(counts, dim=0))
        prepare_block_csr_kernel[grid](selected, S, None, None, cursor, queries, starts, 0, T, H=H, S=S, BT=rows, BS=BLOCK,
                                       TC=blocks, COUNT_ONLY=False, USE_BLOCK_COUNTS=False, IS_VARLEN=False, **c)

    # The order within a block is any: keys of block and query, sorted, must be the same.
    def keys():
        here = torch.arange(B * H, device=DEVICE).reshape(B, 1, H, 1) * blocks
        batch = torch.arange(B, device=DEVICE)[:, None, None, None] * T
        query = batch + torch.arange(T, device=DEVICE)[None, :, None, None] + torch.zeros_like(selected)
        return ((here + selected) * (B * T) + query)[selected >= 0]

    def expected():
        place = torch.sort(keys())[0]
        return [place // (B * T), place % (B * T)]

    def result():
        total = int(starts[B * H * blocks].item())
        owner = torch.repeat_interleave(torch.arange(B * H * blocks, device=DEVICE), starts[1:] - starts[:B * H * blocks])
        place = torch.sort(owner * (B * T) + queries[:total])[0]
        return [place // (B * T), place % (B * T)]

    return Case([config()], launch, result, expected)


main("fla_block_csr", draw, make, 0)
