# Rows times a narrow matrix, divided by their root mean square, in a loop that is unrolled.
from harness import *
from src_liger_mhc import _mhc_mm_norm_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=70, K=1024, M=24)
    return dict(N=d.between(512, 16384), K=d.pick([2048, 4096, 8192]), M=24)


def make(N, K, M):
    x, phi = randn(N, K, dtype=BF16), randn(K, M, dtype=BF16)
    mix, scale = torch.empty((N, M), device=DEVICE), torch.empty((N,), device=DEVICE)

    def launch(c):
        _mhc_mm_norm_fwd_kernel[(triton.cdiv(N, 32), triton.cdiv(M, 32))](
            x, phi, mix, scale, N=N, K=K, M=M, stride_xn=x.stride(0), stride_xk=x.stride(1), stride_phik=phi.stride(0),
            stride_phim=phi.stride(1), stride_mn=mix.stride(0), stride_mm=mix.stride(1), eps=1e-6, BLOCK_N=32,
            BLOCK_K=256, BLOCK_M=32, CAST_FP32=False, **c)

    def expected():
        r = torch.rsqrt((x.float() * x.float()).mean(1) + 1e-6)
        return [(x.float() @ phi.float()) * r[:, None], r]

    return Case([config(4, 3)], launch, lambda: [mix, scale], expected)


main("liger_mhc", draw, make, 0.02)
