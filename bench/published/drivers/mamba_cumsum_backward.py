# The gradients of the steps behind a softplus, of A and of the steps' bias, added over chunks with atomics.
from harness import *
from src_mamba_cumsum_backward import _chunk_cumsum_bwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=150, H=6, CHUNK=64)
    return dict(B=d.between(1, 8), T=d.between(1024, 16384), H=d.pick([24, 64, 80, 128]), CHUNK=d.pick([128, 256]))


def make(B, T, H, CHUNK):
    n = triton.cdiv(T, CHUNK)
    dda, ddt_out = [torch.randn((B, H, n, CHUNK), device=DEVICE) for _ in range(2)]
    dt, bias = randn(B, T, H, dtype=BF16), torch.randn((H,), device=DEVICE)
    a = -torch.exp(torch.randn((H,), device=DEVICE))
    ddt, da, dbias = torch.empty_like(dt), torch.empty((H,), device=DEVICE), torch.empty((H,), device=DEVICE)

    def launch(c):
        _chunk_cumsum_bwd_kernel[(B, n, triton.cdiv(H, c["BLOCK_SIZE_H"]))](
            dda, ddt_out, dt, a, bias, ddt, da, dbias, B, T, H, CHUNK, 0.0, float("inf"),
            dda.stride(0), dda.stride(2), dda.stride(1), dda.stride(3),
            ddt_out.stride(0), ddt_out.stride(2), ddt_out.stride(1), ddt_out.stride(3),
            dt.stride(0), dt.stride(1), dt.stride(2), 1, 1, ddt.stride(0), ddt.stride(1), ddt.stride(2), 0, 0, 1, 0, 0, 1,
            True, HAS_DT_BIAS=True, BLOCK_SIZE_CHUNK=triton.next_power_of_2(CHUNK), DETERMINISTIC_REDUCTION=False, **c)

    def rows(x):
        return x.reshape(B, H, n * CHUNK)[:, :, :T].permute(0, 2, 1)

    def expected():
        raw = dt.float() + bias
        step = torch.log(1 + torch.exp(raw))
        dx = (rows(dda) * a + rows(ddt_out)) * torch.sigmoid(raw)
        return [dx, (rows(dda) * step).sum(1).sum(0), dx.sum(1).sum(0)]

    def reset():
        da.zero_()
        dbias.zero_()

    return Case([config(BLOCK_SIZE_H=h) for h in (1, 4, 16, 64)], launch, lambda: [ddt, da, dbias], expected, reset)


main("mamba_cumsum_backward", draw, make, 0.01)
