"""The names of torch that Kiln has: expressions, and what PyTorch on a CPU makes of them.

    python3 tests/unit/repl/modules/torch_names.py record               # writes torch_names.txt beside it
    python3 tests/unit/repl/modules/torch_names.py compare KILN [TEXT]  # the same in both, now; of rows with TEXT

torch_names_test.cc holds Kiln to the recorded results, once with small tensors on the host and once as kernels. The file
has the variables, then a row for each expression: it, a tab, and its value as `record` shows it, or "error".
"""
import os
import subprocess
import sys
import tempfile

VARIABLES = """
inf, nan = float("inf"), float("nan")
f = torch.tensor([[0.5, -1.25, 2.0, 3.5], [-0.75, 0.0, 1.0, -2.0], [4.0, -3.0, 0.25, 1.5]])
g = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.75, -2.0, 3.0, 1.25], [-1.5, 0.5, 2.0, -0.25]])
h, b, d = f.half(), g.bfloat16(), f.double()
i = torch.tensor([[5, -3, 7, 0], [2, 9, -8, 1], [4, 4, 6, -2]])
k = i.int()
u = torch.tensor([[5, 3, 250, 0], [2, 9, 8, 1], [4, 4, 6, 2]], dtype=torch.uint8)
t = torch.tensor([[True, False, True, True], [False, False, True, False], [True, True, False, True]])
x3 = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) - 7.5
i3 = torch.arange(24).reshape(2, 3, 4)
v = torch.tensor([3.0, -1.0, 2.0, 2.0, 0.5])
w = torch.tensor([4, 1, 3, 1, 0])
n = torch.tensor([1.0, nan, -2.0, inf, 0.5])
s = torch.tensor(2.5)
z = torch.empty((0, 4))
p = torch.tensor([2, 0, 1])
q = torch.tensor([[0, 2, 1, 1], [3, 3, 0, 2], [1, 0, 2, 3]])
m = torch.tensor([True, False, True])
"""


def rows():
    import torch_names_rows
    return torch_names_rows.ROWS


HERE = os.path.dirname(os.path.abspath(__file__))
CHECK = open(os.path.join(HERE, "torch_names_check.py")).read()


def in_torch(texts):
    import torch
    import torch.nn.functional as F
    names = {"torch": torch, "F": F, "nn": torch.nn}
    exec(CHECK, names)
    out = []
    for text in texts:
        fresh = dict(names)
        exec(VARIABLES, fresh)
        try:
            out.append(repr(fresh["show"](eval(text, fresh))))
        except Exception:
            out.append("error")
    return out


def in_kiln(binary, texts, results, lazy):
    lines = [CHECK]
    if lazy:
        lines.append("torch._kiln.stay_lazy(True)")
    variables = "\n    ".join(VARIABLES.strip().split("\n"))
    for text, wanted in zip(texts, results):
        wanted = '"error"' if wanted == "error" else wanted
        lines.append(f"def one():\n    {variables}\n    return {text}\ncheck({text!r}, one, (lambda inf, nan: {wanted})(float('inf'), float('nan')))")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write("\n".join(lines) + "\n")
        script.flush()
        return subprocess.run([binary, "--device", "cpu", "run", script.name], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True).stdout


def main():
    sys.path.insert(0, HERE)
    texts = rows()
    if sys.argv[1] == "record":
        import torch
        with open(os.path.join(HERE, "torch_names.txt"), "w") as out:
            out.write(f"# PyTorch {torch.__version__.split('+')[0]}; made by torch_names.py\n{VARIABLES.strip()}\n")
            for text, result in zip(texts, in_torch(texts)):
                out.write(f"{text}\t{result}\n")
        return
    if len(sys.argv) > 3:
        texts = [text for text in texts if sys.argv[3] in text]
    path = os.path.join(HERE, "torch_names.txt")
    known = dict(line.rstrip("\n").split("\t") for line in open(path) if "\t" in line) if os.environ.get("RECORDED") else {}
    results = [known[text] for text in texts] if known else in_torch(texts)
    for lazy in (False, True):
        print("as kernels:" if lazy else "on the host:")
        print(in_kiln(sys.argv[2], texts, results, lazy), end="")


if __name__ == "__main__":
    main()
