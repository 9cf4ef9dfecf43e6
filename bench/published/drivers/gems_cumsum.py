# A scan of long rows in three kernels: sums of blocks, their scan, scans of blocks.
from harness import *
from src_gems_cumsum import (reduce_then_scan_block_scan_kernel_row, reduce_then_scan_block_sum_kernel_row,
                             reduce_then_scan_root_scan_kernel_row)

TILE = 4096


def draw(d, tiny):
    if tiny:
        return dict(M=2, N=20000)
    return dict(M=d.between(1, 64), N=d.between(32768, 1048576))


def make(M, N):
    x, y = torch.randn((M, N), device=DEVICE), torch.empty((M, N), device=DEVICE)
    tiles = triton.cdiv(N, TILE)
    count = min(tiles, 4 * (torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 1))
    each = triton.cdiv(tiles, count)
    sums, prefixes = torch.empty((M, count), device=DEVICE), torch.empty((M, count), device=DEVICE)

    def launch(c):
        reduce_then_scan_block_sum_kernel_row[(M, count, 1)](x, sums, N, each, TILE, **c)
        reduce_then_scan_root_scan_kernel_row[(M, 1, 1)](sums, prefixes, count, triton.next_power_of_2(count), **c)
        reduce_then_scan_block_scan_kernel_row[(M, count, 1)](x, prefixes, y, N, count, each, TILE, **c)

    return Case([config(8)], launch, lambda: [y], lambda: [torch.cumsum(x.double(), dim=-1)])


main("gems_cumsum", draw, make, 1e-4)
