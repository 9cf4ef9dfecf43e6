# The log-probability of the token that was taken, for GRPO: one pass over a vocabulary by one warp.
from harness import *
from src_liger_selective_log_softmax import _selective_log_softmax_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, L=5, V=5000)
    return dict(B=d.between(1, 8), L=d.between(128, 1024), V=d.pick([32000, 50257, 151936]))


def make(B, L, V):
    logits, ids = randn(B, L + 1, V, dtype=BF16), torch.randint(0, V, (B, L), device=DEVICE)
    out = torch.empty((B, L), device=DEVICE)

    def launch(c):
        _selective_log_softmax_kernel[(B, L)](logits, ids, out, None, 0.9, ids.stride(0), L, V, BLOCK_N=2048, **c)

    def expected():
        x = logits[:, :L, :].float() / 0.9
        return [torch.gather(x, 2, ids[:, :, None])[:, :, 0] - torch.logsumexp(x, dim=-1)]

    return Case([config(1, 4)], launch, lambda: [out], expected)


main("liger_selective_log_softmax", draw, make, 1e-3)
