# Each token's difference to the one in front of it.
from harness import *
from src_fla_token_shift import token_shift_fwd_kernel_short


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=30, D=200)
    return dict(B=d.between(1, 16), T=d.between(256, 4096), D=d.pick([768, 1024, 2048, 2560, 4096]))


def make(B, T, D):
    x = randn(B, T, D, dtype=BF16)
    y, last = torch.empty_like(x), empty(B, D, dtype=BF16)

    def launch(c):
        token_shift_fwd_kernel_short[(B, T)](x, y, None, None, last, T, D=D, BD=triton.next_power_of_2(D), IS_VARLEN=False,
                                             USE_INITIAL_STATE=False, STORE_FINAL_STATE=True, IS_DECODE=False, **c)

    def expected():
        before = torch.zeros((B, T, D), device=DEVICE)
        before[:, 1:] = x[:, :T - 1].float()
        return [before - x.float(), x[:, T - 1]]

    return Case([config(w, s) for w, s in ((1, 1), (4, 2), (8, 3))], launch, lambda: [y, last], expected)


main("fla_token_shift", draw, make, 0.01)
