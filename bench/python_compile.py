"""kiln.compile beside torch.compile (Inductor) and eager PyTorch: functions of models, of shapes drawn from a seed.

    PYTHONPATH=build/release/python python bench/python_compile.py [NAME …] [--seed N] [--dtype bf16] [--json FILE]

For each function and contender, in turn:
  cold   seconds of the first call, both programs' caches being empty: capture, planning, compilation
  call   us of CPU for a call, with arguments so small that the device waits for the CPU
  run    us of the device for a call, as a CUDA graph; on the CPU the wall time of a call
  GB/s   of the arguments and results at `run`
Results, gradients too, are compared with eager PyTorch's in float64. Ratios are eager's or Inductor's time over Kiln's:
above 1 Kiln is faster. Exit status 1: a result of Kiln's is further from float64 than its dtype and eager explain.
"""
import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time

# Empty caches, set before either program is imported.
_caches = tempfile.TemporaryDirectory()
for _name in ("KILN_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
    os.environ[_name] = os.path.join(_caches.name, _name)

import torch
import torch.nn.functional as F

import kiln
import kiln.dynamo


def rms_norm(x, w):
    h = x.float()
    return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def add_rms_norm(x, r, w):
    x = x + r
    return x, rms_norm(x, w)


def swiglu(gate, up):
    return F.silu(gate) * up


def bias_gelu(x, b):
    return F.gelu(x + b)


def masked_softmax(x, m):
    return F.softmax((x * 0.125).masked_fill(m, float("-inf")), -1)


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def layer_norm(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b)


def cross_entropy(x, t):
    return F.cross_entropy(x.float(), t)


def mlp(x, w1, b1, w2):
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), w1, b1), approximate="tanh"), w2)


def norm_dropout_mask(x, m, w):
    return rms_norm(x * m * 1.25, w) + x


def adamw(params, grads, m, v):
    for p, g, a, b in zip(params, grads, m, v):
        a.lerp_(g, 0.1)
        b.mul_(0.999).addcmul_(g, g, value=0.001)
        p.mul_(1 - 1e-5).addcdiv_(a, b.sqrt() + 1e-8, value=-1e-3)


class Case:
    """A function with its arguments; `trains`: its gradients are a part of the work."""

    def __init__(self, name, function, make, trains=False):
        self.name, self.function, self.make, self.trains = name, function, make, trains


