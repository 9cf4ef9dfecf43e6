# Tokens sampled from what a draft left of the target distribution: an argmax over a vocabulary.
from harness import *
from src_recovered_tokens import sample_recovered_tokens_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=3, DRAFTS=2, V=3000)
    return dict(B=d.between(1, 64), DRAFTS=d.pick([1, 3, 5]), V=d.pick([32000, 50257, 128256]))


def make(B, DRAFTS, V):
    n = B * DRAFTS
    target = torch.softmax(torch.randn((n, V), device=DEVICE) * 2.0, dim=-1)
    draft = torch.softmax(torch.randn((n, V), device=DEVICE) * 2.0, dim=-1)
    noise = -torch.log(torch.rand((B, V), device=DEVICE) * 0.999 + 0.0005)
    ends = (torch.arange(B, device=DEVICE, dtype=torch.int32) + 1) * DRAFTS
    ids, out = torch.zeros((n,), dtype=torch.int32, device=DEVICE), torch.empty((n,), dtype=torch.int32, device=DEVICE)

    def launch(c):
        sample_recovered_tokens_kernel[(B, DRAFTS)](out, ends, ids, draft, target, noise, V, triton.next_power_of_2(V),
                                                    NO_DRAFT_PROBS=False, **c)

    def weights():
        return (target - draft).clamp(min=0.0) / noise.repeat_interleave(DRAFTS, dim=0)

    # Compared by weight, since equal weights may have two places.
    return Case([config()], launch, lambda: [torch.gather(weights(), 1, out.to(torch.int64)[:, None])[:, 0]],
                lambda: [weights().amax(dim=-1)])


main("recovered_tokens", draw, make, 1e-5)
