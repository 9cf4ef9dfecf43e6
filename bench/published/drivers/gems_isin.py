# Whether each element is among those of a sorted array, by binary search.
from harness import *
from src_gems_isin import isin_by_search_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=3000, N=700, WIDE=1)
    return dict(M=d.between(65536, 8388608), N=d.between(1024, 1048576), WIDE=d.pick([0, 1]))


def make(M, N, WIDE):
    dtype = torch.int64 if WIDE else torch.int32
    x = ints(0, 4 * N, (M,), dtype)
    among, _ = torch.sort(ints(0, 4 * N, (N,), dtype))
    out = torch.zeros((M,), dtype=torch.bool, device=DEVICE)
    block, warps = (512, 8) if M <= 1048576 else (1024, 8) if M <= 4194304 else (2048, 16)
    programs = min(65536, triton.cdiv(M, block))
    steps = int(math.log2(N)) + 1

    def launch(c):
        isin_by_search_kernel[(programs,)](x, among, out, M, N, steps, block,
                                           tiles_per_cta=triton.cdiv(M, block * programs), invert=False, **c)

    def expected():
        place = torch.searchsorted(among, x).clamp(max=N - 1)
        return [(among[place] == x).float()]

    return Case([config(warps)], launch, lambda: [out], expected)


main("gems_isin", draw, make, 1e-6)
