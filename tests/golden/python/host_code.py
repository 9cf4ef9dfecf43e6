# As the host side of a kernel's file is written.
from __future__ import annotations

import argparse
import functools
import itertools
import logging
import os
import sys
from collections import defaultdict, namedtuple
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

logger = logging.getLogger(__name__)
DEVICE = os.environ.get("NO_SUCH_DEVICE_VARIABLE", "cuda")
HAS_TMA = False
try:
    import no_such_module_of_kernels
except ImportError:
    no_such_module_of_kernels = None
try:
    from no_such_module_of_kernels import x as y
except (ImportError, ModuleNotFoundError):
    y = None


class Activation(str, Enum):
    RELU = "relu"
    GELU = "gelu"

    @classmethod
    def parse(cls, text: str) -> "Activation":
        return cls(text.lower())


class Shape(NamedTuple):
    M: int
    N: int
    K: int = 64

    @property
    def flops(self) -> int:
        return 2 * self.M * self.N * self.K


@dataclass
class KernelConfig:
    block_m: int = 128
    block_n: int = 128
    num_warps: int = 4
    extra: Dict[str, Any] = field(default_factory=dict)

    def key(self) -> Tuple[int, ...]:
        return (self.block_m, self.block_n, self.num_warps)


def get_configs() -> List[KernelConfig]:
    return [
        KernelConfig(block_m=bm, block_n=bn, num_warps=w)
        for bm, bn, w in itertools.product([64, 128], [64, 128], [4, 8])
        if not (bm == 64 and bn == 64 and w == 8)
    ]


def prune(configs: List[KernelConfig], named_args: dict, **kwargs) -> List[KernelConfig]:
    return list(filter(lambda c: named_args["M"] >= c.block_m, configs))


@functools.lru_cache(maxsize=None)
def best_config(m: int, n: int) -> KernelConfig:
    return min(get_configs(), key=lambda c: abs(c.block_m - m) + abs(c.block_n - n))


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def grid(meta):
    return (cdiv(1000, meta["BLOCK_M"]) * cdiv(500, meta["BLOCK_N"]),)


@contextmanager
def set_env(**values):
    old = {k: os.environ.get(k) for k in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for k, v in old.items():
            if v is None:
                os.environ.pop(k, None)
            else:
                os.environ[k] = v


class Registry:
    _ops: Dict[str, Callable] = {}

    @classmethod
    def register(cls, name: str, *, override: bool = False):
        def decorator(fn):
            if name in cls._ops and not override:
                raise KeyError(f"{name} is there")
            cls._ops[name] = fn
            return fn

        return decorator

    def __class_getitem__(cls, name):
        return cls._ops[name]


@Registry.register("double")
def double(x):
    return 2 * x


class Function:
    @staticmethod
    def forward(ctx, x, *, scale: float = 1.0):
        ctx.saved = x
        return x * scale

    @classmethod
    def apply(cls, *args, **kwargs):
        ctx = type("Ctx", (), {})()
        return cls.forward(ctx, *args, **kwargs), ctx.saved


def chunks(items, n):
    for i in range(0, len(items), n):
        yield items[i:i + n]


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--m", type=int, default=256)
    parser.add_argument("--activation", type=Activation.parse, default=Activation.RELU)
    args, _ = parser.parse_known_args(argv)
    shape = Shape(args.m, 512)
    print(shape, shape.flops, shape._replace(K=32), args.activation, args.activation == "relu")
    configs = prune(get_configs(), {"M": 64})
    print(len(get_configs()), [c.key() for c in configs], asdict(best_config(60, 130)))
    print(grid({"BLOCK_M": 64, "BLOCK_N": 32}), best_config.cache_info().misses)
    with set_env(NO_SUCH_DEVICE_VARIABLE="1"):
        print(os.environ["NO_SUCH_DEVICE_VARIABLE"])
    print(os.environ.get("NO_SUCH_DEVICE_VARIABLE"), DEVICE, y, Registry["double"](4), Function.apply(3, scale=2.0))
    totals = defaultdict(lambda: [0, 0.0])
    for (dtype, causal), part in zip(itertools.product(("fp16", "bf16"), (True, False)), chunks(list(range(8)), 2)):
        totals[dtype][0] += sum(part)
        totals[dtype][1] += 0.5 if causal else 1
    print(dict(totals), {k: f"{v[1]:6.2f}" for k, v in sorted(totals.items(), reverse=True)})
    header = ["name", "ms", "TFLOPS"]
    rows = [("a", 1.25, 10.0), ("bb", 0.5, 123.456)]
    print(" | ".join(f"{h:>8}" for h in header))
    for name, ms, tf in rows:
        print(f"{name:<8} | {ms:>8.3f} | {tf:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main([]))
