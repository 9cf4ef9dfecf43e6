# Cross entropy and its gradient in place of the logits, two passes over a vocabulary.
from harness import *
from src_liger_cross_entropy import liger_cross_entropy_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, V=3000)
    return dict(N=d.between(64, 2048), V=d.pick([32000, 50257, 128256, 151936]))


def make(N, V):
    logits0 = randn(N, V, dtype=BF16)
    logits, y = logits0.clone(), torch.randint(0, V, (N,), device=DEVICE)
    loss = torch.empty((N,), dtype=torch.float32, device=DEVICE)

    def launch(c):
        liger_cross_entropy_kernel[(N,)](
            X_ptr=logits, X_stride=logits.stride(0), Y_ptr=y, Y_stride=1, weight_ptr=None, loss_ptr=loss, z_loss_ptr=None,
            loss_stride=1, token_accuracy_ptr=None, token_accuracy_stride=0, predicted_tokens_ptr=None,
            predicted_tokens_stride=0, n_cols=V, n_non_ignore=N, sum_non_ignore_weight=N, weight_sum=0.0, ignore_index=-100,
            lse_square_scale=0.0, label_smoothing=0.0, reduction="mean", softcap=None, RETURN_Z_LOSS=False,
            RETURN_TOKEN_ACCURACY=False, RETURN_PREDICTED_TOKENS=False,
            BLOCK_SIZE=min(32768, triton.next_power_of_2(V)), HAS_WEIGHT=False, HAS_SOFTCAPPING=False, HAS_GRADIENTS=True, **c)

    def expected():
        p = torch.softmax(logits0.float(), dim=-1)
        hot = (torch.arange(V, device=DEVICE)[None, :] == y[:, None]).float()
        losses = -torch.log((p * hot).sum(-1))
        return [losses / N, (p - hot) / N]

    return Case([config(32)], launch, lambda: [loss, logits], expected, lambda: logits.copy_(logits0))


main("liger_cross_entropy", draw, make, 0.01)
