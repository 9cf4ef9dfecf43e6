# Two partial results of attention merged by their logarithms of sums.
from harness import *
from src_merge_states import merge_attn_states_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=20, H=3, D=96)
    return dict(T=d.between(256, 8192), H=d.pick([8, 16, 32]), D=d.pick([64, 96, 128]))


def make(T, H, D):
    a, b, o = randn(T, H, D, dtype=BF16), randn(T, H, D, dtype=BF16), empty(T, H, D, dtype=BF16)
    la, lb = torch.randn((H, T), device=DEVICE), torch.randn((H, T), device=DEVICE)
    lo = torch.empty_like(la)

    def launch(c):
        merge_attn_states_kernel[(T, H)](o, lo, a, la, b, lb, D, triton.next_power_of_2(D), True, **c)

    def expected():
        total = torch.log(torch.exp(la) + torch.exp(lb))
        wa, wb = torch.exp(la - total).T[:, :, None], torch.exp(lb - total).T[:, :, None]
        return [a.float() * wa + b.float() * wb, total]

    return Case([config()], launch, lambda: [o, lo], expected)


main("merge_states", draw, make, 0.01)
