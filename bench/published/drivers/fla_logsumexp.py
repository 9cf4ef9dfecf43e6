# The logarithm of the sum of exponentials of each row, up to 65536 elements in one block.
from harness import *
from src_fla_logsumexp import logsumexp_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=7, D=1000)
    return dict(N=d.between(64, 8192), D=d.between(1024, 65536))


def make(N, D):
    x, block = torch.randn((N, D), device=DEVICE), triton.next_power_of_2(D)
    z = torch.empty((N, 1), dtype=torch.float32, device=DEVICE)

    def launch(c):
        logsumexp_fwd_kernel[(N, 1)](x=x, z=z, scale=None, D=D, B=block, HAS_SCALE=False, **c)

    configs = [config(w) for w in ([4, 8, 16] if block <= 16384 else [8, 16, 32])]
    return Case(configs, launch, lambda: [z[:, 0]], lambda: [torch.logsumexp(x, dim=-1)])


main("fla_logsumexp", draw, make, 1e-4)
