"""A pytest plugin of run.py --configurations N: tests of libraries stay short, under both compilers alike.

An autotuner tries N configurations of a kernel, drawn by the kernel's name, each for some milliseconds. Memory that a
test leaves with torch is given back where it is much.
"""
import hashlib
import json
import os

import pytest
import torch
import triton.testing
from triton.runtime import autotuner

MOST_KEPT = 6 << 30  # bytes that torch may hold between tests: several workers share a GPU
kept = json.loads(os.environ["KILN_SUITE"])["configurations"]
init = autotuner.Autotuner.__init__


def name_of(kernel):
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"): kernel = kernel.fn
    return getattr(kernel, "__name__", "")


def init_with_few(self, fn, arg_names, configs, *args, **keywords):
    configs = list(configs or [])
    order = sorted(range(len(configs)), key=lambda i: hashlib.sha1(f"{name_of(fn)} {i}".encode()).digest())
    init(self, fn, arg_names, [configs[i] for i in sorted(order[:kept])], *args, **keywords)


def briefly(inner, most):
    """`inner` with its times in ms cut, where they are given by name or not at all."""

    def call(fn, *args, **keywords):
        if not args: keywords.update({name: min(ms, keywords.get(name, ms)) for name, ms in most.items()})
        return inner(fn, *args, **keywords)

    return call


autotuner.Autotuner.__init__ = init_with_few
triton.testing.do_bench = briefly(triton.testing.do_bench, {"warmup": 5, "rep": 10})
triton.testing.do_bench_cudagraph = briefly(triton.testing.do_bench_cudagraph, {"rep": 10})


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    if torch.cuda.is_initialized() and torch.cuda.memory_reserved() > MOST_KEPT: torch.cuda.empty_cache()
