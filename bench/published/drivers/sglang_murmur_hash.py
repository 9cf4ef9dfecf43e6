# MurmurHash of a seed, a position and a column for every column: numbers for sampling that repeat.
from harness import *
from src_sglang_murmur_hash import murmur_hash32_kernel

LOW = 4294967295


def draw(d, tiny):
    if tiny:
        return dict(N=3, M=3000)
    return dict(N=d.between(1, 256), M=d.pick([32000, 50257, 128256]))


def mixed(h, k):
    k = (k * 3432918353) & LOW
    k = ((k << 15) | (k >> 17)) & LOW
    h = h ^ ((k * 461845907) & LOW)
    h = ((h << 13) | (h >> 19)) & LOW
    return (h * 5 + 3864292196) & LOW


def make(N, M):
    seeds = ints(0, 2000000000, (N,), torch.int64) * 16 + 5
    positions, columns = ints(0, 100000, (N,), torch.int64), torch.arange(M, device=DEVICE, dtype=torch.int64)
    y = torch.empty((N, M), dtype=torch.uint32, device=DEVICE)

    def launch(c):
        murmur_hash32_kernel[(N, triton.cdiv(M, 1024))](seeds, positions, columns, y, N, M, BLOCK_SIZE=1024, **c)

    def expected():
        h = mixed(mixed(mixed(0, seeds & LOW), seeds >> 32), positions)
        h = mixed(h[:, None], columns[None, :]) ^ 16
        h = ((h ^ (h >> 16)) * 2246822507) & LOW
        h = ((h ^ (h >> 13)) * 3266489909) & LOW
        return [h ^ (h >> 16)]

    return Case([config()], launch, lambda: [y.to(torch.int64)], expected)


main("sglang_murmur_hash", draw, make, 1e-6)
