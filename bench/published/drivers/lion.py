# A step of the optimiser Lion.
from harness import *
from src_lion import update_fn_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=3000)
    return dict(N=d.between(65536, 67108864))


def make(N):
    p0, grad, m0 = [torch.randn((N,), device=DEVICE) for _ in range(3)]
    p, m = p0.clone(), m0.clone()

    def reset():
        p.copy_(p0)
        m.copy_(m0)

    def launch(c):
        update_fn_kernel[(triton.cdiv(N, c["BLOCK_SIZE"]),)](p, grad, m, 1e-3, 0.1, 0.9, 0.99, N, **c)

    def expected():
        diff = m0 - grad
        return [p0 * (1 - 1e-3 * 0.1) - 1e-3 * torch.sign(diff * 0.9 + grad), diff * 0.99 + grad]

    return Case([config(4, BLOCK_SIZE=128), config(8, BLOCK_SIZE=1024)], launch, lambda: [p, m], expected, reset)


main("lion", draw, make, 1e-3)
