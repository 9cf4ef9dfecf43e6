# Angles of Mamba-3: sums of angle * dt along sequences, modulo 2 pi.
from harness import *
from src_mamba_angle import angle_dt_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=1, T=150, H=2, D=24)
    return dict(B=d.between(1, 8), T=d.between(512, 8192), H=d.pick([16, 32, 64]), D=d.pick([16, 32, 64]))


def make(B, T, H, D):
    angle, dt = randn(B, T, H, D, dtype=BF16), torch.rand((B, H, T), device=DEVICE) * 0.1
    out, last = torch.empty((B, T, H, D), device=DEVICE), torch.empty((B, H, D), device=DEVICE)

    def launch(c):
        angle_dt_fwd_kernel[(H, B)](out, last, angle, dt, None, None, *[out.stride(i) for i in range(4)],
                                    *[last.stride(i) for i in range(3)], *[angle.stride(i) for i in range(4)],
                                    *[dt.stride(i) for i in range(3)], 0, 0, 0, 0, T, D, CHUNK_SIZE=64,
                                    BLOCK_D=triton.next_power_of_2(D), HAS_INIT_STATE=False, RETURN_OUTPUT_STATE=True,
                                    IS_VARLEN=False, **c)

    def turned(x):
        return torch.stack([torch.cos(x), torch.sin(x)])

    def expected():
        sums = torch.cumsum(torch.tanh(angle.float()) * math.pi * dt.transpose(1, 2)[:, :, :, None], dim=1)
        return [turned(sums), turned(sums[:, T - 1])]

    configs = [config(w, s) for w, s in ((4, 2), (2, 1), (2, 3), (8, 2))]
    return Case(configs, launch, lambda: [turned(out), turned(last)], expected)


main("mamba_angle", draw, make, 0.01)
