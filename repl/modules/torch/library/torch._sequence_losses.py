"""The kernels of the connectionist temporal classification: one program for each sequence, with all places of its
target in registers."""
import torch
import triton
import triton.language as tl
from torch import _kiln


@triton.jit
def _either(a, b, c):
    """log(exp(a) + exp(b) + exp(c)), of which all may be -inf."""
    most = tl.maximum(tl.maximum(a, b), c)
    most = tl.where(most == -float("inf"), 0, most)
    return most + tl.log(tl.exp(a - most) + tl.exp(b - most) + tl.exp(c - most))


@triton.jit
def _forward_kernel(logs, labels, steps, lengths, losses, alphas, T, N, C, S, blank, L: tl.constexpr,
                    KEEPS: tl.constexpr):
    """Graves and others, 2006: place 2 i + 1 is the target's label i, those between are blanks."""
    n = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, L)
    time, length = tl.load(steps + n), tl.load(lengths + n)
    places, of_label = 2 * length + 1, (s - 1) // 2
    is_label = (s % 2 == 1) & (s < places)
    label = tl.load(labels + n * S + of_label, mask=is_label, other=blank)
    two_ahead = tl.load(labels + n * S + of_label - 1, mask=is_label & (s > 2), other=blank)
    jumps = is_label & (s > 2) & (label != two_ahead)
    none = tl.full((L,), -float("inf"), logs.dtype.element_ty)
    alpha = tl.where(s == 0, tl.full((L,), 0, none.dtype), none)
    for t in range(0, time):
        one, two = tl.gather(alpha, tl.maximum(s - 1, 0), 0), tl.gather(alpha, tl.maximum(s - 2, 0), 0)
        one, two = tl.where(s > 0, one, none), tl.where(jumps, two, none)
        if t == 0:
            one, two = tl.where(s == 1, tl.full((L,), 0, none.dtype), none), none
        row = tl.load(logs + (t * N + n) * C + label, mask=s < places, other=-float("inf"))
        alpha = tl.where(s < places, _either(alpha, one, two) + row, none)
        if KEEPS:
            tl.store(alphas + (t * N + n) * (2 * S + 1) + s, alpha, mask=s < 2 * S + 1)
    ends = tl.where((s == places - 1) | (s == places - 2), alpha, none)
    most = tl.max(ends, 0)
    most = tl.where(most == -float("inf"), 0, most)
    tl.store(losses + n, -(most + tl.log(tl.sum(tl.exp(ends - most), 0))))


@triton.jit
def _backward_kernel(logs, labels, steps, lengths, losses, alphas, T, N, C, S, blank, L: tl.constexpr):
    """What is kept of alpha becomes the share of the loss's paths that are at each place at each step."""
    n = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, L)
    time, length, loss = tl.load(steps + n), tl.load(lengths + n), tl.load(losses + n)
    places, of_label = 2 * length + 1, (s - 1) // 2
    is_label = (s % 2 == 1) & (s < places)
    label = tl.load(labels + n * S + of_label, mask=is_label, other=blank)
    two_on = tl.load(labels + n * S + of_label + 1, mask=is_label & (s + 2 < places), other=blank)
    jumps = is_label & (s + 2 < places) & (label != two_on)
    none = tl.full((L,), -float("inf"), logs.dtype.element_ty)
    beta = none
    for i in range(0, T):
        t = T - 1 - i
        at = alphas + (t * N + n) * (2 * S + 1) + s
        row = tl.load(logs + (t * N + n) * C + label, mask=(s < places) & (t < time), other=0)
        one, two = tl.gather(beta, tl.minimum(s + 1, L - 1), 0), tl.gather(beta, tl.minimum(s + 2, L - 1), 0)
        beta = _either(beta, tl.where(s + 1 < places, one, none), tl.where(jumps, two, none)) + row
        ends = ((s == places - 1) | (s == places - 2)) & (s >= 0)
        beta = tl.where(t == time - 1, tl.where(ends, row, none), beta)
        beta = tl.where((s < places) & (t < time), beta, none)
        alpha = tl.load(at, mask=(s < places) & (t < time), other=-float("inf"))
        passes = (alpha > -float("inf")) & (beta > -float("inf"))
        share = tl.exp(tl.where(passes, alpha + beta - row + loss, 0))
        tl.store(at, tl.where(passes, share, 0), mask=s < 2 * S + 1)


def _block(S):
    return max(4, triton.next_power_of_2(2 * S + 1))


def forward(logs, labels, steps, lengths, blank, keeps):
    """(losses, alphas or None) of [T, N, C] logarithms and [N, S] labels."""
    _kiln.runs_kernels(logs)
    T, N, C = logs.shape
    S = labels.shape[1]
    losses = torch.empty(N, dtype=logs.dtype, device=logs.device)
    alphas = torch.full((T, N, 2 * S + 1), float("-inf"), dtype=logs.dtype, device=logs.device) if keeps else None
    if N > 0:
        _forward_kernel[(N,)](logs.contiguous(), labels, steps, lengths, losses, alphas if keeps else losses, T, N, C,
                              S, blank, L=_block(S), KEEPS=keeps, num_warps=1 if S < 64 else 4)
    return losses, alphas


def shares(logs, labels, steps, lengths, losses, alphas, blank):
    """The share of paths at each place, [T, N, 2 S + 1]."""
    T, N, C = logs.shape
    S = labels.shape[1]
    out = alphas.clone()
    if N > 0:
        _backward_kernel[(N,)](logs.contiguous(), labels, steps, lengths, losses.contiguous(), out, T, N, C, S, blank,
                               L=_block(S), num_warps=1 if S < 64 else 4)
    return out
