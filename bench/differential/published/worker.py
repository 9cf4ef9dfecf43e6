"""One side: reads jobs, one JSON a line, runs each in a child process, answers one line each."""
import json
import os
import pickle
import signal
import sys

SIDE = sys.argv[1]
if SIDE == "triton": os.environ["TRITON_INTERPRET"] = "1"
else: os.environ.update(KILN_THREADS="1")
import numpy as np  # noqa: E402
import torch  # noqa: E402,F401
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402,F401

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import arena  # noqa: E402
import sources  # noqa: E402

if SIDE == "triton":
    import repaired
    repaired.apply()
    def jit(fn): return triton.jit(fn)
else:
    import kiln
    def jit(fn): return kiln.jit(fn)


class Pointer:
    """What the interpreter asks of a tensor."""

    def __init__(self, address, dtype): self.address, self.dtype = address, dtype
    def data_ptr(self): return self.address
    def untyped_storage(self): return self
    def cpu(self): return self
    def copy_(self, other): pass
    def new_empty(self, size, device): return self
    def set_(self, *all): pass
    def storage_offset(self): return 0
    def size(self): return ()
    def stride(self): return ()


def run(job):
    loader = sources.Loader(jit)
    fn = loader.file(job["file"]).kernel(job["kernel"].split(".")[-1], job["line"])
    memory = arena.Arena([tuple(a["pointer"]) for a in job["arguments"] if "pointer" in a])
    values, k = {}, 0
    for a in job["arguments"]:
        if "pointer" in a:
            dtype = arena.TORCH[a["pointer"][0]]
            values[a["name"]] = Pointer(memory.middles[k], dtype) if SIDE == "triton" else memory.tensor(k)
            k += 1
        elif "dtype" in a:
            dtype = getattr(tl, a["dtype"])
            values[a["name"]] = dtype if SIDE == "kiln" else tl.constexpr(dtype)  # kernels ask for .value
        elif "tuple" in a: values[a["name"]] = tuple(a["tuple"])
        else: values[a["name"]] = a["value"]
    if SIDE == "kiln": fn[tuple(job["grid"])](**values, enable_fp_fusion=False)
    else:
        with np.errstate(all="ignore"): fn[tuple(job["grid"])](**values)
    return memory.changed()


def child(job, path):
    os.dup2(os.open("/dev/null", os.O_RDWR), 1)
    result = {}
    try:
        result["changed"] = run(job)
    except BaseException as e:
        result["error"] = f"{type(e).__name__}: {e}"
    with open(path, "wb") as f: pickle.dump(result, f)


def main():
    out = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        job = json.loads(line)
        path = job["out"] + "." + SIDE
        pid = os.fork()
        if pid == 0:
            signal.alarm(job["limit"])
            child(job, path)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"status": status}), file=out, flush=True)


main()
