# One step of a causal convolution for each sequence of a batch, its last inputs shifted.
from harness import *
from src_fla_conv_update import causal_conv1d_update_kernel

W = 4


def draw(d, tiny):
    if tiny:
        return dict(N=3, D=70)
    return dict(N=d.between(1, 512), D=d.pick([1024, 2048, 4096, 8192]))


def make(N, D):
    x, w, b = randn(N, D, dtype=BF16), randn(D, W, dtype=BF16), randn(D, dtype=BF16)
    cache0, y = randn(N, D, W, dtype=BF16), torch.empty_like(x)
    cache = cache0.clone()

    def launch(c):
        causal_conv1d_update_kernel[(triton.cdiv(D, c["BD"]) * N,)](
            x, cache, None, y, w, b, x.stride(0), x.stride(1), y.stride(0), y.stride(1), D=D, W=W, BW=W, ACTIVATION="silu",
            USE_INITIAL_STATE=True, HAS_WEIGHT=True, HAS_BIAS=True, HAS_RESIDUAL=False, **c)

    def expected():
        new = torch.cat([cache0[:, :, 1:], x[:, :, None]], dim=-1).float()
        total = (new * w.float()[None, :, :]).sum(-1) + b.float()
        return [total * torch.sigmoid(total), new]

    configs = [config(w_, BD=n) for n, w_ in ((32, 4), (128, 4), (256, 8))]
    return Case(configs, launch, lambda: [y, cache], expected, lambda: cache.copy_(cache0))


main("fla_conv_update", draw, make, 0.01)
