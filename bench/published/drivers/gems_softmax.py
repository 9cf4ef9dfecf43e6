# Softmax over the middle one of three dimensions.
from harness import *
from src_gems_softmax import softmax_kernel_non_inner


def draw(d, tiny):
    if tiny:
        return dict(M=2, N=70, K=33)
    return dict(M=d.between(1, 64), N=d.between(64, 4096), K=d.between(32, 512))


def tile(M, K):
    """Columns in one program: more as long as there are more programs than SMs."""
    count = torch.cuda.get_device_properties("cuda").multi_processor_count if DEVICE == "cuda" else 3
    width = 1
    while width * 2 <= K and M * triton.cdiv(K, width) > count:
        width *= 2
    return width


def make(M, N, K):
    x = randn(M, N, K, dtype=BF16)
    y = torch.empty_like(x)
    columns = tile(M, K)
    rows = triton.cdiv(8192, columns)

    def launch(c):
        softmax_kernel_non_inner[(M, triton.cdiv(K, columns), 1)](y, x, M, N, K, TILE_N=rows, TILE_K=columns,
                                                                  ONE_TILE_PER_CTA=rows >= N, **c)

    return Case([config(16)], launch, lambda: [y], lambda: [torch.softmax(x.float(), dim=1)])


main("gems_softmax", draw, make, 0.01)
