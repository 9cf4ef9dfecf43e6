"""Published kernels from one source under Kiln and under Triton, on a GPU.

    python3 run.py --kiln KILN --kernels DIR [--seed S] [--draws N] [--jobs J] [--limit SECONDS] [names]

DIR is what collect.py wrote. Each kernel of each draw runs in a process of Kiln, then in one of Triton: the time of its
first launch (compilation included, empty caches), every configuration checked against a reference in torch and measured
(do_bench, median). Prints sizes, the best configuration's microseconds of each side, Triton's time over Kiln's, the
milliseconds of both first launches and whether all results were right; then the geometric mean and the worst three.

Before that, J processes at a time compile all but each kernel's first configuration, so that waiting for Triton's
compiler does not fill the lease. A process that takes longer than the limit is killed and its row says so.
"""
import argparse
import math
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time

from sources import OTHERS, PRODUCTS

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVERS = os.path.join(HERE, "drivers")
STARTED = []  # kept, since subprocess waits for those that nobody holds when it starts another one
SETS = {"products": sorted(PRODUCTS), "others": sorted(OTHERS), "all": sorted(PRODUCTS) + sorted(OTHERS)}


def start_kiln(o, env, name, mode, index, out):
    command = [o.kiln, os.path.join(DRIVERS, name + ".py"), mode, str(o.seed), str(index)]
    process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True)
    STARTED.append(process)
    return process.pid


def start_triton(o, env, name, mode, index, out):
    """A fork of this process, which has imported torch and Triton already and never touches the GPU itself."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        os.environ.update(env)
        sys.path.insert(0, DRIVERS)
        sys.argv = [name, mode, str(o.seed), str(index)]
        runpy.run_path(os.path.join(DRIVERS, name + ".py"), run_name="__main__")
        code = 0
    except SystemExit as e:
        code = e.code or 0
    except BaseException as e:
        print("dies:", repr(e)[:300])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


class Job:

    def __init__(self, o, start, env, name, mode, index):
        self.out = tempfile.TemporaryFile("w+")
        self.limit = time.time() + o.limit
        self.started = time.time()
        self.pid = start(o, env, name, mode, index, self.out)
        self.status = None

    def done(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = "" if status == 0 else "ends with status %d" % os.waitstatus_to_exitcode(status)
            elif time.time() > self.limit:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self.status = "takes too long"
        return self.status is not None

    def text(self):
        while not self.done():
            time.sleep(0.005)
        self.out.seek(0)
        return self.out.read()


def measured(job, verbose, side):
    """(sizes, us, first ms, error, right) of what a driver printed, or a text that says why there is nothing."""
    text = job.text()
    result = None
    for line in text.splitlines():
        if line.startswith("RESULT\t"):
            result = line.split("\t")[2:]
        elif verbose or line.startswith(("wrong:", "dies:")):
            print("    %s: %s" % (side, line[:200]))
    if result is None:
        last = text.strip().splitlines()
        return job.status or (last[-1][:160] if last else "prints nothing")
    return result


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kiln", required=True)
    p.add_argument("--kernels", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--draws", type=int, default=1)
    p.add_argument("--jobs", type=int, default=max(2, (os.cpu_count() or 4) - 4))
    p.add_argument("--limit", type=float, default=40.0)
    p.add_argument("--verbose", action="store_true", help="also the time of each configuration, and why others do not run")
    p.add_argument("--markdown", action="store_true")
    p.add_argument("names", nargs="*", help="kernels, or products, others, all; products unless named")
    o = p.parse_args()
    o.kiln = os.path.abspath(o.kiln)
    names = [n for given in o.names or ["products"] for n in SETS.get(given, [given])]
    began = time.time()
    caches = tempfile.mkdtemp(prefix="published")
    # Each draw has caches of its own, so that first launches are cold in all of them.
    envs = [dict(os.environ, PUBLISHED=os.path.abspath(o.kernels), KILN_CACHE_DIR=os.path.join(caches, "kiln%d" % i),
                 TRITON_CACHE_DIR=os.path.join(caches, "triton%d" % i)) for i in range(o.draws)]
    import torch
    import triton
    import triton.language
    import triton.testing

    draws = [(name, index) for index in range(o.draws) for name in names]
    waiting = [(s, n, i) for n, i in draws for s in (start_triton, start_kiln)]
    running = []
    while waiting or running:
        running = [j for j in running if not j.done()]
        while waiting and len(running) < o.jobs:
            start, name, index = waiting.pop(0)
            running.append(Job(o, start, envs[index], name, "warm", index))
        time.sleep(0.01)
    print("seed %d, %d draws, torch %s, Triton %s; compiled ahead in %.0f s" % (
        o.seed, len(draws), torch.__version__, triton.__version__, time.time() - began), flush=True)

    row = "| %s | %s | %s | %s | %s | %s | %s | %s |" if o.markdown else "%-24s %-44s %9s %9s %6s %7s %7s  %s"
    print(row % ("kernel", "sizes", "Kiln us", "Triton us", "ratio", "first", "Triton", "results"))
    if o.markdown:
        print("|---|---|--:|--:|--:|--:|--:|---|")
    ratios, firsts, wrong = [], [], []
    for name, index in draws:
        ours = measured(Job(o, start_kiln, envs[index], name, "bench", index), o.verbose, "kiln")
        theirs = measured(Job(o, start_triton, envs[index], name, "bench", index), o.verbose, "triton")
        texts = [r for r in (ours, theirs) if isinstance(r, str)]
        if texts:
            print(row % (name, "", "", "", "", "", "", "; ".join(
                "%s %s" % (side, r) for side, r in (("Kiln", ours), ("Triton", theirs)) if isinstance(r, str))), flush=True)
            wrong.append(name)
            continue
        verdict = ours[4] if ours[4] == theirs[4] else "Kiln %s, Triton %s" % (ours[4], theirs[4])
        if ours[4] != "right":
            wrong.append(name)
        ratio = float(theirs[1]) / float(ours[1]) if "none" not in (ours[4], theirs[4]) else 0.0
        if ratio > 0:
            ratios.append((ratio, name, ours[0]))
            firsts.append(float(theirs[2]) / max(float(ours[2]), 1e-3))
        print(row % (name, ours[0], ours[1], theirs[1], "%.2f" % ratio, ours[2], theirs[2], verdict), flush=True)
    if ratios:
        mean = lambda values: math.exp(sum(math.log(v) for v in values) / len(values))
        print("geometric mean %.3f of %d draws, first launch %.1f times as fast, %.0f s" % (
            mean([r[0] for r in ratios]), len(ratios), mean(firsts), time.time() - began))
        print("worst: " + ", ".join("%s %s %.2f" % (n, s, r) for r, n, s in sorted(ratios)[:3]))
    if wrong:
        print("without a right result: " + ", ".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
