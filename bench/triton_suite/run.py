"""Triton's own tests, or those of a library of kernels, with Kiln as the compiler.

    python run.py SUITE [--out FILE.json] [--jobs J] [--each K | --sample N] [--seed S] [--seconds T] [files]
    python run.py CHECKOUT --library [the same] files

SUITE is the folder python/test of a checkout of Triton, of the version that this Python has. CHECKOUT is one of another
project, whose tests are run as it has them, with its folder and its src in Python's path. All tests run with
kiln.triton.enable(strict) first: what Kiln does not compile fails, unless Triton refuses it as well. Then Triton runs
those that failed, wrong results first, and after them the others, until the time is up. What counts: tests that compile
a kernel, read no text of Triton's IRs and do not fail under Triton. Prints counts and every failure with its reason,
also those for which no time was left under Triton.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ["unit/language", "unit/runtime"]


class Side:
    """The tests under one compiler, over several processes."""

    def __init__(self, o, side, folder, only=None):
        self.o, self.side = o, side
        self.folder = os.path.join(folder, side)
        os.makedirs(os.path.join(self.folder, "cache"))
        self.counter, self.records = (os.path.join(self.folder, n) for n in ("counter", "records"))
        for f in (self.counter, self.records): open(f, "w").close()
        self.only = None
        if only is not None:
            self.only = os.path.join(self.folder, "only")
            with open(self.only, "w") as f: json.dump(only, f)
        self.results, self.running, self.size, self.total = {}, {}, None, None
        self.read_to, self.starts = 0, 0

    def settings(self):
        o = self.o
        free = self.only is None
        return {
            "side": self.side, "pretend": o.pretend, "seed": o.seed, "only": self.only, "each": o.each if free else 0,
            "sample": o.sample if free else 0, "counter": self.counter, "records": self.records,
            "deadline": self.deadline, "configurations": o.configurations
        }

    def start(self):
        env = dict(os.environ, KILN_SUITE=json.dumps(self.settings()), PYTHONHASHSEED="0",
                   TRITON_CACHE_DIR=os.path.join(self.folder, "cache"), PYTHONDONTWRITEBYTECODE="1")
        path = [HERE] + ([self.o.suite, os.path.join(self.o.suite, "src")] if self.o.library else [])
        if self.side == "kiln":  # for programs that tests start
            path.insert(0, os.path.join(HERE, "site"))
            env["KILN_TRITON"] = "strict"
        env["PYTHONPATH"] = os.pathsep.join(path + [p for p in [os.environ.get("PYTHONPATH")] if p])
        log = open(os.path.join(self.folder, "log"), "ab")
        self.starts += 1
        command = [sys.executable, "-m", "pytest", "-q", "-p", "worker", "-p", "no:cacheprovider", "-p", "no:xdist"]
        if self.o.configurations: command += ["-p", "few_configurations"]
        if not self.o.library: command += ["--device", "cpu" if self.o.pretend else "cuda"]
        command += ["--rootdir", self.o.suite]
        command += [os.path.join(self.o.suite, f) for f in self.o.folders]
        where = self.o.suite if self.o.library else self.folder
        return subprocess.Popen(command, cwd=where, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                start_new_session=True)

    def read(self):
        with open(self.records) as f:
            f.seek(self.read_to)
            while (line := f.readline()).endswith("\n"):
                self.read_to = f.tell()
                row = json.loads(line)
                if "ready" in row: self.size, self.total = row["ready"], row["total"]
                elif "begins" in row: self.busy[row["worker"]] = (row["begins"], row["time"])
                else:
                    self.results[row["ends"]] = row
                    self.busy.pop(row["worker"], None)

    def lost(self, pid, why):
        """A worker ended in the middle of a test."""
        if (test := self.busy.pop(pid, None)) is None: return
        self.results[test[0]] = {
            "ends": test[0], "outcome": "failed", "last": why, "where": "", "compiled": 0, "errors": [], "refused": [],
            "launches": 0, "reads": [], "reads_ptx": False, "compiling": 0.0, "seconds": time.time() - test[1],
            "broken": why
        }

    def run(self, seconds):
        self.busy = {}
        self.deadline = time.time() + seconds
        began = time.time()
        workers = {}
        for _ in range(self.o.jobs):
            p = self.start()
            workers[p.pid] = p
        last = 0
        while workers:
            time.sleep(0.2)
            self.read()
            for pid, p in list(workers.items()):
                limit = self.busy.get(pid, (None, time.time()))[1] + self.o.limit
                if p.poll() is None and time.time() > min(limit, self.deadline + 20):
                    os.killpg(pid, 9)
                    p.wait()
                    if time.time() > limit: self.lost(pid, f"takes more than {self.o.limit} s")
                    self.busy.pop(pid, None)
                if p.poll() is None: continue
                self.read()
                del workers[pid]
                self.lost(pid, f"the process ends with {p.returncode}")
                more = self.size is None or self.taken() < self.size
                if p.returncode and more and time.time() < self.deadline:
                    if self.size is None and self.starts > self.o.jobs:
                        sys.exit(f"no worker starts, see {self.folder}/log")
                    p = self.start()
                    workers[p.pid] = p
            if time.time() - last > 10:
                last = time.time()
                print(f"{self.side}: {len(self.results)} of {self.size} tests, {time.time() - began:.0f} s", flush=True)
        self.seconds = time.time() - began

    def taken(self):
        with open(self.counter) as f: return int(f.read() or 0)


# Addresses of objects and values, which differ from run to run.
_NUMBERS = re.compile(r"0x[0-9a-f]+|[-+]?[0-9.]+(e[-+]?[0-9]+)?|nan|inf")


def ends_otherwise(test):
    """Whether a test without a GPU, where nothing computes, ends with another outcome or error than under Triton."""
    ends = [(r.get("ended", r["outcome"]), _NUMBERS.sub("", r["last"])) for r in (test["kiln"], test["triton"])]
    return ends[0] != ends[1]


def to_compare(ours, most):
    """The tests for Triton: all failures, wrong results first, then at most so many of those that pass."""
    order = ("wrong", "PTX", "crash", "error", "refused")
    failed = [n for n, r in ours.items() if r["outcome"] in ("failed", "error")]
    failed.sort(key=lambda n: order.index(failure(ours[n])[0]))
    expected = [n for n, r in ours.items() if r["outcome"] in ("xfailed", "xpassed")]
    passed = [n for n, r in ours.items() if r["outcome"] == "passed"]
    # Without a GPU these say least about a compiler: they fail since nothing computes.
    passed.sort(key=lambda n: "AssertionError" in ours[n]["last"])
    return failed + expected + passed[:len(passed) if most is None else most]


# ---- judging ------------------------------------------------------------------------------------------------------
def kind_of(test):
    """Why a test does not count, or `counts`."""
    r = test.get("triton", test["kiln"])
    if r["outcome"] in ("skipped", "xfailed"): return r["outcome"]
    if r["outcome"] != "passed": return "fails under Triton" if "triton" in test else "not compared"
    if r["reads"]: return "reads IR"
    if not r["compiled"] and r["errors"]: return "only errors"
    if not r["compiled"] and not r["launches"]: return "no kernel"
    return "counts"


def is_failure(test):
    return test["kind"] in ("counts", "only errors") and test["kiln"]["outcome"] != "passed"


def failure(r):
    """(kind, reason) of a test that fails with Kiln."""
    if r["broken"]: return "crash", r["broken"]
    if r["refused"]: return "refused", r["refused"][0].splitlines()[0]
    if not r["last"].startswith("AssertionError"): return "error", r["last"]
    return ("PTX" if r["reads_ptx"] and "Generated by LLVM" in r["last"] else "wrong"), r["last"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("suite")
    p.add_argument("folders", nargs="*")
    p.add_argument("--library", action="store_true", help="tests of another project than Triton")
    p.add_argument("--out", default="triton_suite.json")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--each", type=int, default=0, help="at most so many cases of a test function")
    p.add_argument("--sample", type=int, default=0, help="so many tests, drawn at random")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--configurations", type=int, default=0,
                   help="so many of a kernel that an autotuner tries, briefly; 0: all of them")
    p.add_argument("--limit", type=float, default=60.0, help="seconds for one test")
    p.add_argument("--seconds", type=float, default=1e9, help="for all of it; what is not reached then is not counted")
    p.add_argument("--pretend", action="store_true", help="without a GPU: compile for Hopper, and launch nothing")
    p.add_argument("--only", help="an earlier result: run its failures again")
    p.add_argument("--check", type=int, help="at most so many tests that pass with Kiln run under Triton too")
    p.add_argument("--markdown", help="also a table, into this file")
    o = p.parse_intermixed_args()
    o.suite = os.path.abspath(o.suite)
    if not o.folders: o.folders = FOLDERS
    if o.library and o.folders is FOLDERS: p.error("--library needs the names of files or folders of tests")
    folder = tempfile.mkdtemp(prefix="triton_suite_")
    end = time.time() + o.seconds

    names = None
    if o.only:
        with open(o.only) as f: names = [n for n, t in json.load(f)["tests"].items() if is_failure(t)]
    first = Side(o, "kiln", folder, names)
    first.run(0.6 * o.seconds)
    ours = first.results
    second = Side(o, "triton", folder, to_compare(ours, o.check))
    second.run(max(10.0, end - time.time() - 15))
    size, total, seconds = first.size, first.total, [first.seconds, second.seconds]
    tests = {n: {"kiln": r, **({"triton": second.results[n]} if n in second.results else {})} for n, r in ours.items()}
    for t in tests.values(): t["kind"] = kind_of(t)
    result = {"suite": o.suite, "seed": o.seed, "size": size, "total": total, "seconds": seconds, "pretend": o.pretend,
              "tests": tests}
    with open(o.out, "w") as f: json.dump(result, f, indent=1)
    print(summary(result))
    if o.markdown:
        with open(o.markdown, "w") as f: f.write(markdown(result))


def counted(result, kind):
    """(passed, failures by kind of failure) of the tests of a kind."""
    passed, failures = 0, collections.defaultdict(list)
    for name, r in sorted(result["tests"].items()):
        if r["kind"] != kind: continue
        if r["kiln"]["outcome"] == "passed": passed += 1
        else:
            why, reason = failure(r["kiln"])
            failures[why].append((name, reason, r["kiln"]["where"]))
    return passed, failures


def told(failures, most):
    """Lines of failures by their reason, with at most so many names for each."""
    lines = []
    for why, rows in sorted(failures.items()):
        groups = collections.defaultdict(list)
        for name, reason, where in rows: groups[reason[:300]].append((name, where))
        for reason, names in sorted(groups.items(), key=lambda g: -len(g[1])):
            lines.append(f"  {why} {len(names)} x {reason}")
            lines += [f"      {n} {w}" for n, w in names[:most]]
            if len(names) > most: lines.append(f"      and {len(names) - most} more")
    return lines


def summary(result):
    tests = result["tests"].values()
    lines = [f"{len(tests)} of {result['size']} tests ran (the suite has {result['total']}), "
             f"{sum('triton' in r for r in tests)} of them under Triton too: " +
             ", ".join(f"{n} {k}" for k, n in collections.Counter(r["kind"] for r in tests).most_common())]
    for kind in ("counts", "only errors"):
        passed, failures = counted(result, kind)
        ran = passed + sum(map(len, failures.values()))
        if not ran: continue
        lines.append(f"{kind}: {passed} of {ran} pass with Kiln ({100 * passed / ran:.2f} %)" +
                     "".join(f", {len(f)} {k}" for k, f in sorted(failures.items())))
        if text := failures.get("PTX"):
            share = 100 * passed / (ran - len(text))
            lines.append(f"  without those that look for Triton's instructions: {share:.2f} %")
        lines += told(failures, 3)
    # They may fail under Triton as well: neither a failure of Kiln's nor none.
    _, failures = counted(result, "not compared")
    if failures:
        lines.append(f"not compared: {sum(map(len, failures.values()))} fail with Kiln, and no time was left to run "
                     "them under Triton")
        lines += told(failures, 20)
    if result.get("pretend"):
        others = {n: r for n, r in result["tests"].items() if "triton" in r and ends_otherwise(r)}
        lines.append(f"with an outcome or an error other than Triton's, though nothing computes: {len(others)}")
        for name, r in sorted(others.items()):
            ends = [f"{r[s].get('ended', r[s]['outcome'])}: {r[s]['last'][:160]}" for s in ("kiln", "triton")]
            lines.append(f"      {name} {r['kiln']['where']}\n          kiln {ends[0]}\n          triton {ends[1]}")
    for side in ("triton", "kiln"):
        spent = sum(r[side]["compiling"] for r in tests if "triton" in r and r["kiln"]["outcome"] == "passed")
        lines.append(f"compiling, of tests that pass with both: {side} {spent:.1f} s")
    lines.append("time: Kiln %.0f s, Triton %.0f s" % tuple(result["seconds"]))
    return "\n".join(lines)


def markdown(result):
    lines = ["| test function | cases that count | pass with Kiln | reason of the others |", "|---|--:|--:|---|"]
    rows = collections.defaultdict(lambda: [0, 0, collections.Counter()])
    for name, r in result["tests"].items():
        if r["kind"] != "counts": continue
        row = rows[name.split("[")[0].split("/")[-1]]
        row[0] += 1
        if r["kiln"]["outcome"] == "passed": row[1] += 1
        else: row[2][": ".join(failure(r["kiln"]))[:120].replace("|", " ")] += 1
    for name, (ran, passed, reasons) in sorted(rows.items()):
        lines.append(f"| `{name}` | {ran} | {passed} | {'; '.join(r for r, _ in reasons.most_common(2))} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
