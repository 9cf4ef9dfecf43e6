"""A pytest plugin: runs tests that run.py hands out, one at a time, and writes what each did as a line of JSON.

All workers order the tests alike and take the next one from a counter in a file, so that a worker that dies loses the
test that it runs and nothing else. Its settings are JSON in KILN_SUITE (see run.py).
"""
import fcntl
import hashlib
import json
import os
import random
import sys
import time
import traceback

import pytest

SETTINGS = json.loads(os.environ["KILN_SUITE"])
# Texts that Triton's compiler alone has.
IR_TEXTS = {"ttir", "ttgir", "llir", "source"}


class Record:
    """What the running test did."""

    def __init__(self):
        self.compiled = 0  # compilations that gave a kernel
        self.errors = []  # compilations that raised, under Triton
        self.refused = []  # kernels that Triton compiles and Kiln does not
        self.launches = 0
        self.reads = set()  # IR texts
        self.reads_ptx = False
        self.seconds = 0.0  # in the compiler
        self.outcome, self.last, self.where = "", "", ""


current = Record()


# ---- what is counted ----------------------------------------------------------------------------------------------
def watch_compiler():
    """Counts compilations and launches. With Kiln: it is strict, except where Triton refuses the kernel as well."""
    import triton
    import triton.compiler.compiler as compiler
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError
    from triton.runtime.jit import JITFunction
    triton_compile = compile_ = compiler.compile
    if SETTINGS["side"] == "kiln":
        import kiln.triton
        kiln.triton.enable(strict=True)
        triton_compile, compile_ = kiln.triton._compile.original, kiln.triton._compile.compile
        refusals = (kiln.triton.Unsupported, OutOfResources, PTXASError, CompileTimeAssertionFailure)

    def compile(src, *args, **keywords):
        # An IR of Triton's in the place of what its passes give; a PTX file is none.
        override = str((keywords.get("options") or {}).get("ir_override") or "")
        if isinstance(src, str) or override.endswith((".ttir", ".ttgir", ".llir")):
            current.reads.add("compiles an IR file")
        began = time.perf_counter()
        try:
            kernel = compile_(src, *args, **keywords)
        except Exception as e:
            if SETTINGS["side"] == "kiln" and isinstance(e, refusals):
                try:
                    theirs = triton_compile(src, *args, **keywords)
                except Exception as theirs:  # what tests of errors expect
                    current.errors.append(text_of(theirs))
                    raise
                # Triton asks only when it loads a kernel; autotuners skip a configuration then, whoever says it.
                if fits(theirs): current.refused.append(text_of(e))
            elif SETTINGS["side"] != "kiln":
                current.errors.append(text_of(e))
            raise
        finally:
            current.seconds += time.perf_counter() - began
        current.compiled += 1
        return kernel

    for place in (triton, triton.compiler, compiler):
        place.compile = compile

    run = JITFunction.run

    def counted_run(self, *args, **keywords):
        current.launches += 1
        return run(self, *args, **keywords)

    JITFunction.run = counted_run

    class Asm(compiler.AsmDict):

        def __getitem__(self, key):
            if key in IR_TEXTS: current.reads.add(key)
            if key == "ptx": current.reads_ptx = True
            return super().__getitem__(key)

        def __contains__(self, key):
            if key in IR_TEXTS: current.reads.add(key)
            return super().__contains__(key)

        def get(self, key, default=None):
            return self[key] if key in self else default

    init = compiler.CompiledKernel.__init__

    def counted_init(self, *args, **keywords):
        init(self, *args, **keywords)
        self.asm = Asm(self.asm)

    compiler.CompiledKernel.__init__ = counted_init


def fits(kernel):
    """Whether Triton would load it."""
    from triton.runtime import driver
    device = driver.active.get_current_device()
    shared = driver.active.utils.get_device_properties(device)["max_shared_mem"]
    return kernel.metadata.shared <= shared and 32 * kernel.metadata.num_warps <= 1024


def text_of(e):
    return f"{type(e).__name__}: {e}".strip()[:2000]


# ---- the loop -----------------------------------------------------------------------------------------------------
def pytest_configure(config):
    if SETTINGS["pretend"]:
        import pretend
        pretend.start()
    watch_compiler()


def function_of(nodeid):
    return nodeid.split("[")[0]


def order(items):
    """The tests of this run, in the same order in each process."""
    by_id = {i.nodeid: i for i in items}
    if SETTINGS["only"]:
        with open(SETTINGS["only"]) as f: wanted = json.load(f)
        return [by_id[n] for n in wanted if n in by_id], len(by_id)
    ids = sorted(by_id, key=lambda n: hashlib.sha1(f"{SETTINGS['seed']} {n}".encode()).digest())
    if SETTINGS["each"]:
        seen = {}
        for n in ids: seen.setdefault(function_of(n), []).append(n)
        kept = {n for of_one in seen.values() for n in of_one[:SETTINGS["each"]]}
        ids = [n for n in ids if n in kept]
    if SETTINGS["sample"]: ids = ids[:SETTINGS["sample"]]
    return [by_id[n] for n in ids], len(by_id)


def take():
    with open(SETTINGS["counter"], "r+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        number = int(f.read() or 0)
        f.seek(0)
        f.write(str(number + 1))
    return number


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    global current
    items, total = order(session.items)
    with open(SETTINGS["records"], "a", buffering=1) as out:

        def write(**row):
            out.write(json.dumps(row) + "\n")

        write(ready=len(items), total=total, worker=os.getpid())
        while time.time() < SETTINGS["deadline"] and (number := take()) < len(items):
            item, current = items[number], Record()
            if SETTINGS["pretend"]: sys.modules["pretend"].take_driver()
            write(worker=os.getpid(), begins=item.nodeid, time=time.time())
            began = time.perf_counter()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            broken = "" if SETTINGS["pretend"] else gpu_error()
            ended = current.outcome
            if SETTINGS["pretend"] and current.outcome in ("passed", "failed"):
                # Nothing was launched: only compilations count.
                current.outcome = "failed" if current.refused else "passed"
            write(worker=os.getpid(), ends=item.nodeid, outcome=current.outcome, last=current.last, where=current.where,
                  ended=ended,
                  compiled=current.compiled, errors=current.errors, refused=current.refused, launches=current.launches,
                  reads=sorted(current.reads), reads_ptx=current.reads_ptx, compiling=round(current.seconds, 4),
                  seconds=round(time.perf_counter() - began, 4), broken=broken)
            if broken: os._exit(75)  # no later test of this process could pass
            random.seed(number)
    return True


def gpu_error():
    import torch
    if not torch.cuda.is_initialized(): return ""
    try:
        torch.cuda.synchronize()
    except Exception as e:
        return text_of(e).splitlines()[0]
    return ""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.passed and (report.when != "call" or current.outcome): return
    if current.outcome in ("failed", "error"): return
    outcome = report.outcome
    if hasattr(report, "wasxfail"): outcome = "xfailed" if report.skipped else "xpassed"
    if outcome == "failed" and report.when != "call": outcome = "error"
    current.outcome = outcome
    if call.excinfo is None: return
    text = call.excinfo.exconly().strip().splitlines()
    current.last = " | ".join(t.strip() for t in text if t.strip())[:1500]
    frames = [f for f in traceback.extract_tb(call.excinfo.tb) if "/test/" in f.filename or "/tests/" in f.filename]
    if frames: current.where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"
