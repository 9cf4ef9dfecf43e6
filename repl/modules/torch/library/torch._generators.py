"""Random numbers that are functions alone, states of generators, and settings of PyTorch that have no effect here."""
import math
import os

import torch
import triton
import triton.language as tl
from torch import _kiln
from triton.language.extra import libdevice

lazily = _kiln.lazily


# --- states: the seed and how many draws there were of it, as bytes


def _state(generator=None):
    seed, draws = _kiln.rng_state(generator)
    words = (seed % 2**64).to_bytes(8, "little") + (draws % 2**64).to_bytes(8, "little")
    return torch.tensor(list(words), dtype=torch.uint8, device="cpu")


def _set_state(state, generator=None):
    if not isinstance(state, torch.Tensor) or state.dtype is not torch.uint8 or state.numel() != 16:
        raise RuntimeError("RNG state is wrong: it is what get_rng_state() returned, a tensor of 16 bytes of uint8")
    data = bytes(state.cpu().tolist())
    _kiln.rng_state(generator, [int.from_bytes(data[:8], "little", signed=True),
                                int.from_bytes(data[8:], "little", signed=True)])


def get_rng_state():
    return _state()


def set_rng_state(new_state):
    _set_state(new_state)


def initial_seed():
    return _kiln.rng_state()[0] % 2**64


def seed():
    """A seed from the operating system."""
    found = int.from_bytes(os.urandom(7), "little")
    torch.manual_seed(found)
    return found


# --- draws


def poisson(input, generator=None):
    """Arrivals of an exponential clock within the rates, all places at once; from 30 on the nearest normal number."""
    if not input.is_floating_point():
        raise NotImplementedError(f"poisson() does not apply to tensors of {input.dtype}")
    with torch.no_grad():
        rate = input.detach().float()
        few = rate < _MANY
        return torch.where(few, _few_arrivals(torch.where(few, rate, 0.0), generator),
                           _many_arrivals(rate, generator)).to(input.dtype)


_MANY = 30.0
_FEW_TRIALS = 128


@lazily
def _few_arrivals(rate, generator):
    """By the inverse of the distribution, summed from 0 on: above 30 + 8 roots of it are less than 1e-12."""
    u = _kiln.uniform(rate.shape, rate, generator).double()
    rate = rate.double()
    term = (-rate).exp()
    below, count = term, torch.zeros_like(rate)
    for k in range(1, 76):
        count = count + (u >= below).to(count.dtype)
        term = term * rate / k
        below = below + term
    return count.float()


@lazily
def _many_arrivals(rate, generator):
    """Hörmann's and others' expansions start here: the cube root of a normal number has the skewness (Wilson and
    Hilferty, 1931)."""
    u = _kiln.uniform(rate.shape, rate, generator).double()
    u = (u + 2.0**-25).clamp(max=1 - 2.0**-25)
    z = torch.erfinv(2 * u - 1) * math.sqrt(2.0)
    lam = rate.double() + 1 / 3
    x = lam * (1 - 1 / (9 * lam) + z / (3 * lam.sqrt())) ** 3 - 0.5
    return (x + 0.5).floor().clamp(min=0).float()


