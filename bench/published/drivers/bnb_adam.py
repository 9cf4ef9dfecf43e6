# A step of Adam.
from harness import *
from src_bnb_adam import _optimizer_update_2state_32bit_triton_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=3000)
    return dict(N=d.between(65536, 67108864))


def make(N):
    p0, m0, g = [torch.randn((N,), device=DEVICE) for _ in range(3)]
    v0 = torch.rand((N,), device=DEVICE)
    p, m, v = p0.clone(), m0.clone(), v0.clone()

    def reset():
        p.copy_(p0)
        m.copy_(m0)
        v.copy_(v0)

    def launch(c):
        _optimizer_update_2state_32bit_triton_kernel[(triton.cdiv(N, 256),)](
            g, p, m, v, None, 0.0, 0.0, 0.9, 0.999, 0.0, 0.0, 1e-8, 0.01, 10, 0.9**10, 0.999**10, 1e-2, 1.0, False, N, 3, 256,
            1, **c)

    def expected():
        mean, square = m0 * 0.9 + g * 0.1, v0 * 0.999 + g * g * 0.001
        correction = math.sqrt(1 - 0.999**10)
        step = 1e-2 * correction / (1 - 0.9**10)
        return [p0 * (1 - 1e-2 * 0.01) - step * mean / (torch.sqrt(square) + 1e-8 * correction), mean, square]

    return Case([config(2)], launch, lambda: [p, m, v], expected, reset)


main("bnb_adam", draw, make, 1e-3)
