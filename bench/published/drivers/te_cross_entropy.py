# Cross entropy and its gradient: maxima and sums of rows in one kernel, what follows from these in the next.
from harness import *
from src_te_cross_entropy import cross_entropy_kernel, online_softmax_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, V=3001, SMOOTH=0.1)
    return dict(N=d.between(64, 2048), V=d.pick([32000, 50257, 128256]), SMOOTH=d.pick([0.0, 0.1]))


def make(N, V, SMOOTH):
    logits, y = randn(N, V, dtype=BF16), torch.randint(0, V, (N,), device=DEVICE)
    y[0:1] = -100
    loss, parts = torch.zeros((N,), device=DEVICE), torch.empty((N, 3), device=DEVICE)
    counted, grad = torch.zeros((1,), dtype=torch.int32, device=DEVICE), torch.empty((N, V), device=DEVICE)
    block = min(65536 // 2, triton.next_power_of_2(V))

    def launch(c):
        online_softmax_kernel[(N,)](X_ptr=logits, X_stride=V, Y_ptr=y, Y_stride=1, m_d_X_y_ptr=parts, m_d_X_y_stride=1,
                                    rank=0, n_cols=V, ignore_idx=-100, n_non_ignore=counted, BLOCK_SIZE=block, **c)
        cross_entropy_kernel[(N,)](
            X_ptr=logits, X_stride=V, grad_input_ptr=grad, grad_input_stride=V, Y_ptr=y, Y_stride=1, loss_ptr=loss,
            loss_stride=1, m_d_X_y_ptr=parts, m_d_X_y_stride=1, rank=0, world_size=1, ignore_idx=-100, n_cols=V, n_rows=N,
            n_non_ignore=counted, reduce_loss=True, label_smoothing=SMOOTH, BLOCK_SIZE=block, **c)

    def expected():
        logp = torch.log_softmax(logits.float(), dim=-1)
        hot = (torch.arange(V, device=DEVICE)[None, :] == y[:, None]).float()
        losses = -(1 - SMOOTH) * (logp * hot).sum(-1) - SMOOTH * logp.mean(-1)
        dx = (torch.exp(logp) - SMOOTH / V - (1 - SMOOTH) * hot) / (N - 1)
        used = (y >= 0).float()
        return [losses * used, dx * used[:, None], torch.full((1,), N - 1, device=DEVICE)]

    return Case([config(32)], launch, lambda: [loss, grad, counted], expected, lambda: counted.zero_())


main("te_cross_entropy", draw, make, 1e-3)
