# PyTorch's scaled_dot_product_attention at the shapes of attention_tail.py, by each of its backends.
import torch
import triton.testing
from torch.nn.attention import SDPBackend, sdpa_kernel

for n, d in [(1024, 128), (4096, 64), (4096, 128), (16384, 128)]:
    q, k, v = (torch.randn((4, 16, n, d), dtype=torch.float16, device="cuda") for _ in range(3))
    for causal in [False, True]:
        for backend in [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION]:
            with sdpa_kernel(backend):
                run = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                t = triton.testing.do_bench(run, warmup=10, rep=60, return_mode="median")
            flop = 4.0 * 64 * n * n * d * (0.5 if causal else 1.0)
            print(f"{n}x{d} {'causal' if causal else 'full'} {backend.name} us {t * 1000:.1f} TFLOP/s {flop / t / 1e9:.1f}")
