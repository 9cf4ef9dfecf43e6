"""Random statements over tensors, in PyTorch and in Kiln: dtypes, shapes, and which of them are errors.

    python3 tests/unit/repl/modules/torch_surface.py record              # writes torch_surface.txt beside it
    python3 tests/unit/repl/modules/torch_surface.py compare KILN [SEED] # the same statements in both, now

torch_surface_test.cc holds Kiln to the recorded results; values are torch_values.py's. Each line is a statement, a tab,
and "dtype shape" or "error".
"""
import os
import random
import re
import subprocess
import sys
import tempfile

SEED, COUNT = 20261122, 700
DTYPES = ["float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]
SHAPES = ["()", "(3,)", "(1,)", "(2, 3)", "(3, 2)", "(1, 3)", "(2, 1)", "(2, 3, 4)", "(1, 3, 1)", "(0,)", "(2, 0)"]
UNARY = ["exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "abs", "floor", "ceil", "relu", "neg"]
REDUCE = ["sum", "mean", "max", "min", "prod", "any", "all", "argmax", "argmin"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">", ">=", "&", "|", "^"]
SCALARS = ["2", "-3", "0.5", "True", "1e3"]
CASTS = ["float", "half", "bfloat16", "double", "long", "int", "short", "bool"]


# What Kiln does otherwise, and is left out.
DIFFERENT = [
    r"softmax\(.*dtype=torch\.(u?int|bool)",  # PyTorch refuses integers only where there are elements
    r"int\d+\) \*\* .*-3",  # PyTorch looks at a negative power of integers only where it is a number
    r"(//|%) torch\.(arange|ones\(.*bool)",  # PyTorch refuses integers divided by an element that is zero
]


def statement(r):
    def tensor():
        kind = r.random()
        dtype = r.choice(DTYPES)
        if kind < 0.7:
            return f"torch.ones({r.choice(SHAPES)}, dtype=torch.{dtype})"
        if kind < 0.85:
            return f"torch.arange({r.randint(1, 6)}, dtype=torch.{r.choice(DTYPES[:8])})"
        return f"torch.full({r.choice(SHAPES)}, {r.choice(SCALARS)}, dtype=torch.{dtype})"

    def dim():
        return r.randint(-3, 3)

    def operand():
        return r.choice(SCALARS) if r.random() < 0.3 else tensor()

    x = tensor()
    forms = [
        lambda: f"torch.{r.choice(UNARY)}({x})",
        lambda: f"{x} {r.choice(BINARY)} {operand()}",
        lambda: f"{r.choice(SCALARS)} {r.choice(BINARY)} {x}",
        lambda: f"{tensor()} {r.choice(BINARY)} {tensor()}",
        lambda: f"{x}.{r.choice(['sum', 'mean', 'any', 'all', 'prod'])}()",
        lambda: f"{x}.{r.choice(['sum', 'mean'])}({dim()}, keepdim={r.random() < 0.5})",
        lambda: f"{x}.{r.choice(['argmax', 'argmin'])}(dim={dim()})",
        lambda: f"{x}.{r.choice(['amax', 'amin'])}(dim={dim()})",
        lambda: f"torch.softmax({x}, {dim()})",
        lambda: f"torch.cumsum({x}, {dim()})",
        lambda: f"{x} @ {tensor()}",
        lambda: f"torch.where({x} > 0, {operand()}, {operand()})",
        lambda: f"torch.maximum({x}, {tensor()})",
        lambda: f"{x}.{r.choice(CASTS)}()",
        lambda: f"{x}.to(torch.{r.choice(DTYPES)})",
        lambda: f"{x}.reshape({r.choice(['-1', '3, 2', '6', '(2, -1)', '-1, -1', '0, 3', '1, -1'])})",
        lambda: f"{x}.view({r.choice(['-1', '3, 2', '6', '2, -1'])})",
        lambda: f"{x}.transpose({dim()}, {dim()})",
        lambda: f"{x}.permute({r.choice(['0', '1, 0', '2, 0, 1', '0, 0', '-1, 0'])})",
        lambda: f"{x}.unsqueeze({dim()})",
        lambda: f"{x}.squeeze({r.choice(['', dim()])})",
        lambda: f"{x}.expand({r.choice(['4, 3', '2, 3', '-1, 3', '2, 2, 3', '5'])})",
        lambda: f"{x}[{r.choice(['0', '-1', '5', ':', '1:', '::2', '...', 'None', '0, 0', ':, 0', '..., None', ':1, 1:'])}]",
        lambda: f"{x}.T",
        lambda: f"torch.cat([{x}, {tensor()}], {dim()})",
        lambda: f"torch.stack([{x}, {tensor()}], {dim()})",
        lambda: f"{x}.clamp({r.choice(['0, 1', 'min=0', 'max=0.5', '-1'])})",
        lambda: f"torch.zeros_like({x})",
        lambda: f"{x}.flatten()",
    ]
    return r.choice(forms)()


def statements(seed):
    r = random.Random(seed)
    texts = dict.fromkeys(statement(r) for _ in range(COUNT))
    return [text for text in texts if not any(re.search(d, text) for d in DIFFERENT)]


def in_torch(texts):
    import torch

    out = []
    for text in texts:
        try:
            v = eval(text, {"torch": torch})
            out.append(f"{str(v.dtype)[6:]} {tuple(v.shape)}")
        except Exception:
            out.append("error")
    return out


def in_kiln(binary, texts):
    lines = ["import torch"]
    for text in texts:
        lines += ["try:", f"    v = {text}", "    print(str(v.dtype)[6:], tuple(v.shape))", "except Exception as e:",
                  "    print('error', e)"]
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write("\n".join(lines) + "\n")
        script.flush()
        done = subprocess.run([binary, "--device", "cpu", "run", script.name], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.splitlines()


def main():
    if sys.argv[1:] == ["record"]:
        texts = statements(SEED)
        path = os.path.join(os.path.dirname(__file__), "torch_surface.txt")
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(f"{text}\t{result}\n" for text, result in zip(texts, in_torch(texts)))
        return 0
    if len(sys.argv) < 3 or sys.argv[1] != "compare":
        print(__doc__)
        return 2
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print("seed", seed)
    texts = statements(seed)
    kiln = in_kiln(sys.argv[2], texts)
    differ = 0
    for i, (text, wanted) in enumerate(zip(texts, in_torch(texts))):
        got = kiln[i] if i < len(kiln) else "nothing"
        if got != wanted and not (wanted == "error" and got.startswith("error ")):
            differ += 1
            print(f"{text}\n  torch: {wanted}\n  kiln:  {got}")
    print(f"{len(texts)} statements, {differ} differ")
    return differ > 0


sys.exit(main())
