# Mamba-2, backward: the gradients of a chunk's inputs, step sizes and skip weights.
from harness import *
from src_ssd_dx import _chunk_scan_chunk_state_bwd_dx_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, G=1, P=64, K=64, C=128)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([16, 24, 64]), G=d.pick([1, 2, 8]), P=64,
                K=d.pick([64, 128]), C=d.pick([128, 256]))


def make(B, T, H, G, P, K, C):
    n = triton.cdiv(T, C)
    cb = torch.randn((B, n, G, C, C), device=DEVICE)
    x, b = randn(B, T, H, P, dtype=BF16), randn(B, T, G, K, dtype=BF16)
    dout, dstates = randn(B, T, H, P, dtype=BF16), randn(B, n, H, P, K, dtype=BF16)
    dt = torch.rand((B, H, n, C), device=DEVICE) * 0.1
    da = -torch.cumsum(dt, dim=-1)
    skip = torch.rand((H,), device=DEVICE)
    dx = empty(B, T, H, P, dtype=BF16)
    ddt = torch.zeros((B, H, n, C), device=DEVICE)
    dskip = torch.zeros((triton.cdiv(C, 32), B, n, H, 1), device=DEVICE)

    def launch(c):
        grid = (triton.cdiv(C, c["BLOCK_SIZE_M"]) * triton.cdiv(P, c["BLOCK_SIZE_N"]), B * n, H)
        _chunk_scan_chunk_state_bwd_dx_kernel[grid](
            x, cb, dout, dt, da, None, skip, b, dstates, dx, ddt, dskip, C, P, K, B, T, H // G, x.stride(0), x.stride(1),
            x.stride(2), x.stride(3), cb.stride(0), cb.stride(1), cb.stride(2), cb.stride(4), cb.stride(3), dout.stride(0),
            dout.stride(1), dout.stride(2), dout.stride(3), dt.stride(0), dt.stride(2), dt.stride(1), dt.stride(3),
            da.stride(0), da.stride(2), da.stride(1), da.stride(3), 0, 0, skip.stride(0), b.stride(0), b.stride(1),
            b.stride(2), b.stride(3), dstates.stride(0), dstates.stride(1), dstates.stride(2), dstates.stride(3),
            dstates.stride(4), dx.stride(0), dx.stride(1), dx.stride(2), dx.stride(3), ddt.stride(0), ddt.stride(2),
            ddt.stride(1), ddt.stride(3), 0, dskip.stride(1), dskip.stride(2), dskip.stride(3), dskip.stride(0),
            dskip.stride(4), True, False, HAS_SEQ_IDX=False, BLOCK_SIZE_DSTATE=K, IS_TRITON_22=True,
            DETERMINISTIC_REDUCTION=False, **c)

    def reset():
        ddt.zero_()  # both are added to with atomics
        dskip.zero_()

    def chunk(i, h):
        rows = min(C, T - i * C)
        s, steps = da[B - 1, h, i, :rows], dt[B - 1, h, i, :rows]
        here = slice(i * C, i * C + rows)
        g, xi = dout[B - 1, here, h].float(), x[B - 1, here, h].float()
        into = b[B - 1, here, h // (H // G)].float() @ dstates[B - 1, i, h].float().T
        into = into * torch.exp((da[B - 1, h, i, C - 1] - s).clamp(max=0.0))[:, None]
        later = cb[B - 1, i, h // (H // G), :rows, :rows].T * torch.exp((s[None, :] - s[:, None]).clamp(max=0.0))
        acc = into + torch.triu(later) @ g
        return [acc * steps[:, None] + g * skip[h], (acc * xi).sum(-1), (g * xi).sum().reshape(1)]

    def result():
        shown = []
        for i, h in ((0, 0), (n - 1, H - 1)):
            rows = min(C, T - i * C)
            shown += [dx[B - 1, i * C:i * C + rows, h], ddt[B - 1, h, i, :rows], dskip[:, B - 1, i, h, 0].sum().reshape(1)]
        return shown

    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=nn, BLOCK_SIZE_K=k) for m, nn, k, s, w in [
        (128, 64, 32, 4, 4), (64, 64, 32, 4, 4), (64, 32, 32, 5, 4), (32, 64, 32, 5, 4), (128, 128, 32, 4, 4)]]
    return Case(configs, launch, result, lambda: chunk(0, 0) + chunk(n - 1, H - 1), reset)


main("ssd_dx", draw, make, 0.02)
