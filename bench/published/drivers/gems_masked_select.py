# The elements that a mask picks, close together: rows of blocks counted, the last program sums, all write.
from harness import *
from src_gems_masked_select import mask_part_sum_kernel, write_back_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=7001, SHARE=3)
    return dict(N=d.between(1048576, 67108864), SHARE=d.pick([2, 10, 100]))


def make(N, SHARE):
    x, mask = randn(N, dtype=BF16), ints(0, SHARE, (N,)) == 0
    block = min(4096, max(128, triton.next_power_of_2(N)))
    blocks = triton.cdiv(N, block)
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 2
    each = triton.cdiv(blocks, min(blocks, count))
    rows = triton.cdiv(blocks, each)
    room = triton.next_power_of_2(rows)
    sums = torch.empty((rows + 1,), dtype=torch.int32, device=DEVICE)
    arrived = torch.zeros((1,), dtype=torch.int32, device=DEVICE)
    total = int(mask.sum().item())
    y = empty(total, dtype=BF16)

    def launch(c):
        arrived.zero_()
        mask_part_sum_kernel[(rows,)](x, mask, sums, arrived, N, blocks, each, NP_BLOCK=room, BLOCK_SIZE=block, **c)
        write_back_kernel[(rows,)](x, mask, sums, y, N, blocks, each, NP_BLOCK=room, BLOCK_SIZE=block, **c)

    return Case([config(min(16, block // 32))], launch, lambda: [y, sums[rows:]],
                lambda: [torch.masked_select(x, mask), torch.full((1,), total, device=DEVICE)])


main("gems_masked_select", draw, make, 0)
