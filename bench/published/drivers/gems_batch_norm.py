# Batch norm of training: statistics of each channel, then its elements, in one program.
from harness import *
from src_gems_batch_norm import batch_norm_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=3, C=5, S=70)
    return dict(B=d.between(4, 64), C=d.pick([64, 256, 512]), S=d.pick([49, 196, 784, 3136]))


def make(B, C, S):
    x, w, b = randn(B, C, S, dtype=BF16), randn(C, dtype=BF16), randn(C, dtype=BF16)
    y = torch.empty_like(x)
    mean, rstd = torch.empty((C,), device=DEVICE), torch.empty((C,), device=DEVICE)
    running_mean, running_var = torch.zeros((C,), device=DEVICE), torch.ones((C,), device=DEVICE)
    rows = min(2048, triton.next_power_of_2(B))
    columns = min(triton.next_power_of_2(S), max(1, 16384 // rows))

    def reset():
        running_mean.fill_(0.0)
        running_var.fill_(1.0)

    def launch(c):
        batch_norm_forward_kernel[(C,)](x, w, b, mean, rstd, y, running_mean, running_var, B, S, x.stride(0), x.stride(1),
                                        x.stride(2), y.stride(0), y.stride(1), y.stride(2), 0.1, 1e-5, is_train=True,
                                        BLOCK_M=rows, BLOCK_N=columns, **c)

    def expected():
        rows_of = x.float().permute(1, 0, 2).reshape(C, B * S)
        m, v = rows_of.mean(-1), rows_of.var(-1, unbiased=False)
        r = 1 / torch.sqrt(v + 1e-5)
        out = (x.float() - m[None, :, None]) * r[None, :, None] * w.float()[None, :, None] + b.float()[None, :, None]
        n = B * S
        return [out, m, r, 0.1 * m, 0.9 + 0.1 * v * n / (n - 1)]

    return Case([config(warps) for warps in (4, 8, 16)], launch, lambda: [y, mean, rstd, running_mean, running_var], expected,
                reset)


main("gems_batch_norm", draw, make, 0.01)
