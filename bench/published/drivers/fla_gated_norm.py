# RMS norm of heads with a SiLU gate behind it, several rows in a program.
from harness import *
from src_fla_gated_norm import layer_norm_gated_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=70, D=100)
    return dict(T=d.between(4096, 262144), D=d.pick([64, 128, 256, 512]))


def make(T, D):
    x, g, w = randn(T, D, dtype=BF16), randn(T, D, dtype=BF16), randn(D, dtype=BF16)
    y, rstd = torch.empty_like(x), torch.empty((T,), device=DEVICE)

    def launch(c):
        layer_norm_gated_fwd_kernel[(triton.cdiv(T, c["BT"]),)](
            x, g, y, w, None, None, None, None, rstd, 1e-5, T, D=D, BD=triton.next_power_of_2(D), NB=triton.cdiv(T, 2048),
            ACTIVATION="swish", IS_RMS_NORM=True, STORE_RESIDUAL_OUT=False, HAS_RESIDUAL=False, HAS_WEIGHT=True,
            HAS_BIAS=False, **c)

    def expected():
        f, gate = x.float(), g.float()
        r = 1 / torch.sqrt((f * f).mean(-1) + 1e-5)
        return [f * r[:, None] * w.float() * gate * torch.sigmoid(gate), r]

    return Case([config(w_, BT=t) for t, w_ in ((16, 4), (32, 4), (64, 8))], launch, lambda: [y, rstd], expected)


main("fla_gated_norm", draw, make, 0.01)