@triton.jit
def _binomial_kernel(n_ptr, p_ptr, out_ptr, seed, elements, FEW: tl.constexpr, BLOCK: tl.constexpr):
    """Few trials one after the other, each of its own stream of random numbers."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    n, p = tl.load(n_ptr + at, mask=at < elements, other=0), tl.load(p_ptr + at, mask=at < elements, other=0)
    few = n <= FEW
    most, k = tl.max(tl.where(few, n, 0), 0), 0
    count = tl.zeros((BLOCK,), tl.float32)
    while k < most:
        count += ((tl.rand(seed + k, at) < p) & (k < n)).to(tl.float32)
        k += 1
    if tl.max((few == 0).to(tl.int32), 0) > 0:
        drawn_for = (few == 0) & (n < float("inf")) & (p > 0) & (p < 1)
        rarer = tl.where(drawn_for, tl.minimum(p, 1 - p), 0.0).to(tl.float64)
        drawn = _many_trials(tl.where(drawn_for, n, 1).to(tl.float64), rarer, seed, at).to(tl.float32)
        drawn = tl.where(p > 0.5, n - drawn, drawn)
        # A probability of 0, of 1, or none at all, and no number of trials.
        drawn = tl.where(p <= 0, 0.0, tl.where(p >= 1, n, drawn))
        drawn = tl.where((p == p) & (n == n) & (n < float("inf")), drawn, float("nan"))
        count = tl.where(few, count, drawn)
    tl.store(out_ptr + at, count, mask=at < elements)


@triton.jit
def _many_trials(n, p, seed, at):
    """Where few succeed, the trials between them are geometric. Else transformed rejection (Hörmann, 1993, BTRS), which
    accepts five of six."""
    rare = n * p < 10
    log_q = libdevice.log1p(-tl.where(p > 0, p, 0.5))
    last, count, k = tl.zeros_like(n), tl.zeros_like(n) - 1, 0
    while tl.max((rare & (p > 0) & (last <= n)).to(tl.int32), 0) > 0:
        u = tl.maximum(tl.rand(seed + k, at), 1.1641532182693481e-10).to(tl.float64)
        count += (last <= n).to(tl.float64)
        last += tl.ceil(tl.log(u) / log_q)
        k += 1
    count = tl.where(rare & (p > 0), count, 0.0)

    safe, q = tl.where(rare, 0.5, p), 1 - tl.where(rare, 0.5, p)
    trials = tl.where(rare, 100.0, n)
    deviation = tl.sqrt(trials * safe * q)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * safe
    center, squeeze, scale = trials * safe + 0.5, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
    mode = tl.floor((trials + 1) * safe)
    at_mode = libdevice.lgamma(mode + 1) + libdevice.lgamma(trials - mode + 1)
    open, found, k = rare == 0, tl.zeros_like(n), 0
    while tl.max(open.to(tl.int32), 0) > 0:
        u = tl.rand(seed + 2 * k, at).to(tl.float64) - 0.5
        v = tl.maximum(tl.rand(seed + 2 * k + 1, at), 1.1641532182693481e-10).to(tl.float64)
        us = tl.maximum(0.5 - tl.abs(u), 1e-12)
        x = tl.floor((2 * a / us + b) * u + center)
        inside = (x >= 0) & (x <= trials)
        y = tl.where(inside, x, mode)
        height = (at_mode - libdevice.lgamma(y + 1) - libdevice.lgamma(trials - y + 1)
                  + (y - mode) * tl.log(safe / q))
        taken = (us >= 0.07) & (v <= squeeze) | (tl.log(v * scale / (a / (us * us) + b)) <= height)
        found = tl.where(open & inside & taken, x, found)
        open = open & ((inside & taken) == 0)
        k += 1
    return tl.where(rare, count, found)


def binomial(count, prob, generator=None):
    """Successes among so many trials."""
    if not count.is_floating_point() or not prob.is_floating_point():
        raise RuntimeError("binomial only supports floating-point dtypes for count and prob")
    with torch.no_grad():
        n, p = [t.float().contiguous() for t in torch.broadcast_tensors(count.detach(), prob.detach())]
        _kiln.runs_kernels(n)
        out = torch.empty_like(n)
        seed, draws = _kiln.rng_state(generator)
        _kiln.rng_state(generator, [seed, draws + 1])
        if n.numel() > 0:
            mixed = (seed * 0x9E3779B97F4A7C15 + draws * 0xBF58476D1CE4E5B9) % 2**31
            _binomial_kernel[(triton.cdiv(n.numel(), 256),)](n, p, out, mixed, n.numel(), FEW=_FEW_TRIALS, BLOCK=256)
        return out.to(count.dtype)


# --- settings


def get_num_threads():
    return os.cpu_count() or 1


def set_num_threads(num):
    """No effect: KILN_THREADS chooses how many threads there are, when the program starts."""
    if not isinstance(num, int) or num <= 0:
        raise RuntimeError(f"expects a positive integer, got {num!r}")


def get_num_interop_threads():
    return 1


def set_num_interop_threads(num):
    set_num_threads(num)


def set_flush_denormal(mode):
    """False: denormal numbers are kept, whatever is asked for."""
    return False


def is_warn_always_enabled():
    return False


def set_warn_always(b):
    """No effect: nothing here warns once alone."""


def set_default_tensor_type(t):
    name = t if isinstance(t, str) else getattr(t, "__name__", "")
    if name.rpartition(".")[2] != "FloatTensor" or "cuda" in name:
        raise NotImplementedError("the default dtype is float32: give dtype= to what makes tensors, and choose the "
                                  "device by torch.set_default_device()")


def get_deterministic_debug_mode():
    return 2 if torch.are_deterministic_algorithms_enabled() else 0


def set_deterministic_debug_mode(debug_mode):
    torch.use_deterministic_algorithms(debug_mode not in (0, "default"))


def is_deterministic_algorithms_warn_only_enabled():
    return False


def is_inference_mode_enabled():
    return _kiln.is_no_grad()


def compiled_with_cxx11_abi():
    return True
