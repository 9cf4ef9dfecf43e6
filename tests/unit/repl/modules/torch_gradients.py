"""Gradients of torch.func: functions of tensors, and what PyTorch on a CPU makes of them.

    python3 tests/unit/repl/modules/torch_gradients.py record               # writes torch_gradients.txt anew
    python3 tests/unit/repl/modules/torch_gradients.py compare KILN [TEXT]  # the same in both, now; of rows with TEXT

torch_gradients_test.cc holds Kiln to the recorded results. The file has the variables, then a row for each expression,
which gives tensors: it, a tab, and dtypes, shapes and elements as show() writes them, or "error". A new row is an
expression and a tab; `record` adds the rest.
"""
import os
import subprocess
import sys
import tempfile

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_gradients.txt")
SHOW = """
def show(value):
    if isinstance(value, (tuple, list)):
        return "; ".join([show(v) for v in value])
    elements = " ".join(["%.6g" % x for x in value.double().reshape(-1).tolist()])
    return str(value.dtype)[6:] + " " + str(tuple(value.shape)) + " " + elements
"""
# Elements that differ by the rounding of a step in between, as a share of the largest.
CLOSE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 2e-5}


def read():
    lines = [line for line in open(FILE).read().splitlines() if not line.startswith("#")]
    return ("\n".join(line for line in lines if "\t" not in line) + "\n",
            [line.split("\t")[0] for line in lines if "\t" in line])


def in_torch(variables, texts):
    import torch
    import torch.nn.functional as F
    names = {"torch": torch, "F": F}
    exec(SHOW, names)
    out = []
    for text in texts:
        fresh = dict(names)
        exec(variables, fresh)
        try:
            out.append(fresh["show"](eval(text, fresh)))
        except Exception:
            out.append("error")
    return out


def in_kiln(program, variables, texts):
    script = "import torch\nimport torch.nn.functional as F\n" + SHOW
    for text in texts:
        script += variables + f"try:\n    print('=', show({text}))\nexcept Exception as e:\n    print('= error', e)\n"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(script)
        file.flush()
        out = subprocess.run([program, "run", "--device", "cpu", file.name], capture_output=True, text=True)
    print(out.stderr, end="")
    return [line[2:] for line in out.stdout.splitlines() if line.startswith("= ")]


def close(got, expected):
    if got.startswith("error") or expected == "error":
        return got.startswith("error") and expected == "error"
    parts, wanted = got.split("; "), expected.split("; ")
    if len(parts) != len(wanted):
        return False
    for a, b in zip(parts, wanted):
        (kind, elements), (wanted_kind, wanted_elements) = a.split(") "), b.split(") ")
        if kind != wanted_kind:
            return False
        x, y = [[float(t) for t in text.split()] for text in (elements, wanted_elements)]
        allowed = CLOSE.get(kind.split()[0], 0) * max([abs(t) for t in y if abs(t) < 1e30] + [1e-3])
        if len(x) != len(y) or any(not (s == t or s != s and t != t or abs(s - t) <= allowed) for s, t in zip(x, y)):
            return False
    return True


def main():
    variables, texts = read()
    if sys.argv[1] == "record":
        import torch
        with open(FILE, "w") as file:
            file.write(f"# PyTorch {torch.__version__.split('+')[0]}; made by torch_gradients.py\n{variables}")
            for text, value in zip(texts, in_torch(variables, texts)):
                file.write(f"{text}\t{value}\n")
        return
    texts = [t for t in texts if len(sys.argv) < 4 or sys.argv[3] in t]
    wrong = 0
    for text, got, expected in zip(texts, in_kiln(sys.argv[2], variables, texts), in_torch(variables, texts)):
        if not close(got, expected):
            wrong += 1
            print(f"{text}\n  kiln  {got}\n  torch {expected}")
    print(f"{wrong} of {len(texts)} differ")


main()
