# Cross entropy of rows that fit into one block.
from harness import *
from src_unsloth_cross_entropy import _cross_entropy_forward


def draw(d, tiny):
    if tiny:
        return dict(N=6, V=3000)
    return dict(N=d.between(64, 8192), V=d.pick([32000, 50257, 65024]))


def make(N, V):
    logits, y = randn(N, V, dtype=BF16), torch.randint(0, V, (N,), device=DEVICE)
    loss, lse = torch.empty((N,), device=DEVICE), torch.empty((N,), device=DEVICE)
    block, warps = row_settings(V)

    def launch(c):
        _cross_entropy_forward[(N,)](logits, logits.stride(0), loss, lse, y, VOCAB_SIZE=V, BLOCK_SIZE=block,
                                     DO_SOFTCAPPING=False, SOFTCAP=0.0, DO_LOGIT_SCALING=False, LOGIT_SCALE=0.0, **c)

    def expected():
        total = torch.logsumexp(logits.float(), dim=-1)
        return [total - torch.gather(logits, 1, y[:, None])[:, 0].float(), total]

    return Case([config(warps)], launch, lambda: [loss, lse], expected)


main("unsloth_cross_entropy", draw, make, 1e-3)
