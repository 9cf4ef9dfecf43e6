"""Writes torch_values.txt beside it: expressions, and what PyTorch on a CPU makes of them.

    python3 tests/unit/repl/modules/torch_values.py

torch_values_test.cc evaluates the same texts here, with few elements and with many. Lines with `= T(values,
dtype)` are variables; of the rest each is an expression, a tab, and its `dtype values`. Where PyTorch's CPU and CUDA kernels differ, the second text of a pair
says in PyTorch's own words which of them is meant.
"""
import os

import torch

DTYPES = {"float16": "h", "bfloat16": "b", "float32": "f", "float64": "d", "int8": "i8", "uint8": "u8", "int16": "i16",
          "int32": "i32", "int64": "i64", "bool": "t"}
rows, names = [], {}


def row(text, instead=None):
    rows.append((text, instead or text))


def t(values, dtype):
    """A variable of these values; a row that defines it comes first in the file."""
    if (values, dtype) not in names:
        names[values, dtype] = f"{DTYPES[dtype]}_{len(names)}"
    return names[values, dtype]


FLOATS = "[0.1, -0.3, 2.5, -3.14159, 100.7, 0.0, -0.0, inf, -inf, nan]"
PLAIN = "[0.1, -0.3, 1.7, -3.14159, 100.7, 1e-3, -2.0, 7.0]"
OTHER = "[2.0, 0.7, -1.1, 3.3, -0.1, 2.5, 3.0, 0.3]"

for d in ("float16", "bfloat16", "float32", "float64"):
    x, y, p = t(FLOATS, d), t(OTHER, d), t(PLAIN, d)
    wide = "torch.float64" if d == "float64" else "torch.float32"
    for s in ("0.1", "3", "-2.7"):
        # PyTorch's CPU kernels for halves round s to the tensor's dtype here, CUDA's to float32.
        row(f"{x} + {s}", f"({x}.to({wide}) + {s}).to(torch.{d})")
        row(f"{x} - {s}", f"({x}.to({wide}) - {s}).to(torch.{d})")
        row(f"{s} - {x}", f"({s} - {x}.to({wide})).to(torch.{d})")
        row(f"{x} * {s}")
        row(f"{x} / {s}")
        row(f"{p} // {s}")
        row(f"{p} % {s}")
        row(f"{x} < {s}")
        row(f"{x} == {s}")
        row(f"{x}.clamp(-{s}, {s})")
        row(f"torch.where({x} > 0, {x}, {s})")
    row(f"3 / {p}")
    row(f"1 / {p}")
    for e in ("2", "-1", "1", "0"):
        row(f"{p} ** {e}")
    row(f"{p} ** 3", f"{p} * {p} * {p}")
    row(f"{p} ** -2", f"1 / ({p} * {p})")
    for op in ("+", "-", "*", "/", "//", "%"):
        row(f"{p} {op} {y}")
    row(f"{p} * {y} + {y}")
    row(f"{p} * 0.3 - {y} * 0.7")
    row(f"({p} * 300.0).float()")
    # Not of 0 and -0, where PyTorch's dtypes differ.
    one, other = t("[nan, 1.0, nan, 2.0, inf, -inf]", d), t("[1.0, nan, nan, -2.5, nan, 7.0]", d)
    row(f"torch.maximum({one}, {other})")
    row(f"torch.minimum({one}, {other})")
    row(f"{x}.clamp(min=0.5)")
    row(f"{x}.round()")
    row(f"{x}.floor()")
    # PyTorch's vectors of float32 are not correctly rounded.
    row(f"{p}.abs().sqrt()", f"{p}.abs().double().sqrt().to(torch.{d})")
    for f in ("float16", "bfloat16", "float32", "float64"):
        row(f"{x}.to(torch.{f})")
        row(f"{p} + {t(OTHER, f)}")
        row(f"{p} < {t(OTHER, f)}")
    for i in ("int8", "uint8", "int16", "int32", "int64"):
        row(f"{t('[0.0, 1.9, -1.9, 100.5, -100.5, 127.0, 0.5, -0.5]', d)}.to(torch.{i})")
    row(f"{t('[300.0, -1.0, -129.0, 200.0, 255.0, 256.0, 1000.0]', d)}.to(torch.int8)")
    row(f"{t('[300.0, -1.0, -129.0, 200.0, 255.0, 256.0, 1000.0]', d)}.to(torch.uint8)")
    row(f"{x}.to(torch.bool)")
    for i in ("int8", "uint8", "int16", "int32", "int64", "bool"):
        values = "[1, 0, 1]" if i == "bool" else "[1, 100, 3]"
        row(f"{t(values, i)} * {t('[0.1, 2.5, -3.0]', d)}")
    row(f"{t('[257, 1001, 2049]', 'int32')} + {t('[1.0, 1.0, 0.5]', d)}")

