# The end of a script that runs under Kiln and under Triton alike (run.sh puts the kernels in front of it): both matmul
# kernels over one list of configurations at the ten shapes of bf16 products; prints the best of each, and cuBLAS.
import torch
import triton.testing

CONFIGS = [
    (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 64, 8, 6),
    (128, 128, 128, 8, 3), (128, 128, 64, 4, 4), (64, 256, 64, 4, 4), (128, 64, 64, 4, 6), (128, 64, 128, 8, 4),
    (64, 128, 128, 4, 4), (64, 64, 128, 4, 4), (64, 64, 128, 4, 6), (64, 32, 128, 4, 4), (64, 32, 128, 4, 6),
    (32, 64, 128, 4, 4), (16, 64, 128, 4, 4), (16, 64, 128, 4, 6), (16, 64, 256, 4, 4), (16, 128, 128, 4, 4),
]
SHAPES = [
    (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192),
    (4096, 4096, 14336), (8192, 28672, 8192), (16, 8192, 8192), (64, 8192, 8192), (1, 8192, 8192),
]
PROGRAMS = 132


def pointers(a, b, c, M, N, K, BM, BN, BK, W, S):
    grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
    matmul_kernel[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
                        BLOCK_M=BM, BLOCK_N=BN, BLOCK_K=BK, GROUP_M=8, ACTIVATION=None, num_warps=W, num_stages=S)


def persistent(a, b, c, M, N, K, BM, BN, BK, W, S):
    programs = min(PROGRAMS, triton.cdiv(M, BM) * triton.cdiv(N, BN))
    matmul_persistent[(programs,)](a, b, c, None, M, N, K, a.stride(0), b.stride(0), c.stride(0), A_IS_KM=False,
                                   B_IS_NK=False, BLOCK_M=BM, BLOCK_N=BN, BLOCK_K=BK, GROUP_M=8, NUM_PROGRAMS=programs,
                                   ACTIVATION="", ACC=tl.float32, num_warps=W, num_stages=S)


def run_all():
    for M, N, K in SHAPES:
        a = torch.randn((M, K), dtype=torch.bfloat16, device="cuda")
        b = torch.randn((K, N), dtype=torch.bfloat16, device="cuda")
        c = torch.empty((M, N), dtype=torch.bfloat16, device="cuda")
        reference = torch.matmul(a, b)
        rep = 40
        cublas = triton.testing.do_bench(lambda: torch.matmul(a, b, out=c), warmup=10, rep=rep, return_mode="median")
        for name, launch in [("pointers", pointers), ("persistent", persistent)]:
            results = []
            for config in CONFIGS:
                BM, BN, BK, W, S = config
                if BM > max(16, 2 * M) or (M > 64 and BM < 64) or M * N // (BM * BN) > 8192:
                    continue
                try:
                    c.zero_()
                    launch(a, b, c, M, N, K, BM, BN, BK, W, S)
                    if not torch.allclose(c.float(), reference.float(), atol=1.0, rtol=0.02):
                        print("WRONG", name, M, N, K, config)
                        continue
                    t = triton.testing.do_bench(lambda: launch(a, b, c, M, N, K, BM, BN, BK, W, S), warmup=5,
                                                rep=rep // 2, return_mode="median")
                    results.append((t, config))
                except Exception as e:
                    print("skipped", name, M, N, K, config, str(e).split("\n")[0][:100])
            if len(results) == 0:
                print("none", name, M, N, K)
                continue
            results.sort()
            config = results[0][1]
            BM, BN, BK, W, S = config
            t = triton.testing.do_bench(lambda: launch(a, b, c, M, N, K, BM, BN, BK, W, S), warmup=10, rep=rep,
                                        return_mode="median")
            print(f"{name} {M}x{N}x{K} us {t * 1000:.2f} cublas_us {cublas * 1000:.2f} config {config}")


run_all()
