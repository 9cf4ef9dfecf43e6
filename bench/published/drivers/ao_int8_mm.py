# A product of int8 whose sums are scaled by row and by column.
from harness import *
from src_ao_int8_mm import _scaled_int8_mm_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=72, N=96, K=200)
    return dict(M=d.between(64, 8192), N=d.between(512, 8192, 16), K=d.between(512, 8192, 16))


def make(M, N, K):
    a, b = ints(-100, 100, (M, K), dtype=torch.int8), ints(-100, 100, (N, K), dtype=torch.int8)
    rows, columns = [(torch.rand((n,), device=DEVICE) * 0.01).to(BF16) for n in (M, N)]
    c = empty(M, N, dtype=BF16)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_M"]) * triton.cdiv(N, c_["BLOCK_N"]),)
        _scaled_int8_mm_kernel[grid](a, b, c, rows, columns, M, N, K, a.stride(0), a.stride(1), b.stride(1), b.stride(0),
                                     c.stride(0), c.stride(1), EVEN_K=K % c_["BLOCK_K"] == 0, **c_)

    def expected():
        return [(a.float() @ b.float().T) * rows.float()[:, None] * columns.float()[None, :]]

    configs = [config(w, s, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k) for m, n, k, s, w in [
        (128, 256, 128, 3, 8), (128, 128, 128, 4, 4), (64, 128, 64, 4, 4), (64, 64, 64, 3, 8), (64, 32, 32, 5, 2)]]
    return Case(configs, launch, lambda: [c], expected)


main("ao_int8_mm", draw, make, 0.02)
