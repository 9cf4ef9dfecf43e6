# A gated recurrence over chunks of a sequence, and the sums of its gates.
from harness import *
from src_fla_hgrn import chunk_hgrn_fwd_kernel_h

BT = 128


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=150, D=96)
    return dict(B=d.pick([1, 2, 4, 8]), T=d.between(512, 8192), D=d.pick([512, 1024, 2048]))


def make(B, T, D):
    x, g = randn(B, T, D, dtype=BF16), torch.nn.functional.logsigmoid(torch.randn((B, T, D), device=DEVICE)).to(BF16)
    sums, o = torch.empty((B, T, D), device=DEVICE), torch.empty((B, T, D), device=DEVICE)

    def launch(c):
        chunk_hgrn_fwd_kernel_h[(triton.cdiv(D, c["BD"]), triton.cdiv(T, BT), B)](
            x, g, sums, o, None, T, D=D, BT=BT, USE_INITIAL_STATE=False, **c)

    def expected():
        h, states = torch.zeros((B, D), device=DEVICE), []
        for t in range(min(T, BT)):
            h = torch.exp(g[:, t].float()) * h + x[:, t].float()
            states.append(h)
        return [torch.stack(states, dim=1), torch.cumsum(g[:, :BT].float(), dim=1)]

    configs = [config(w, BD=bd) for bd, w in ((32, 1), (64, 1), (64, 2), (128, 2), (128, 4), (128, 8))]
    return Case(configs, launch, lambda: [o[:, :BT], sums[:, :BT]], expected)


main("fla_hgrn", draw, make, 1e-3)
