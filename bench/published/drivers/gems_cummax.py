# Running maxima and their places: a scan of pairs in each block, one of the blocks' maxima, and both joined.
from harness import *
from src_gems_cummax import add_base_max_kernel, scan_part_max_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=5000)
    # One program scans the maxima of all blocks.
    return dict(N=d.between(100000, 4000000))


def make(N):
    # Whole numbers, so that there are equals, of which the last counts.
    x = ints(0, 1000000, (N,)).to(torch.float32)
    block = 1024
    parts = triton.cdiv(N, block)
    y, best = torch.empty_like(x), torch.empty((parts,), device=DEVICE)
    places = torch.empty((N,), dtype=torch.int64, device=DEVICE)
    best_places = torch.empty((parts,), dtype=torch.int64, device=DEVICE)

    def launch(c):
        scan_part_max_kernel[(parts,)](x, y, None, places, best, best_places, N, block, True, False, **c)
        scan_part_max_kernel[(1,)](best, best, None, best_places, None, None, parts, triton.next_power_of_2(parts), False,
                                   True, **c)
        add_base_max_kernel[(parts,)](y, places, best, best_places, N, block, **c)

    def expected():
        top, at = torch.cummax(x, dim=0)
        return [top, at]

    return Case([config(4), config(8)], launch, lambda: [y, places], expected)


main("gems_cummax", draw, make, 0)