def cases(rng):
    rows, cols = rng.choice([2048, 4096, 8192, 6000]), rng.choice([1024, 2048, 4096, 5120, 3000])
    heads, length = rng.choice([8, 16, 32]), rng.choice([512, 1024, 1000])
    vocabulary, width = rng.choice([32000, 50257]), rng.choice([768, 1024, 2048])
    small = {"rows": 4, "cols": 64, "heads": 2, "length": 16, "vocabulary": 64, "width": 32}
    full = {"rows": rows, "cols": cols, "heads": heads, "length": length, "vocabulary": vocabulary, "width": width}
    table = [
        Case("rms_norm", rms_norm, lambda n, s: (n(s["rows"], s["cols"]), n(s["cols"]))),
        Case("add_rms_norm", add_rms_norm, lambda n, s: (n(s["rows"], s["cols"]), n(s["rows"], s["cols"]),
                                                         n(s["cols"]))),
        Case("swiglu", swiglu, lambda n, s: (n(s["rows"], s["cols"]), n(s["rows"], s["cols"]))),
        Case("bias_gelu", bias_gelu, lambda n, s: (n(s["rows"], s["cols"]), n(s["cols"]))),
        Case("masked_softmax", masked_softmax, lambda n, s: (n(s["heads"], s["length"], s["length"]), torch.ones(
            s["length"], s["length"], dtype=torch.bool, device=n(1).device).triu(1))),
        Case("rope", rope, lambda n, s: (n(s["heads"], s["length"], 128), n(s["length"], 128), n(s["length"], 128))),
        Case("norm_dropout_mask", norm_dropout_mask, lambda n, s: (n(s["rows"], s["cols"]), (n(
            s["rows"], s["cols"]) > 0).to(n(1).dtype), n(s["cols"]))),
        Case("swiglu, trained", swiglu, lambda n, s: (n(s["rows"], s["cols"]), n(s["rows"], s["cols"])), True),
        Case("layer_norm, trained", layer_norm, lambda n, s: (n(s["rows"], s["cols"]), n(s["cols"]), n(s["cols"])),
             True),
        Case("cross_entropy, trained", cross_entropy, lambda n, s: (n(s["rows"] // 4, s["vocabulary"]), torch.randint(
            0, s["vocabulary"], (s["rows"] // 4, ), device=n(1).device)), True),
        Case("mlp, trained", mlp, lambda n, s: (n(s["rows"] // 2, s["width"]), n(
            4 * s["width"], s["width"], scale=0.03), n(4 * s["width"]), n(s["width"], 4 * s["width"], scale=0.03)),
             True),
        Case("adamw", adamw, lambda n, s: tuple([(n if k < 3 else lambda *a: n(*a).abs())(s["rows"] * m, s["cols"])
                                                 for m in (1, 2)] for k in range(4))),
    ]
    return table, small, full


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, (tuple, list)) else [value]


def copied(value, dtype=None):
    if isinstance(value, (tuple, list)): return type(value)(copied(v, dtype) for v in value)
    out = value.detach().clone()
    return out.to(dtype) if dtype and out.is_floating_point() else out


def work_of(case, function, arguments):
    """One call as it is measured; gives all that it computes."""
    if not case.trains: return lambda: function(*arguments)
    floats = [a.requires_grad_() for a in arguments if a.is_floating_point()]
    with torch.no_grad(): like = case.function(*arguments)
    seed = torch.ones_like(like)

    def train():
        out = function(*arguments)
        return [out.detach(), *torch.autograd.grad(out, floats, seed)]

    return train


def results(case, function, arguments):
    """Of one call: what it returns and what it changed."""
    got = work_of(case, function, arguments)()
    return [t.detach().double() for t in flat([got if got is not None else [], [] if case.trains else list(arguments)])]


def error_of(got, want):
    worst = 0.0
    for a, b in zip(got, want):
        scale = b[b.isfinite()].square().mean().sqrt().item() if b.isfinite().any() else 1.0
        off = (a - b)[b.isfinite()].abs().max().item() if b.isfinite().any() else 0.0
        worst = max(worst, off / max(scale, 1e-30))
    return worst


def median_us(call, wait, seconds=0.3):
    for _ in range(3): call()
    wait()
    taken, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken) < 5:
        start = time.perf_counter()
        call()
        wait()
        taken.append((time.perf_counter() - start) * 1e6)
    return statistics.median(taken)


def cpu_us(call, wait, batch=50, batches=20):
    for _ in range(20): call()
    taken = []
    for _ in range(batches):
        wait()
        start = time.perf_counter()
        for _ in range(batch): call()
        taken.append((time.perf_counter() - start) / batch * 1e6)
    wait()
    return statistics.median(taken)


def graph_us(call):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3): call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3): graph.replay()
    torch.cuda.synchronize()
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    repeats = max(5, min(1000, int(100 / max(begin.elapsed_time(end), 1e-3))))
    taken = []
    for _ in range(5):
        begin.record()
        for _ in range(repeats): graph.replay()
        end.record()
        end.synchronize()
        taken.append(begin.elapsed_time(end) / repeats * 1e3)
    return statistics.median(taken)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dtype", choices=["f32", "bf16", "f16"])
    parser.add_argument("--json")
    parser.add_argument("--contenders", default="eager,inductor,kiln")
    given = parser.parse_args()
    gpu = torch.cuda.is_available()
    device, wait = ("cuda", torch.cuda.synchronize) if gpu else ("cpu", lambda: None)
    dtypes = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
    dtype = dtypes[given.dtype or ("bf16" if gpu else "f32")]
    torch.manual_seed(given.seed)

    def normal(*shape, scale=1.0): return (torch.randn(*shape, device=device) * scale).to(dtype)

    make = {"eager": lambda f: f, "inductor": lambda f: torch.compile(f, dynamic=False),
            "kiln": lambda f: kiln.compile(f, dynamic=False)}
    print(f"{torch.cuda.get_device_name() if gpu else 'CPU'}, torch {torch.__version__}, {dtype}, seed {given.seed}")
    rows, wrong = [], False
    table, small, full = cases(random.Random(given.seed))
    if not gpu: full.update(rows=512, length=256, vocabulary=4000, width=256)
    for case in table:
        if given.names and not any(case.name.startswith(n) for n in given.names): continue
        tiny, arguments = case.make(normal, small), case.make(normal, full)
        exact = results(case, case.function, copied(arguments, torch.float64))
        bytes_moved = sum(t.numel() * t.element_size() for t in flat(list(arguments)))
        found = {}
        for name in given.contenders.split(","):
            row = {"case": case.name, "shapes": [list(t.shape) for t in flat(list(arguments))], "contender": name}
            rows.append(row)
            found[name] = row
            torch._dynamo.reset()
            kiln.dynamo.clear_report()
            try:
                function = make[name](case.function)
                start = time.perf_counter()
                row["error"] = error_of(results(case, function, copied(arguments)), exact)
                wait()
                row["cold_s"] = time.perf_counter() - start
                work = work_of(case, function, copied(arguments))
                row["run_us"] = graph_us(work) if gpu else median_us(work, wait)
                row["gb_s"] = bytes_moved / row["run_us"] / 1e3
                if name == "kiln":
                    report = kiln.dynamo.report()
                    row["covered"], row["operations"] = report.covered, report.operations
                    row["kernels"] = report.kernels
                torch._dynamo.reset()
                row["call_us"] = cpu_us(work_of(case, make[name](case.function), copied(tiny)), wait)
            except Exception as e:  # one contender's failure is a row
                row["problem"] = f"{type(e).__name__}: {e}".splitlines()[0]
                wrong |= name == "kiln"
        print(f"\n{case.name}  {' '.join('x'.join(map(str, s)) for s in found[name]['shapes'][:4])}")
        for name, row in found.items():
            if "problem" in row:
                print(f"  {name:9} {row['problem'][:100]}")
                continue
            ratio = f"{row['run_us'] / found['kiln']['run_us']:6.2f}x" if "run_us" in found.get("kiln", {}) else ""
            print(f"  {name:9} run {row['run_us']:10.1f} us {row['gb_s']:7.0f} GB/s  call {row['call_us']:7.1f} us  "
                  f"cold {row['cold_s']:6.2f} s  error {row['error']:.1e} {ratio}")
        if "error" in found.get("kiln", {}):
            others = [r["error"] for n, r in found.items() if n == "eager" and "error" in r]
            if found["kiln"]["error"] > 4 * max([8 * torch.finfo(dtype).eps, *others]):
                wrong = True
                print("  WRONG: Kiln is further from float64 than eager and the dtype explain")
    if given.json:
        with open(given.json, "w") as f: json.dump(rows, f, indent=1)
    for other in given.contenders.split(","):
        pairs = [(r["run_us"], k["run_us"]) for r in rows for k in rows if r["contender"] == other and
                 k["contender"] == "kiln" and r["case"] == k["case"] and "run_us" in r and "run_us" in k]
        if pairs and other != "kiln":
            print(f"\n{other} over kiln, geometric mean of {len(pairs)}: "
                  f"{statistics.geometric_mean([a / b for a, b in pairs]):.2f}")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
