# The best experts of the best groups of experts for each token, by two bitonic sorts.
from harness import *
from src_lightllm_grouped_topk import grouped_topk_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=7, E=64, GROUPS=4, KEPT=2, K=6)
    e, groups, kept = d.pick([(256, 8, 4), (160, 8, 3), (64, 8, 4)])
    return dict(T=d.between(64, 8192), E=e, GROUPS=groups, KEPT=kept, K=d.pick([6, 8]))


def make(T, E, GROUPS, KEPT, K):
    logits, bias = torch.randn((T, E), device=DEVICE), 0.1 * torch.randn((E,), device=DEVICE)
    buffer = torch.empty((T, E), device=DEVICE)
    weights, ids = torch.empty((T, K), device=DEVICE), torch.empty((T, K), dtype=torch.int64, device=DEVICE)
    size = E // GROUPS

    def launch(c):
        grouped_topk_kernel[(T,)](
            logits, E, 1, bias, buffer, E, 1, E, size, 1, weights, K, 1, ids, K, 1, group_num=GROUPS, group_expert_num=size,
            total_expert_num=E, topk_num=K, group_topk_num=KEPT, IS_SIGMOID=True, HAS_CORRECTION_BIAS=True,
            EXPERT_BLOCK_SIZE=triton.next_power_of_2(E), EXPERT_GROUP_NUM=triton.next_power_of_2(GROUPS),
            EXPERT_GROUP_SIZE=triton.next_power_of_2(size), RENORMALIZE=True, GROUP_SCORE_USED_TOPK_NUM=2, **c)

    def expected():
        plain = torch.sigmoid(logits)
        scores = (plain + bias).reshape(T, GROUPS, size)
        best, _ = torch.topk(scores, 2, dim=-1)
        groups, _ = torch.topk(best.sum(-1), KEPT, dim=-1)
        kept = best.sum(-1) >= groups[:, KEPT - 1:KEPT]
        _, chosen = torch.topk(torch.where(kept[:, :, None], scores, -1e7).reshape(T, E), K, dim=-1)
        w = torch.gather(plain, 1, chosen)
        return [w / w.sum(-1, keepdim=True), chosen]

    return Case([config(1, 1)], launch, lambda: [weights, ids], expected)


main("lightllm_grouped_topk", draw, make, 1e-4)
