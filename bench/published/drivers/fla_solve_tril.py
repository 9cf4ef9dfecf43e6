# The inverses of unit lower triangular matrices of 64 rows, from those of their 16 x 16 blocks.
from harness import *
from src_fla_solve_tril import merge_16x16_to_64x64_inverse_kernel

CHUNK = 64


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2)
    return dict(B=d.between(1, 5), T=d.between(1024, 16384), H=d.pick([4, 8, 12, 32]))


def make(B, T, H):
    n = triton.cdiv(T, CHUNK)
    below = torch.tril(torch.ones((CHUNK, CHUNK), device=DEVICE), -1)
    a = (randn(B, n, CHUNK, H, CHUNK, dtype=torch.float32, scale=0.1) * below[None, None, :, None, :]).reshape(
        B, n * CHUNK, H, CHUNK)[:, :T].contiguous()
    inverse = torch.zeros((B, T, H, CHUNK), dtype=BF16, device=DEVICE)

    def launch(c):
        merge_16x16_to_64x64_inverse_kernel[(n, B * H)](
            A=a, Ai=inverse, cu_seqlens=None, chunk_indices=None, T=T, H=H, BT=CHUNK, USE_TMA=False, IS_VARLEN=False,
            DOT_PRECISION="ieee", **c)

    def chunk(i):
        count = min(CHUNK, T - i * CHUNK)
        power = torch.zeros((CHUNK, CHUNK), device=DEVICE)
        power[:count] = a[B - 1, i * CHUNK:i * CHUNK + count, H - 1]
        # (1 + A)^-1 = (1 - A) (1 + A^2) (1 + A^4) ..., which ends where the power of A is 0.
        total = torch.eye(CHUNK, device=DEVICE) - power
        for _ in range(5):
            power = power @ power
            total = total + total @ power
        return total[:count]

    return Case([config(4, 3), config(2, 2), config(8, 4), config(2, 5)], launch,
                lambda: [inverse[B - 1, :CHUNK, H - 1], inverse[B - 1, (n - 1) * CHUNK:, H - 1]],
                lambda: [chunk(0), chunk(n - 1)])


main("fla_solve_tril", draw, make, 0.01)
