# A mixture of experts without padding: tokens sorted by expert, gathered as they are loaded, results scattered back.
from routing import *
from src_scattermoe import _scatter2scatter


def draw(d, tiny):
    if tiny:
        return dict(TOKENS=90, E=3, TOP=2, N=96, K=80)
    return dict(TOKENS=d.between(64, 4096), E=d.pick([8, 16, 32]), TOP=d.pick([1, 2, 4]), N=d.between(512, 4096, 32),
                K=d.between(512, 4096, 16))


def make(TOKENS, E, TOP, N, K):
    routing = Routing(TOKENS, E, TOP)
    x, w = randn(TOKENS, K, dtype=BF16), randn(E, K, N, dtype=BF16)
    y = empty(TOKENS * TOP, N, dtype=BF16)
    order, experts = [torch.tensor(t, dtype=torch.int64, device=DEVICE) for t in (
        [i for m in routing.members for i in m], [e for e, m in enumerate(routing.members) for _ in m])]

    def launch(c):
        grid = (triton.cdiv(TOKENS * TOP, c["BLOCK_M"]) * triton.cdiv(N, c["BLOCK_N"]),)
        _scatter2scatter[grid](
            x, x.stride(0), x.stride(1), w, w.stride(0), w.stride(1), w.stride(2), y, y.stride(0), y.stride(1), None, 0, 0,
            grouped_idx_ptr=order, expert_idxs_ptr=experts, FAN_OUT=TOP, M=TOKENS, K=K, N=N, E=E, ACC_TYPE=tl.float32,
            allow_tf32=True, x_grouped=False, y_grouped=False, NO_K_MASK=K % c["BLOCK_K"] == 0,
            NO_N_MASK=N % c["BLOCK_N"] == 0, **c)

    some = routing.some()
    return Case([config(4, 4, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32)], launch, lambda: [y[pairs] for _, pairs in some],
                lambda: [x[pairs // TOP].float() @ w[e].float() for e, pairs in some])


main("scattermoe", draw, make, 0.02)
