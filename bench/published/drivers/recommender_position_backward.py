# The gradient of position embeddings: rows of one position, sorted, are summed and added to its row with atomics.
from harness import *
from src_recommender_position_backward import _add_embeddings_bwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=500, ROWS=40, D=96)
    return dict(N=d.between(4096, 262144), ROWS=d.pick([1000, 2048, 8192]), D=d.pick([64, 128, 256, 512]))


def make(N, ROWS, D):
    dy, owners = randn(N, D), torch.randint(0, ROWS, (N,), device=DEVICE)
    keys, places = torch.sort(owners, stable=True)
    out = torch.empty((ROWS, D), device=DEVICE)

    def launch(c):
        _add_embeddings_bwd_kernel[(triton.cdiv(N, c["BLOCK"]),)](
            In=dy, KeyInds=keys, ValueInds=places, Out=out, AUTOTUNE_MAX_SEQ_LEN=1024, AUTOTUNE_B=64, D=D, jagged_size=N,
            stride_in=D, stride_on=D, BLOCK_D=triton.next_power_of_2(D), **c)

    def expected():
        return [torch.zeros((ROWS, D), device=DEVICE).index_add_(0, owners, dy.float())]

    configs = [config(w, s, BLOCK=b) for b, w, s in ((32, 2, 2), (32, 4, 4), (64, 4, 3), (128, 8, 2))]
    return Case(configs, launch, lambda: [out], expected, lambda: out.zero_())


main("recommender_position_backward", draw, make, 0.01)
