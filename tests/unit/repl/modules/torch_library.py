"""More of torch's names, and what PyTorch on a CPU makes of them: rows as those of torch_names.py, with gradients,
optimizers and modules.

    python3 tests/unit/repl/modules/torch_library.py record               # writes torch_library.txt anew
    python3 tests/unit/repl/modules/torch_library.py compare KILN [TEXT]  # the same in both, now; of rows with TEXT

torch_names_test.cc holds Kiln to the recorded results. The file has the variables, then a row for each expression: it,
a tab, and its value, or "error". A new row is an expression and a tab; `record` adds the rest.
"""
import os
import sys

import torch_names

FILE = os.path.join(torch_names.HERE, "torch_library.txt")


def read():
    lines = [line for line in open(FILE).read().splitlines() if not line.startswith("#")]
    return ("\n".join(line for line in lines if "\t" not in line) + "\n",
            [line.split("\t")[0] for line in lines if "\t" in line])


def main():
    torch_names.VARIABLES, texts = read()
    if sys.argv[1] == "record":
        import torch
        with open(FILE, "w") as out:
            out.write(f"# PyTorch {torch.__version__.split('+')[0]}; made by torch_library.py\n{torch_names.VARIABLES}")
            for text, result in zip(texts, torch_names.in_torch(texts)):
                out.write(f"{text}\t{result}\n")
        return
    texts = [text for text in texts if len(sys.argv) < 4 or sys.argv[3] in text]
    results = torch_names.in_torch(texts)
    for lazy in (False, True):
        print("as kernels:" if lazy else "on the host:")
        print(torch_names.in_kiln(sys.argv[2], texts, results, lazy), end="")


if __name__ == "__main__":
    main()
