# Rows of heads divided by their norm.
from harness import *
from src_fla_l2norm import l2norm_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=150, D=100)
    return dict(T=d.between(4096, 262144), D=d.pick([64, 96, 128, 256]))


def make(T, D):
    x, rstd = randn(T, D, dtype=BF16), torch.empty((T,), dtype=torch.float32, device=DEVICE)
    y = torch.empty_like(x)

    def launch(c):
        l2norm_fwd_kernel[(triton.cdiv(T, c["BT"]),)](x=x, y=y, rstd=rstd, eps=1e-6, T=T, D=D, BD=triton.next_power_of_2(D),
                                                      NB=triton.cdiv(T, 65536), **c)

    def expected():
        f = x.float()
        r = 1 / torch.sqrt((f * f).sum(-1) + 1e-6)
        return [f * r[:, None], r]

    return Case([config(w, BT=bt) for bt, w in [(16, 4), (32, 8), (8, 1), (64, 16)]], launch, lambda: [y, rstd], expected)


main("fla_l2norm", draw, make, 0.01)
