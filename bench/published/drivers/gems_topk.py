# The largest k of each chunk of 1024 elements, one maximum after the other: the first stage of a top-k.
from harness import *
from src_gems_topk import topk_stage1_kernel

CHUNK = 1024


def draw(d, tiny):
    if tiny:
        return dict(B=3, N=3000, TOP=4)
    return dict(B=d.between(1, 256), N=d.between(4096, 131072), TOP=d.pick([5, 8, 20, 50]))


def make(B, N, TOP):
    x = torch.randn((B, N), device=DEVICE)
    chunks = triton.cdiv(N, CHUNK)
    y = torch.empty((B, chunks, TOP), device=DEVICE)
    places = torch.empty((B, chunks, TOP), dtype=torch.int64, device=DEVICE)

    def launch(c):
        topk_stage1_kernel[(B, chunks)](y, places, x, TOP, N, CHUNK, True, **c)

    def expected():
        # The last chunk may have fewer elements than k.
        whole = N // CHUNK
        values = torch.topk(x[:, :whole * CHUNK].reshape(B, whole, CHUNK), TOP, dim=-1)[0]
        return [values, values]

    def result():
        whole = N // CHUNK
        picked = torch.gather(x, 1, places[:, :whole].reshape(B, whole * TOP)).reshape(B, whole, TOP)
        return [y[:, :whole], picked]

    return Case([config()], launch, result, expected)


main("gems_topk", draw, make, 1e-6)
