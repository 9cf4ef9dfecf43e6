# Gradients of a sum of the normalized first three powers of rows.
from harness import *
from src_liger_poly_norm_backward import _poly_norm_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(512, 16384), D=d.pick([1024, 2048, 4096, 5120, 8192]))


def make(N, D):
    x, dy, dx = randn(N, D, dtype=BF16), randn(N, D, dtype=BF16), empty(N, D, dtype=BF16)
    w = torch.randn((3,), device=DEVICE)
    powers = [x.float() ** p for p in (3, 2, 1)]
    rstd = torch.stack([torch.rsqrt((p * p).mean(-1) + 1e-6) for p in powers], dim=1).contiguous()
    block, warps = row_settings(D)
    programs = min(132, N)
    per_program = triton.cdiv(N, programs)
    dw, db = torch.zeros((programs, 3), device=DEVICE), torch.zeros((programs,), device=DEVICE)

    def launch(c):
        _poly_norm_backward_kernel[(programs,)](dy, D, dx, D, x, D, w, rstd, 3, dw, 3, db, N, D,
                                                rows_per_program=per_program, BLOCK_SIZE=block, **c)

    def expected():
        grad, total, weights = dy.float(), torch.zeros((N, D), device=DEVICE), []
        for i, p in enumerate((3, 2, 1)):
            u, r = powers[i], rstd[:, i:i + 1]
            sums = (grad * u).sum(-1, keepdim=True)
            slope = p * x.float() ** (p - 1)
            total = total + w[i] * slope * (grad * r - u * r ** 3 * sums / D)
            weights.append((sums * r).sum())
        return [total, torch.stack(weights), grad.sum().reshape(1)]

    return Case([config(warps)], launch, lambda: [dx, dw.sum(0), db.sum().reshape(1)], expected)


main("liger_poly_norm_backward", draw, make, 0.01)
