# The means of chunks of tokens.
from harness import *
from src_fla_mean_pooling import mean_pooling_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=100, H=3, D=60, C=32)
    return dict(B=d.between(1, 4), T=d.between(512, 16384), H=d.pick([4, 8, 32]), D=d.pick([64, 100, 128]), C=d.pick([32, 64]))


def make(B, T, H, D, C):
    chunks = triton.cdiv(T, C)
    x, y = randn(B, T, H, D, dtype=BF16), empty(B, chunks, H, D, dtype=BF16)

    def launch(c):
        mean_pooling_fwd_kernel[(triton.cdiv(D, c["BD"]), chunks, B * H)](x, y, None, None, T=T, H=H, D=D, BT=C,
                                                                          IS_VARLEN=False, **c)

    def expected():
        padded = torch.zeros((B, chunks * C, H, D), device=DEVICE)
        padded[:, :T] = x.float()
        sizes = (T - torch.arange(chunks, device=DEVICE) * C).clamp(max=C).float()
        return [padded.reshape(B, chunks, C, H, D).sum(2) / sizes[None, :, None, None]]

    return Case([config(w, BD=d_) for d_, w in ((32, 1), (64, 4), (128, 4))], launch, lambda: [y], expected)


main("fla_mean_pooling", draw, make, 0.01)
