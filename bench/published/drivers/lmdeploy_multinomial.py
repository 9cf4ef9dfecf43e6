# A token sampled from each row of probabilities by their running sums.
from harness import *
import philox
from src_lmdeploy_multinomial import _multinomial_sampling_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=5, V=1000)
    return dict(B=d.between(1, 256), V=d.pick([50, 1000, 32000, 128256]))


def make(B, V):
    scores = torch.sort(torch.softmax(torch.randn((B, V), device=DEVICE) * 3.0, dim=-1), dim=-1, descending=True)[0]
    ids = torch.arange(V, device=DEVICE, dtype=torch.int64)[None, :].repeat(B, 1)
    seeds, offsets = ints(0, 1000000, (B,), torch.int64), ints(0, 1000, (B,), torch.int64)
    out = torch.empty((B,), dtype=torch.int64, device=DEVICE)
    random = philox.uniform(philox.words(seeds, offsets)[0])

    def launch(c):
        _multinomial_sampling_kernel[(B,)](scores, seeds, offsets, ids, out, scores.stride(0), scores.stride(1), ids.stride(0),
                                           ids.stride(1), V, BLOCK_N=128, **c)

    def result():
        """The random number, if the sampled token's part of the sums has it; else the nearer end of that part."""
        upper = torch.gather(torch.cumsum(scores, dim=-1), 1, out[:, None])[:, 0]
        lower = upper - torch.gather(scores, 1, out[:, None])[:, 0]
        return [torch.minimum(torch.maximum(random, lower), upper)]

    return Case([config(1)], launch, result, lambda: [random])


main("lmdeploy_multinomial", draw, make, 1e-4)
