# The gated delta rule one token after the other, a state for each head kept in registers.
from harness import *
from src_fla_recurrent_delta import fused_recurrent_gated_delta_rule_fwd_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, T=9, H=2, HV=4, K=40, V=20)
    return dict(B=d.between(1, 128), T=d.pick([1, 2, 4, 17, 64]), H=d.pick([4, 8, 16]), HV=d.pick([16, 32]), K=128, V=128)


def make(B, T, H, HV, K, V):
    q, k, v = randn(B, T, H, K, dtype=BF16), randn(B, T, H, K, dtype=BF16), randn(B, T, HV, V, dtype=BF16)
    beta = torch.sigmoid(torch.randn((B, T, HV), device=DEVICE)).to(BF16)
    g = -torch.rand((B, T, HV), device=DEVICE)
    h0 = torch.randn((B, HV, K, V), device=DEVICE)
    o, ht = torch.empty_like(v), torch.empty_like(h0)
    columns = min(8, triton.next_power_of_2(V))
    scale = 1 / math.sqrt(K)

    def launch(c):
        fused_recurrent_gated_delta_rule_fwd_kernel[(triton.cdiv(V, columns) * B * HV,)](
            q=q, k=k, v=v, g=g, gk=None, gv=None, beta=beta, A_log=None, dt_bias=None, o=o, h0=h0, ht=ht, cu_seqlens=None,
            scale=scale, T=T, H=H, HV=HV, K=K, V=V, BK=triton.next_power_of_2(K), BV=columns, USE_G=True, USE_GK=False,
            USE_GV=False, USE_QK_L2NORM_IN_KERNEL=True, IS_BETA_HEADWISE=True, USE_INITIAL_STATE=True,
            STORE_FINAL_STATE=True, STATE_V_FIRST=False, IS_VARLEN=False, USE_GATE_IN_KERNEL=False, HAS_DT_BIAS=False,
            APPLY_BETA_SIGMOID=False, ALLOW_NEG_EIGVAL=False, **c)

    def expected():
        # Heads of q and k serve HV / H heads of v each.
        of = torch.arange(HV, device=DEVICE) // (HV // H)
        h, outs = h0.clone(), []
        for t in range(T):
            qt, kt = [torch.index_select(x[:, t].float(), 1, of) for x in (q, k)]
            qt = qt / torch.sqrt((qt * qt).sum(-1, keepdim=True) + 1e-6) * scale
            kt = kt / torch.sqrt((kt * kt).sum(-1, keepdim=True) + 1e-6)
            h = h * torch.exp(g[:, t])[:, :, None, None]
            new = beta[:, t].float()[:, :, None] * (v[:, t].float() - (h * kt[:, :, :, None]).sum(2))
            h = h + kt[:, :, :, None] * new[:, :, None, :]
            outs.append((h * qt[:, :, :, None]).sum(2))
        return [torch.stack(outs, dim=1), h]

    return Case([config(1, 3)], launch, lambda: [o, ht], expected)


main("fla_recurrent_delta", draw, make, 0.01)
