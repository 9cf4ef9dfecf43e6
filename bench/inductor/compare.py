"""torch.compile of five models: Inductor with Triton's compiler beside Inductor with Kiln's.

    PYTHONPATH=build/release/python:python python compare.py [MODEL …] [--rounds N] [--jobs N] [--json FILE]

(no PYTHONPATH where the wheel is installed). Every measurement is a process of its own with empty caches: first those
of the compiler (--jobs at once), then the cold ones, the two sides in turn. For each model and side:
  cold      seconds of the first call: capture, Inductor, the compiler, autotuning, with Inductor's own worker processes
  compiler  seconds within triton.compile, in a process that compiles one kernel at a time, and how many those were
  steady    us of a later call on the device, median, in the process of the cold one
  error     distance to eager PyTorch in float32, over the norm: the largest of the result and the gradients
Models that are trained run forward and backward. The goals are those of Kiln: the same results, compiler at most 1/4 of
Triton's time, cold at most 0.6, steady at least 1.0. Exit status 1: a result is further away than Triton's explains, or
a kernel fell back to Triton. Without a GPU small models run on the CPU, where neither compiles anything.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SIDES = ("triton", "kiln")


# ---- one measurement, in its process --------------------------------------------------------------------------------
def worker(side, name):
    import torch
    sys.path.insert(0, HERE)
    import models
    spent = watch_compiler(side)
    gpu = torch.cuda.is_available()
    device, wait = ("cuda", torch.cuda.synchronize) if gpu else ("cpu", lambda: None)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    make, make_input, trains = (models.MODELS if gpu else models.SMALL)[name]
    dtype = torch.float32 if name == "resnet50" or not gpu else torch.bfloat16
    torch.manual_seed(1)
    model, given = make().to(device).to(dtype), make_input(device, dtype)
    exact = make().to(device)
    exact.load_state_dict(model.state_dict())

    def call(function, x):
        """What a call computes: its result, and the gradients."""
        if not trains:
            with torch.no_grad(): return [function(x)]
        function.zero_grad(set_to_none=True)
        result = function(x)
        result.float().square().mean().backward()
        return [result.detach(), *(p.grad for p in function.parameters() if p.grad is not None)]

    want = [t.clone() for t in call(exact, given.float() if given.is_floating_point() else given)]
    compiled = torch.compile(model)
    wait()
    start = time.perf_counter()
    got = call(compiled, given)
    wait()
    row = {"cold_s": time.perf_counter() - start, "compiler_s": spent[0], "kernels": spent[1]}
    row["error"] = max(((a.float() - b).norm() / b.norm().clamp_min(1e-20)).item() for a, b in zip(got, want))
    row["right"] = all(bool(a.isfinite().all()) for a in got)
    del got, want, exact
    for _ in range(5): call(compiled, given)
    wait()
    taken = []
    for _ in range(30 if gpu else 3):
        if gpu:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call(compiled, given)
            end.record()
            end.synchronize()
            taken.append(begin.elapsed_time(end) * 1e3)
        else:
            start = time.perf_counter()
            call(compiled, given)
            taken.append((time.perf_counter() - start) * 1e6)
    row["steady_us"] = statistics.median(taken)
    if side == "kiln":
        import kiln.triton
        report = kiln.triton.report()
        row["fallbacks"], row["report"] = report.fallbacks, str(report)
    row["where"] = f"{torch.cuda.get_device_name() if gpu else 'CPU'}, torch {torch.__version__}"
    print(json.dumps(row))


def watch_compiler(side):
    """[seconds, kernels] of triton.compile in this process, as they grow."""
    spent = [0.0, 0]
    try:
        import triton
        import triton.compiler.compiler as compiler
    except ImportError:
        return spent
    if side == "kiln":
        import kiln.triton
        kiln.triton.enable()
    inner = triton.compile
    # The environment or a sitecustomize may have put Kiln there as well.
    if inner.__module__.startswith("kiln") != (side == "kiln"):
        raise RuntimeError(f"the side {side} would be compiled by {inner.__module__}")

    def compile(*args, **keywords):
        start = time.perf_counter()
        try:
            return inner(*args, **keywords)
        finally:
            spent[0] += time.perf_counter() - start
            spent[1] += 1

    for place in (triton, triton.compiler, compiler): place.compile = compile
    return spent


# ---- all of them ----------------------------------------------------------------------------------------------------
def measure(side, name, one_thread):
    with tempfile.TemporaryDirectory() as caches:
        env = dict(os.environ, KILN_TRITON="1" if side == "kiln" else "0")
        for cache in ("KILN_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            env[cache] = os.path.join(caches, cache)
        if one_thread: env["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        # Inductor's workers are Kiln's too, also where the package is not installed.
        site = os.path.join(HERE, "..", "triton_suite", "site")
        env["PYTHONPATH"] = os.pathsep.join([p for p in [os.environ.get("PYTHONPATH")] if p] + [site])
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--worker", side, name], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
        return {"problem": last[0][:300]}
    return json.loads(done.stdout.splitlines()[-1])


def one_of(rows, key):
    found = [r[key] for r in rows if key in r]
    return statistics.median(found) if found else float("nan")


def main():
    if sys.argv[1:2] == ["--worker"]: return worker(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=2, help="measurements of each side")
    parser.add_argument("--jobs", type=int, default=1, help="measurements of the compiler at once")
    parser.add_argument("--json", help="all measurements, into this file")
    o = parser.parse_intermixed_args()
    sys.path.insert(0, HERE)
    from models import MODELS
    if unknown := set(o.models) - set(MODELS): parser.error(f"no model {unknown.pop()}; there are {', '.join(MODELS)}")
    every, failed, ratios = [], False, {"compiler_s": [], "cold_s": [], "steady_us": []}
    names = o.models or list(MODELS)
    # One thread compiles in each of these, so that several may run at once; nothing else of them is a figure.
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        waiting = {(name, side): [pool.submit(measure, side, name, True) for _ in range(o.rounds)]
                   for name in names for side in SIDES}
        compiled = {key: [row.result() for row in rows] for key, rows in waiting.items()}
    print(f"{'model':14} {'side':7} {'cold s':>8} {'compiler s':>11} {'kernels':>8} {'steady us':>10} {'error':>8}")
    for name in names:
        found = {side: {"cold": [], "alone": compiled[name, side]} for side in SIDES}
        for n in range(o.rounds):
            for side in SIDES if n % 2 == 0 else SIDES[::-1]: found[side]["cold"].append(measure(side, name, False))
        every += [{"model": name, "side": side, "kind": kind, **row}
                  for side in SIDES for kind, rows in found[side].items() for row in rows]
        figures = {}
        for side in SIDES:
            both = [*found[side]["cold"], *found[side]["alone"]]
            for problem in {r["problem"] for r in both if "problem" in r}:
                failed = True
                print(f"{name:14} {side:7} {problem}")
            cold, alone = found[side]["cold"], found[side]["alone"]
            f = figures[side] = {
                "cold_s": one_of(cold, "cold_s"), "compiler_s": one_of(alone, "compiler_s"),
                "kernels": one_of(alone, "kernels"), "steady_us": one_of(cold, "steady_us"),
                "error": max((r["error"] for r in both if "error" in r), default=float("nan"))
            }
            print(f"{name:14} {side:7} {f['cold_s']:8.2f} {f['compiler_s']:11.2f} {f['kernels']:8.0f} "
                  f"{f['steady_us']:10.1f} {f['error']:8.1e}", flush=True)
            if not all(r.get("right", True) for r in both):
                failed = True
                print(f"{name:14} {side:7} not finite")
        theirs, ours = figures["triton"], figures["kiln"]
        for r in found["kiln"]["alone"]:
            if r.get("fallbacks"):
                failed = True
                print(r["report"])
        if not ours["error"] <= max(1.5 * theirs["error"], 1e-5):
            failed = True
            print(f"{name:14} WRONG: Kiln's result is further from float32 than Triton's explains")
        for key, kept in ratios.items():
            a, b = theirs[key], ours[key]
            if a > 0 and b > 0: kept.append(a / b if key == "steady_us" else b / a)
    for key, text in (("compiler_s", "compiler, Kiln's time over Triton's (goal 0.25)"),
                      ("cold_s", "cold, Kiln's time over Triton's (goal 0.6)"),
                      ("steady_us", "steady, Triton's time over Kiln's (goal 1.0)")):
        if ratios[key]: print(f"{text}: " + " ".join(f"{r:.2f}" for r in ratios[key]) +
                              f", geometric mean {statistics.geometric_mean(ratios[key]):.2f}")
    print(next((r["where"] for r in every if "where" in r), ""))
    if o.json:
        with open(o.json, "w") as f: json.dump(every, f, indent=1)
    sys.exit(failed)


if __name__ == "__main__":
    main()
