# Samples scaled and added to those that an index picks.
from harness import *
from src_xformers_index_add import scaled_index_add_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=5, K=3, R=20, D=700)
    return dict(B=d.between(16, 128), K=d.between(4, 16), R=d.between(64, 1024), D=d.pick([384, 768, 1024, 1536]))


def make(B, K, R, D):
    x0, source, scale = randn(B, R, D, dtype=BF16), randn(K, R, D, dtype=BF16), randn(D, dtype=BF16)
    x = x0.clone()
    index = torch.randperm(B, device=DEVICE)[:K]

    def launch(c):
        scaled_index_add_fwd_kernel[(K, R, triton.cdiv(D, 512))](
            x, index, source, scale, 0.5, B, K, R, D, x.stride(0), x.stride(1), x.stride(2), BLOCK_SIZE_INDEX=1,
            BLOCK_SIZE_ROW=1, BLOCK_SIZE_COL=512, HAS_SCALING=True, **c)

    def expected():
        return [x0.float().index_add_(0, index, source.float() * scale.float() * 0.5)]

    return Case([config()], launch, lambda: [x], expected, lambda: x.copy_(x0))


main("xformers_index_add", draw, make, 0.01)
