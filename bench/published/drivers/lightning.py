# Lightning attention 2: linear attention with decay, one program for each head, float32 dots.
from harness import *
from src_lightning import _fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, H=2, N=150, D=64)
    return dict(B=d.between(1, 5), H=d.pick([8, 16, 32]), N=d.between(512, 8192), D=d.pick([64, 128]))


def make(B, H, N, D):
    q, k, v = [randn(B, H, N, D, dtype=BF16, scale=0.3) for _ in range(3)]
    slopes = torch.tensor([2.0 ** (-8.0 * (i + 1) / H) for i in range(H)], dtype=torch.float32, device=DEVICE)
    o = torch.empty_like(v)
    block, width = 64, 32

    def launch(c):
        _fwd_kernel[(B * H, triton.cdiv(D, width))](q, k, v, o, slopes, B, H, N, D, D, BLOCK=block,
                                                    NUM_BLOCK=triton.cdiv(N, block), BLOCK_MODEL=width, **c)

    def head(h):
        t = torch.arange(N, device=DEVICE).float()
        distance = t[:, None] - t[None, :]
        decay = torch.where(distance >= 0, torch.exp(-slopes[h] * distance.clamp(min=0)), 0.0)
        return (q[B - 1, h].float() @ k[B - 1, h].float().T * decay) @ v[B - 1, h].float()

    return Case([config()], launch, lambda: [o[B - 1, 0], o[B - 1, H - 1]], lambda: [head(0), head(H - 1)])


main("lightning", draw, make, 0.02)
