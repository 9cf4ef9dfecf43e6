# States of chunks passed on, one after the other, each scaled by its chunk's decay.
from harness import *
from src_mamba_state_passing import _state_passing_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, CHUNKS=5, H=3, D=300)
    return dict(B=d.between(1, 8), CHUNKS=d.between(2, 64), H=d.pick([24, 64, 80]), D=d.pick([4096, 8192, 16384]))


def make(B, CHUNKS, H, D):
    states = torch.randn((B, CHUNKS, H, D), device=DEVICE)
    decay = -torch.rand((B, H, CHUNKS), device=DEVICE)
    out, final = torch.empty_like(states), torch.empty((B, H, D), device=DEVICE)

    def launch(c):
        _state_passing_fwd_kernel[(triton.cdiv(D, c["BLOCK_SIZE"]), B, H)](
            states, out, final, decay, None, None, D, CHUNKS, 0, 0, states.stride(0), states.stride(1), states.stride(2),
            states.stride(3), out.stride(0), out.stride(1), out.stride(2), out.stride(3), final.stride(0), final.stride(1),
            final.stride(2), decay.stride(0), decay.stride(2), decay.stride(1), 0, 0, 0, 0, 0, HAS_INITSTATES=False,
            HAS_SEQ_IDX=False, **c)

    def expected():
        state, passed = torch.zeros((B, H, D), device=DEVICE), []
        for i in range(CHUNKS):
            passed.append(state)
            state = state * torch.exp(decay[:, :, i])[:, :, None] + states[:, i]
        return [torch.stack(passed, dim=1), state]

    return Case([config(BLOCK_SIZE=b) for b in (64, 256, 1024)], launch, lambda: [out, final], expected)


main("mamba_state_passing", draw, make, 1e-3)
