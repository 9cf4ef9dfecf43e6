import triton
import triton.language as tl

@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    y = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    z = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(x.load([i, k]), y.load([k, j]), sums)
    z.store([i, j], sums.to(tl.float16))
