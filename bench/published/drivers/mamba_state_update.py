# One step of Mamba's state for each sequence of a batch.
from harness import *
from src_mamba_state_update import _selective_scan_update_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, H=3, D=60, S=16)
    return dict(B=d.between(1, 256), H=d.pick([8, 24, 64]), D=64, S=d.pick([16, 64, 128]))


def make(B, H, D, S):
    state0 = torch.randn((B, H, D, S), device=DEVICE)
    state = state0.clone()
    x, dt = randn(B, H, D, dtype=BF16), randn(B, H, D, dtype=BF16, scale=0.3)
    bias, skip = torch.rand((H, D), device=DEVICE), torch.rand((H, D), device=DEVICE)
    a = -torch.rand((H, D, S), device=DEVICE)
    b, c_mat, z = randn(B, 1, S, dtype=BF16), randn(B, 1, S, dtype=BF16), randn(B, H, D, dtype=BF16)
    out = torch.empty_like(x)
    rows, warps = (32, 4) if S <= 16 else (16, 4) if S <= 32 else (8, 4) if S <= 64 else (4, 4)

    def launch(c):
        _selective_scan_update_kernel[(triton.cdiv(D, rows), B, H)](
            state, x, dt, bias, a, b, c_mat, skip, z, out, None, B, H, D, S, H, state.stride(0), state.stride(1),
            state.stride(2), state.stride(3), x.stride(0), x.stride(1), x.stride(2), dt.stride(0), dt.stride(1), dt.stride(2),
            bias.stride(0), bias.stride(1), a.stride(0), a.stride(1), a.stride(2), b.stride(0), b.stride(1), b.stride(2),
            c_mat.stride(0), c_mat.stride(1), c_mat.stride(2), skip.stride(0), skip.stride(1), z.stride(0), z.stride(1),
            z.stride(2), out.stride(0), out.stride(1), out.stride(2), True, False, rows, HAS_DT_BIAS=True, HAS_D=True,
            HAS_Z=True, HAS_STATE_BATCH_INDICES=False, BLOCK_SIZE_DSTATE=triton.next_power_of_2(S), **c)

    def expected():
        step = torch.nn.functional.softplus(dt.float() + bias)
        new = state0 * torch.exp(a * step[:, :, :, None])
        new = new + b.float()[:, :, None, :] * (step * x.float())[:, :, :, None]
        y = (new * c_mat.float()[:, :, None, :]).sum(-1) + x.float() * skip
        return [new, y * z.float() * torch.sigmoid(z.float())]

    return Case([config(warps)], launch, lambda: [state, out], expected, lambda: state.copy_(state0))


main("mamba_state_update", draw, make, 0.01)
