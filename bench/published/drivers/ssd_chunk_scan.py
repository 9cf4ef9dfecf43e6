# Mamba-2: the outputs of a chunk from its products of C and B, its inputs and the state before it.
from harness import *
from src_ssd_chunk_scan import _chunk_scan_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, G=1, P=64, K=64, C=128)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([16, 24, 64]), G=d.pick([1, 2, 8]), P=64,
                K=d.pick([64, 128]), C=d.pick([128, 256]))


def make(B, T, H, G, P, K, C):
    n = triton.cdiv(T, C)
    cb = torch.randn((B, n, G, C, C), device=DEVICE)
    x, c_mat = randn(B, T, H, P, dtype=BF16), randn(B, T, G, K, dtype=BF16, scale=0.3)
    dt = torch.rand((B, H, n, C), device=DEVICE) * 0.1
    da = -torch.cumsum(dt, dim=-1)
    states = randn(B, n, H, P, K, dtype=BF16, scale=0.3)
    skip = torch.rand((H,), device=DEVICE)
    out = empty(B, T, H, P, dtype=BF16)

    def launch(c):
        grid = (triton.cdiv(C, c["BLOCK_SIZE_M"]) * triton.cdiv(P, c["BLOCK_SIZE_N"]), B * n, H)
        _chunk_scan_fwd_kernel[grid](
            cb, x, None, out, None, dt, da, None, c_mat, states, skip, C, P, K, B, T, H // G, cb.stride(0), cb.stride(1),
            cb.stride(2), cb.stride(3), cb.stride(4), x.stride(0), x.stride(1), x.stride(2), x.stride(3), 0, 0, 0, 0,
            out.stride(0), out.stride(1), out.stride(2), out.stride(3), dt.stride(0), dt.stride(2), dt.stride(1),
            dt.stride(3), da.stride(0), da.stride(2), da.stride(1), da.stride(3), 0, 0, c_mat.stride(0), c_mat.stride(1),
            c_mat.stride(2), c_mat.stride(3), states.stride(0), states.stride(1), states.stride(2), states.stride(3),
            states.stride(4), skip.stride(0), True, True, False, False, False, BLOCK_SIZE_DSTATE=K, IS_TRITON_22=True, **c)

    def chunk(i, h):
        rows = min(C, T - i * C)
        s = da[B - 1, h, i, :rows]
        decay = torch.exp((s[:, None] - s[None, :]).clamp(max=0.0)) * dt[B - 1, h, i, :rows][None, :]
        scores = torch.tril(cb[B - 1, i, h // (H // G), :rows, :rows] * decay)
        inputs = x[B - 1, i * C:i * C + rows, h].float()
        before = c_mat[B - 1, i * C:i * C + rows, h // (H // G)].float() @ states[B - 1, i, h].float().T
        return scores @ inputs + before * torch.exp(s)[:, None] + inputs * skip[h]

    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=nn, BLOCK_SIZE_K=k) for m, nn, k, s, w in [
        (128, 64, 32, 4, 4), (128, 64, 64, 4, 4), (64, 32, 32, 5, 2), (64, 64, 32, 4, 2)]]
    return Case(configs, launch, lambda: [out[B - 1, :min(C, T), 0], out[B - 1, (n - 1) * C:, H - 1]],
                lambda: [chunk(0, 0), chunk(n - 1, H - 1)])


main("ssd_chunk_scan", draw, make, 0.02)
