# The gradients of experts' biases and of tokens' scales: sums of the rows of each group and of each row, with atomics.
from harness import *
from src_te_grouped_dbias import _grouped_dbias_kernel

SPLITS = 4
BLOCK = 128


def draw(d, tiny):
    if tiny:
        return dict(G=5, T=700, D=200)
    return dict(G=d.pick([4, 8, 32, 60]), T=d.between(1024, 32768), D=d.pick([1024, 2048, 2880, 7168]))


def make(G, T, D):
    owners = torch.sort(torch.randint(0, G, (T,), device=DEVICE))[0]
    ends = (owners[None, :] <= torch.arange(G, device=DEVICE)[:, None]).sum(-1)
    offsets = torch.cat([torch.zeros((1,), dtype=torch.int64, device=DEVICE), ends])
    dy, bias = randn(T, D, dtype=BF16), randn(G, D, dtype=BF16)
    scales = torch.rand((T,), device=DEVICE)
    dbias, dscales = torch.empty((G, D), device=DEVICE), torch.empty((T,), device=DEVICE)

    def launch(c):
        _grouped_dbias_kernel[(G, SPLITS, triton.cdiv(D, BLOCK))](dy, dbias, offsets, scales, bias, dscales, D, HAS_SCALES=True,
                                                                  N_ROW_SPLITS=SPLITS, BLOCK_M=BLOCK, BLOCK_H=BLOCK, **c)

    def expected():
        rows = dy.float()
        sums = torch.zeros((G, D), device=DEVICE).index_add_(0, owners, rows * scales[:, None])
        return [sums, (rows * torch.index_select(bias, 0, owners).float()).sum(-1)]

    def reset():
        dbias.zero_()
        dscales.zero_()

    return Case([config(4, 2)], launch, lambda: [dbias, dscales], expected, reset)


main("te_grouped_dbias", draw, make, 0.01)
