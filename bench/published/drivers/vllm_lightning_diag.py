# Linear attention within a block: products of float32 in tf32, with a decay between them.
from harness import *
from src_vllm_lightning_diag import _fwd_diag_kernel

BLOCK, PART = 256, 32


def draw(d, tiny):
    if tiny:
        return dict(B=1, H=2, N=300, D=64)
    return dict(B=d.between(1, 5), H=d.pick([8, 16, 32]), N=d.between(512, 8192), D=d.pick([64, 96 + 32]))


def make(B, H, N, D):
    q, k, v, out = randn(B, H, N, D), randn(B, H, N, D), randn(B, H, N, D), empty(B, H, N, D)
    slopes = torch.rand((H, 1, 1), device=DEVICE) * 0.5
    blocks = triton.cdiv(N, BLOCK)

    def launch(c):
        _fwd_diag_kernel[(B * H * blocks, BLOCK // PART)](q, k, v, out, slopes, B, H, N, D, D, BLOCK=BLOCK,
                                                          NUM_BLOCK=blocks, CBLOCK=PART, **c)

    def expected():
        own = slice(0, min(BLOCK, N))
        qi, ki, vi = [t[B - 1, H - 1, own].float() for t in (q, k, v)]
        at = torch.arange(qi.shape[0], device=DEVICE)
        apart = at[:, None] - at[None, :]
        decay = torch.where(apart >= 0, torch.exp(-slopes[H - 1, 0, 0] * apart.float()), 0.0)
        return [(qi @ ki.T * decay) @ vi]

    return Case([config(4, 3)], launch, lambda: [out[B - 1, H - 1, :min(BLOCK, N)]], expected)


main("vllm_lightning_diag", draw, make, 0.02)
