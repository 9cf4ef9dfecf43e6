"""What a launch costs the CPU in Python: kiln.jit beside triton.jit, with 1, 5 and 20 tensors.

    PYTHONPATH=build/release/python python bench/python_launch.py [--budget US]

On a GPU where torch has one, else on the CPU without Triton. A kernel that does next to nothing is launched in batches
that the GPU's queue holds, with the GPU idle at the beginning of each. All rows are measured three times in turn, so
that none has the process's first second for itself; the median of all batches is printed. "bind" is a launch over a
grid of none: all but the driver's part. With --budget, a row above it fails.
"""
import argparse
import linecache
import statistics
import sys
import time

import torch

import kiln


def function(arguments, language):
    names = [f"a{i}" for i in range(arguments)]
    file = f"<{language.__name__} {arguments}>"
    text = f"def touch({', '.join(names)}):\n    tl.store(a0, 1.0)\n"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"tl": language, "__name__": "__main__"}
    exec(compile(text, file, "exec"), scope)
    return scope["touch"]


def us_per_call(call, wait, batch=200, batches=50):
    begin = time.perf_counter()
    while time.perf_counter() < begin + 0.2:  # what the CPU's clock takes to rise
        for _ in range(20): call()
        wait()
    taken = []
    for _ in range(batches):
        wait()
        start = time.perf_counter()
        for _ in range(batch): call()
        taken.append((time.perf_counter() - start) / batch * 1e6)
    wait()
    return taken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=float, default=0)
    budget = parser.parse_args().budget
    gpu = torch.cuda.is_available()
    device, wait = ("cuda", torch.cuda.synchronize) if gpu else ("cpu", lambda: None)
    contenders = {"kiln": (kiln.jit, __import__("kiln.language", fromlist=["x"]))}
    if gpu:
        try:
            import triton
            contenders["triton"] = (triton.jit, triton.language)
        except ImportError:
            print("no triton here: its column is left out")
    print(f"{torch.cuda.get_device_name() if gpu else 'CPU'}, torch {torch.__version__}, us of CPU per launch")
    rows = {count: {} for count in (1, 5, 20)}
    kernels = {(name, count): jit(function(count, language))
               for name, (jit, language) in contenders.items() for count in rows}
    for _ in range(3):
        for count, row in rows.items():
            tensors = [torch.zeros(64, device=device) for _ in range(count)]
            for name in contenders:
                kernel = kernels[name, count]
                row.setdefault(name, []).extend(us_per_call(lambda: kernel[(1, )](*tensors), wait))
                if name == "kiln":
                    row.setdefault("bind", []).extend(us_per_call(lambda: kernel[(0, )](*tensors), wait))
                assert tensors[0][0].item() == 1
    failed = False
    for count, taken in rows.items():
        row = {name: statistics.median(us) for name, us in taken.items()}
        late = budget and row["kiln"] > budget
        failed |= bool(late)
        print(f"{count:3} arguments: " + ", ".join(f"{k} {v:.2f}" for k, v in row.items()) + (" OVER BUDGET" if late else ""))
    sys.exit(failed)


if __name__ == "__main__":
    main()
