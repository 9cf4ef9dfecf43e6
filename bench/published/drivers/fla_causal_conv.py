# A causal convolution of four steps over each channel, with SiLU.
from harness import *
from src_fla_causal_conv import causal_conv1d_fwd_kernel

W, BT = 4, 64


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=100, D=70)
    return dict(B=d.between(1, 8), T=d.between(512, 8192), D=d.pick([1024, 2048, 2304, 4096]))


def make(B, T, D):
    x, w, b = randn(B, T, D, dtype=BF16), randn(D, W, dtype=BF16), randn(D, dtype=BF16)
    y = torch.empty_like(x)

    def launch(c):
        causal_conv1d_fwd_kernel[(triton.cdiv(D, c["BD"]), triton.cdiv(T, BT), B)](
            x, y, w, b, None, None, None, None, B, T, x.stride(0), x.stride(1), x.stride(2), D=D, W=W, BT=BT, BW=W,
            NB=triton.cdiv(B * T, 1024), ACTIVATION="silu", HAS_WEIGHT=True, HAS_BIAS=True, HAS_RESIDUAL=False,
            USE_INITIAL_STATE=False, IS_VARLEN=False, **c)

    def expected():
        padded = torch.zeros((B, T + W - 1, D), device=DEVICE)
        padded[:, W - 1:] = x.float()
        total = b.float()[None, None, :]
        for i in range(W):
            total = total + padded[:, i:i + T] * w[:, i].float()[None, None, :]
        return [total * torch.sigmoid(total)]

    return Case([config(w_, BD=n) for n, w_ in ((32, 4), (64, 4), (128, 8))], launch, lambda: [y], expected)


main("fla_causal_conv", draw, make, 0.01)