INTS = {"int8": "[100, -100, 127, -128, 7, -7, 1, 0]", "uint8": "[100, 200, 255, 0, 7, 3, 1, 128]",
        "int16": "[30000, -30000, 32767, -32768, 7, -7, 1, 0]",
        "int32": "[2000000000, -2000000000, 2147483647, -2147483648, 7, -7, 1, 0]",
        "int64": "[4611686018427387905, -4611686018427387905, 9223372036854775807, -9223372036854775808, 7, -7, 1, 0]"}
for d, values in INTS.items():
    x = t(values, d)
    divisors = t("[3, 3, 2, 5, 2, 2, 7, 1]" if d == "uint8" else "[3, 3, -2, 5, -2, 2, -7, -1]", d)
    for op in ("+", "-", "*", "//", "%", "/", "<", "==", "&", "|", "^"):
        row(f"{x} {op} {divisors}")
    for s in ("3", "100"):
        for op in ("+", "-", "*", "//", "%", "/", "**", "<", ">=", "=="):
            row(f"{x} {op} {s}")
    row(f"{x} * 0.1")
    row(f"{x} // 2.5")
    row(f"7 / {x}")
    row(f"-{x}")
    row(f"{x}.abs()")
    row(f"~{x}")
    for s in ("1", "7", "63", "64"):
        row(f"{x} << {s}")
        row(f"{x} >> {s}")
    row(f"{t('[1, -8, 3, 5]' if d != 'uint8' else '[1, 8, 3, 5]', d)} >> {t('[70, 70, 1, 2]', d)}")
    row(f"{t('[1, 8, 3, 5]', d)} << {t('[70, 64, 1, 2]', d)}")
    row(f"{t('[2, 3, 1, 0]', d)} ** {t('[3, 2, 5, 0]', d)}")
    if d != "uint8":
        row(f"{t('[2, 3, -1, -1, 1]', d)} ** {t('[-1, -2, -3, -4, -5]', d)}")
    for o, other in INTS.items():
        row(f"{x} + {t(other, o)}")
        row(f"{x} < {t(other, o)}")
        row(f"{x}.to(torch.{o})")
    row(f"{x}.float()")
    row(f"{x}.to(torch.bool)")

b = t("[True, False, True, False]", "bool")
c = t("[True, True, False, False]", "bool")
for op in ("+", "*", "&", "|", "^", "==", "<", "/"):
    row(f"{b} {op} {c}")
for s in ("1", "2.5", "3"):
    row(f"{b} + {s}")
    row(f"{b} * {s}")
row(f"~{b}")
row(f"torch.where({b}, 1.5, {t('[1, 2, 3, 4]', 'float16')})")
row(f"{t('[44, 5]', 'uint8')} == 300")
row(f"{t('[5, 7]', 'int8')} + 300")
row(f"{t('[7.0, -7.0, 7.0, -7.0, 1.0, 0.0, inf, 5.0, -5.0, 0.3]', 'float32')} // {t('[2.0, 2.0, -2.0, -2.0, 0.0, 0.0, 2.0, inf, inf, 0.1]', 'float32')}")
row(f"{t('[7.0, -7.0, 7.0, -7.0, 1.0, 0.0, inf, 5.0, -5.0, 0.3]', 'float32')} % {t('[2.0, 2.0, -2.0, -2.0, 0.0, 0.0, 2.0, inf, inf, 0.1]', 'float32')}")

# Halfway between two halves but for digits that float32 does not hold.
for values, d in ((str([1.00048828125 + 2**-40, 1.001953125 + 2**-40, 65519.99999999, 1 + 2**-8 + 2**-40]), "float64"),
                  (str([2049 * 2**10 + 1, 2**53 + 1, -(2**62) + 12345, 16777219, 2049 * 8 + 1]), "int64"),
                  (str([16777219, 2049 * 8 + 1, -(2**31) + 65, 2**30 + 2**22 + 1]), "int32")):
    for to in ("float16", "bfloat16", "float32"):
        row(f"{t(values, d)}.to(torch.{to})")

inf, nan = float("inf"), float("nan")


def T(values, dtype):
    return torch.tensor(values, dtype=dtype)


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_values.txt"), "w") as f:
    f.write(f"# PyTorch {torch.__version__.split('+')[0]}; made by torch_values.py\n")
    for (values, dtype), name in names.items():
        globals()[name] = T(eval(values), getattr(torch, dtype))
        f.write(f"{name} = T({values}, torch.{dtype})\n")
    for text, instead in rows:
        value = eval(instead)
        f.write(f"{text}\t{value.dtype} {value.tolist()}\n")
print(len(rows), "rows")
