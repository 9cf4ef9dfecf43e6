# Mamba-2: products of C and B within chunks.
from harness import *
from src_ssd_bmm import _bmm_chunk_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, G=1, K=64, C=128)
    return dict(B=d.between(1, 5), T=d.between(1024, 8192), G=d.pick([1, 2, 8]), K=d.pick([64, 128]), C=d.pick([128, 256]))


def make(B, T, G, K, C):
    n = triton.cdiv(T, C)
    a, b = randn(B, T, G, K, dtype=BF16), randn(B, T, G, K, dtype=BF16)
    out = torch.empty((B, n, G, C, C), dtype=torch.float32, device=DEVICE)

    def launch(c):
        _bmm_chunk_fwd_kernel[(triton.cdiv(C, c["BLOCK_SIZE_M"]) * triton.cdiv(C, c["BLOCK_SIZE_N"]), B, n * G)](
            a, b, out, None, T, C, K, G, a.stride(0), a.stride(1), a.stride(2), a.stride(3), b.stride(0), b.stride(1),
            b.stride(2), b.stride(3), out.stride(0), out.stride(1), out.stride(2), out.stride(3), out.stride(4), 0, 0, False,
            TL_BF16, HAS_SEQ_IDX=False, **c)

    rows = min(C, T)
    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=nn, BLOCK_SIZE_K=k) for m, nn, k, s, w in [
        (128, 256, 64, 3, 8), (128, 128, 32, 4, 4), (64, 128, 32, 4, 4), (64, 64, 32, 4, 2)]]
    return Case(configs, launch, lambda: [out[B - 1, 0, G - 1, :rows, :rows]],
                lambda: [a[B - 1, :rows, G - 1].float() @ b[B - 1, :rows, G - 1].float().T])


main("ssd_bmm", draw, make, 0.01)
