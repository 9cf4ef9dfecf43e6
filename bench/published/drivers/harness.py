# What every driver of published kernels uses, under Python with Triton and under Kiln alike. A driver is run as
#
#     DRIVER check|warm|bench SEED INDEX        with PUBLISHED=folder of the collected kernels
#
# check: small sizes, each configuration against the reference; without a GPU on the CPU (Triton: TRITON_INTERPRET=1).
# warm: launches all configurations but the first, so that caches on disk have them. bench: the first launch of the first
# configuration, then every configuration checked and measured; prints one line of fields separated by tabs.
import math
import os
import sys
import time

import torch
import triton
import triton.language as tl
import triton.testing

sys.path.append(os.environ["PUBLISHED"])
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Triton's interpreter multiplies the bits of bfloat16 as integers: under it the same checks are done in float16.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
BF16, TL_BF16 = (torch.float16, tl.float16) if INTERPRETED else (torch.bfloat16, tl.bfloat16)


class Draw:
    """Sizes at random, the same under Python and Kiln."""

    def __init__(self, seed, index, name):
        self.state = seed * 1000003 + index * 8191 + sum(ord(c) * (i + 1) for i, c in enumerate(name))
        for _ in range(8):
            self.next()

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 18446744073709551616
        return self.state >> 33

    def pick(self, values):
        return values[self.next() % len(values)]

    def between(self, low, high, step=1):
        """Log-uniform between both, a multiple of `step`."""
        x = low * math.exp(self.next() / 2147483648.0 * math.log(high / low))
        return max(step, int(x) // step * step)


class Case:
    """One draw: `launch(config)` runs the kernel, `result()` is what it left (tensors), `expected()` what that should be."""

    def __init__(self, configs, launch, result, expected, reset=None):
        self.configs = configs
        self.launch = launch
        self.result = result
        self.expected = expected
        self.reset = reset


def randn(*shape, dtype=torch.float16, scale=1.0):
    return (torch.randn(shape, device=DEVICE, dtype=torch.float32) * scale).to(dtype)


def empty(*shape, dtype=torch.float16):
    return torch.empty(shape, device=DEVICE, dtype=dtype)


def ints(low, high, shape, dtype=torch.int32):
    return torch.randint(low, high, shape, device=DEVICE, dtype=torch.int32).to(dtype)


def nibbles(q, dim):
    """The eight 4-bit numbers of each int32, lowest first, along a dimension."""
    shifts = torch.arange(8, dtype=torch.int32, device=DEVICE) * 4
    if dim == 0:
        return ((q[:, None, :] >> shifts[None, :, None]) & 15).reshape(q.shape[0] * 8, q.shape[1])
    return ((q[:, :, None] >> shifts) & 15).reshape(q.shape[0], q.shape[1] * 8)


def config(warps=4, stages=3, **blocks):
    return dict(num_warps=warps, num_stages=stages, **blocks)


def row_settings(n):
    """(block, warps) that Liger and Unsloth choose for rows of n elements."""
    block = triton.next_power_of_2(n)
    return block, 32 if block >= 32768 else 16 if block >= 8192 else 8 if block >= 2048 else 4


def allocate_descriptors():
    """Triton keeps descriptors made by kernels in memory that it asks for; Kiln has its own."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=DEVICE))


def worst_error(result, expected):
    """The largest difference over the largest expected magnitude, of the worst tensor."""
    worst = 0.0
    for r, e in zip(result, expected):
        e = e.float()
        error = (r.float() - e).abs().max().item() / max(e.abs().max().item(), 1e-20)
        if not error <= worst:  # also when it is no number
            worst = error
    return worst


def first_line(e):
    return (str(e).strip() or repr(e)).split("\n")[0][:160]


def checked(case, c, expected, tolerance):
    if case.reset is not None:
        case.reset()
    case.launch(c)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return worst_error(case.result(), expected)


def check(name, sizes, case, tolerance):
    expected = case.expected()
    wrong = 0
    for c in case.configs:
        try:
            error = checked(case, c, expected, tolerance)
            if not error <= tolerance:
                wrong += 1
            print(name, text_of(sizes), c, "error %.2e" % error, "ok" if error <= tolerance else "WRONG", flush=True)
        except Exception as e:
            print(name, text_of(sizes), c, "fails:", first_line(e), flush=True)
            wrong += 1
    sys.exit(1 if wrong else 0)


def text_of(sizes):
    return ",".join("%s=%s" % (k, v) for k, v in sizes.items())


@triton.jit
def one(x):
    tl.store(x, 1)


def warm(case):
    # What is built once for all kernels (Triton's launcher) is no part of a kernel's first launch.
    one[(1,)](empty(1, dtype=torch.int32))
    for c in case.configs[1:]:
        try:
            case.launch(c)
            torch.cuda.synchronize()
        except Exception as e:
            print("warm:", c, first_line(e), file=sys.stderr)


def bench(name, sizes, case, tolerance):
    torch.cuda.synchronize()  # computes what is pending
    start = time.perf_counter()
    try:
        case.launch(case.configs[0])
        torch.cuda.synchronize()
    except Exception as e:
        print("first:", case.configs[0], first_line(e), file=sys.stderr)
    first = (time.perf_counter() - start) * 1e3
    expected = case.expected()
    best, best_config, worst, wrong = 0.0, None, 0.0, 0
    for c in case.configs:
        try:
            error = checked(case, c, expected, tolerance)
            if not error <= tolerance:
                print("wrong:", c, "error %.2e" % error, file=sys.stderr)
                wrong += 1
            if not error <= worst:
                worst = error
            us = triton.testing.do_bench(lambda: case.launch(c), warmup=5, rep=30, return_mode="median") * 1e3
            print("took: %.2f us" % us, c, file=sys.stderr)
            if best_config is None or us < best:
                best, best_config = us, c
        except Exception as e:
            print("skipped:", c, first_line(e), file=sys.stderr)
    print("RESULT", name, text_of(sizes), "%.2f" % best, "%.0f" % first, "%.1e" % worst,
          "none" if best_config is None else "wrong" if wrong else "right", best_config, sep="\t", flush=True)


def main(name, draw, make, tolerance):
    mode, seed, index = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(seed)
    sizes = draw(Draw(seed, index, name), mode == "check" or mode == "one")
    case = make(**sizes)
    if mode == "check":
        check(name, sizes, case, tolerance)
    elif mode == "one":
        case.launch(case.configs[0])
    elif mode == "warm":
        warm(case)
    else:
        bench(name, sizes, case, tolerance)
