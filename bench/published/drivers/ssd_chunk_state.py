# Mamba-2: the state that each chunk adds.
from harness import *
from src_ssd_chunk_state import _chunk_state_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, G=1, P=64, K=64, C=128)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), H=d.pick([16, 24, 64]), G=d.pick([1, 2, 8]), P=64,
                K=d.pick([64, 128]), C=d.pick([128, 256]))


def make(B, T, H, G, P, K, C):
    n = triton.cdiv(T, C)
    x, b = randn(B, T, H, P, dtype=BF16), randn(B, T, G, K, dtype=BF16)
    dt = torch.rand((B, H, n, C), device=DEVICE) * 0.1
    da = -torch.cumsum(dt, dim=-1)
    states = torch.empty((B, n, H, P, K), dtype=torch.float32, device=DEVICE)

    def launch(c):
        grid = (triton.cdiv(P, c["BLOCK_SIZE_M"]) * triton.cdiv(K, c["BLOCK_SIZE_N"]), B * n, H)
        _chunk_state_fwd_kernel[grid](
            x, b, states, dt, da, None, P, K, C, B, T, H // G, x.stride(0), x.stride(1), x.stride(2), x.stride(3), b.stride(0),
            b.stride(1), b.stride(2), b.stride(3), states.stride(0), states.stride(1), states.stride(2), states.stride(3),
            states.stride(4), dt.stride(0), dt.stride(2), dt.stride(1), dt.stride(3), da.stride(0), da.stride(2), da.stride(1),
            da.stride(3), 0, 0, HAS_SEQ_IDX=False, **c)

    def chunk(i, h):
        rows = min(C, T - i * C)
        scale = torch.exp((da[B - 1, h, i, C - 1] - da[B - 1, h, i, :rows]).clamp(max=0.0)) * dt[B - 1, h, i, :rows]
        right = b[B - 1, i * C:i * C + rows, h // (H // G)].float() * scale[:, None]
        return x[B - 1, i * C:i * C + rows, h].float().T @ right

    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=nn, BLOCK_SIZE_K=k) for m, nn, k, s, w in [
        (64, 128, 32, 4, 4), (64, 64, 32, 4, 2), (128, 64, 32, 4, 4), (64, 32, 32, 5, 2)]]
    return Case(configs, launch, lambda: [states[B - 1, 0, 0], states[B - 1, n - 1, H - 1]],
                lambda: [chunk(0, 0), chunk(n - 1, H - 1)])


main("ssd_chunk_state", draw, make, 0.02)
