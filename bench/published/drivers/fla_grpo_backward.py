# Gradients of the logits of group relative policy optimization; masked tokens have none.
from harness import *
from src_fla_grpo_backward import grpo_bwd_kernel

BETA = 0.1


def draw(d, tiny):
    if tiny:
        return dict(B=2, L=5, V=3001)
    return dict(B=d.pick([2, 4, 8]), L=d.between(64, 512), V=d.pick([32000, 50257, 128256]))


def make(B, L, V):
    prompt = 7
    logits, grads = randn(B, L + 1, V, dtype=BF16), torch.zeros((B, L + 1, V), dtype=BF16, device=DEVICE)
    ids = torch.randint(0, V, (B, prompt + L), device=DEVICE)
    logp = torch.log_softmax(logits[:, :L].float(), dim=-1)
    chosen = torch.gather(logp, 2, ids[:, prompt:, None]).squeeze(-1)
    lse = torch.logsumexp(logits[:, :L].float(), dim=-1)
    reference = chosen + 0.1 * torch.randn((B, L), device=DEVICE)
    advantages, dloss = torch.randn((B,), device=DEVICE), torch.randn((B, L), device=DEVICE)
    used = (torch.rand((B, L), device=DEVICE) > 0.1).to(torch.int32)
    block = min(65536, triton.next_power_of_2(V))

    def launch(c):
        grpo_bwd_kernel[(B * L,)](dloss, grads, logits, reference, ids, advantages, used, lse, BETA, B, V, L, prompt,
                                  BLOCK_SIZE=block, **c)

    rows = max(1, min(L, 16))

    def expected():
        part = (BETA * (1 - torch.exp(reference - chosen)) - advantages[:, None]) * dloss * used.float()
        hot = (torch.arange(V, device=DEVICE)[None, None, :] == ids[:, prompt:prompt + rows, None]).float()
        return [(hot - torch.exp(logp[:, :rows])) * part[:, :rows, None]]

    return Case([config(32, 4)], launch, lambda: [grads[:, :rows]], expected)


main("fla_grpo_backward", draw, make, 0.01)
