"""Values of the lines: Kiln's on the CPU beside PyTorch's, from the same inputs. Needs no GPU.

python3 check.py KILN [--seed S] [--count N] [--slow SECONDS] [-v] [NAME...]

Lines are drawn as for peers.py, at small sizes; NAME is the beginning of a line's name or module. PyTorch draws the
inputs and saves them, and each line runs in a Kiln of its own without a kernel cache. Prints a row per line that Kiln
refuses, whose results differ in dtype or shape, have elements that the rounding of their dtype does not explain, or
which took longer to plan and compile than --slow; with -v a row per line. Exit code 1 if there is any but a slow one.

An element may differ by 4 units in the last place of its dtype (64 of float32, whose sums have another order), of
itself or of the root mean square of its result, whichever is larger. What cancels in float32 may differ more: then its
distance from the line computed in float64 may be 4 times the largest of PyTorch's, but 1e-4 at most. Integers and fp8
must be equal. Where at most one element in 2000 differs, the row says "few": a last bit decides a rounding, a
comparison or a tie. Of lines with random numbers of their own, only dtypes and shapes are compared.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch and Kiln look for GPUs: the lines are made where one is
import torch
from torch.overrides import TorchFunctionMode

import lines

KILN = """
import sys, time
import torch
import lines
name, seed, given, result = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
f, drawn = lines.LINES[name](lines.Draw(seed, small=True))
def args():
    saved = torch.load(given)
    return [saved[str(i)] for i in range(len(drawn))]
def run():
    a = args()
    torch.cpu.synchronize()
    start = time.time()
    y = f(*a)
    y = list(y) if isinstance(y, (tuple, list)) else [y]
    torch.save({str(i): t for i, t in enumerate(y)}, result)
    return time.time() - start
first = run()
print("planned and compiled in", max(0.0, first - run()))
"""
CODES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
         torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
         torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2"}
DTYPES = {code: dtype for dtype, code in CODES.items()}


def save(path, tensors):
    """As safetensors, whose package need not be there. Wide dtypes come first, so that all are aligned."""
    header, data = {}, b""
    for i, t in sorted(enumerate(tensors), key=lambda p: -p[1].dtype.itemsize):
        raw = t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        place = [len(data), len(data) + len(raw)]
        header[str(i)] = {"dtype": CODES[t.dtype], "shape": list(t.shape), "data_offsets": place}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


def load(path):
    raw = open(path, "rb").read()
    size = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    out = []
    for i in range(len(header)):
        h = header[str(i)]
        part = data[h["data_offsets"][0] : h["data_offsets"][1]]
        dtype = DTYPES[h["dtype"]]
        t = torch.frombuffer(bytearray(part), dtype=dtype) if part else torch.empty(0, dtype=dtype)
        out.append(t.reshape(h["shape"]))
    return out


class InFloat64(TorchFunctionMode):
    """Conversions to float32 and halves give float64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def wide(a):
            return torch.float64 if a in (torch.float32, torch.float16, torch.bfloat16) else a

        if func in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            func = torch.Tensor.double
        return func(*map(wide, args), **{k: wide(v) for k, v in (kwargs or {}).items()})


def listed(y):
    return list(y) if isinstance(y, (tuple, list)) else [y]


def exact(f, args):
    """The results in float64, which some lines refuse."""
    torch.set_default_dtype(torch.float64)
    try:
        with InFloat64():
            return listed(f(*args))
    except (RuntimeError, TypeError):
        return None
    finally:
        torch.set_default_dtype(torch.float32)


def compared(got, want, reference):
    """(how many elements differ, in words)."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return want.numel(), "%s %s, PyTorch has %s %s" % (
            str(got.dtype)[6:], list(got.shape), str(want.dtype)[6:], list(want.shape))
    a, b = got.double(), want.double()
    close = (a == b) | (a.isnan() & b.isnan())
    if want.dtype.is_floating_point and want.dtype.itemsize > 1:
        finite = b[b.isfinite()]
        rms = finite.square().mean().sqrt() if finite.numel() else 0.0
        units = 4 if want.dtype.itemsize == 2 else 64
        size = b.abs().clamp(min=rms)
        close |= (a - b).abs() <= units * torch.finfo(want.dtype).eps * size
        if reference is not None and want.dtype == torch.float32:
            ours, theirs = ((x - reference.double()).abs() / size for x in (a, b))
            close |= ours <= min(1e-4, 4 * theirs.nan_to_num(0.0, 0.0).max())
    off = (~close).sum().item()
    if not off:
        return 0, ""
    i = (~close).flatten().nonzero()[0].item()
    return off, "%d of %d elements, first [%d]: %.8g, PyTorch %.8g" % (
        off, close.numel(), i, a.flatten()[i].item(), b.flatten()[i].item())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln")
    p.add_argument("names", nargs="*")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=0, help="draws; each line once unless given")
    p.add_argument("--slow", type=float, default=1.0)
    p.add_argument("-v", "--verbose", action="store_true")
    o = p.parse_intermixed_args()
    kiln = os.path.abspath(o.kiln)
    here = os.path.dirname(os.path.abspath(__file__))
    counts = {}

    def report(kind, name, text):
        counts[kind] = counts.get(kind, 0) + 1
        if kind != "equal" or o.verbose:
            print("%-7s %-28s %s" % (kind, name, text), flush=True)

    draws = lines.drawn(o.seed, o.count, o.names)
    with tempfile.TemporaryDirectory() as folder:
        given, result = os.path.join(folder, "given.safetensors"), os.path.join(folder, "result.safetensors")
        for name, seed in draws:
            torch.manual_seed(seed)
            f, args = lines.LINES[name](lines.Draw(seed, small=True))
            save(given, args)
            shapes = " ".join("x".join(map(str, a.shape)) + ":" + str(a.dtype)[6:] for a in args)
            doubles = [a.double() if a.dtype.is_floating_point else a.clone() for a in args]
            want, reference = listed(f(*args)), exact(f, doubles)
            if os.path.exists(result):
                os.remove(result)
            try:
                ran = subprocess.run([kiln, "--device", "cpu", "-c", KILN, name, str(seed), given, result], cwd=here,
                                     capture_output=True, text=True, timeout=300, env={**os.environ, "KILN_CACHE": "0"})
            except subprocess.TimeoutExpired:
                report("refused", name, f"no result after 300 s  ({shapes}; seed {seed})")
                continue
            if ran.returncode:
                report("refused", name, f"{(ran.stderr or ran.stdout).strip()}  ({shapes}; seed {seed})")
                continue
            got = load(result)
            took = float(ran.stdout.split()[-1])
            kind, text = "slow" if took > o.slow else "equal", ""
            for i, (g, w) in enumerate(zip(got, want)):
                if name in lines.RANDOM and (g.dtype, g.shape) == (w.dtype, w.shape):
                    continue
                off, how = compared(g, w, reference and reference[i])
                if off:
                    kind = "few" if off * 2000 <= w.numel() and kind != "differs" else "differs"
                    text += f"result {i}: {how}; "
            report(kind, name, f"{text}({shapes}; seed {seed}; {took:.2f} s)")
    print(f"seed {o.seed}:", ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    sys.exit(1 if counts.get("refused") or counts.get("differs") else 0)


if __name__ == "__main__":
    main()
