"""How torch_names.py and torch_names_test.cc show a value, and compare it with PyTorch's."""
import torch
import torch.nn.functional as F
from torch import nn

NEAR = {"float64": 1e-6, "float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def near(a, b, dtype):
    if isinstance(a, list):
        return len(a) == len(b) and all(near(x, y, dtype) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= NEAR.get(dtype, 1e-6) * max(1.0, abs(b))
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def same(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == 3 and len(b) == 3 and isinstance(a[0], str):
        return a[0] == b[0] and a[1] == b[1] and near(a[2], b[2], a[0])
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return near(a, b, "float64")


def check(text, make, wanted):
    try:
        got = show(make())
    except Exception as e:
        if wanted != "error":
            print(text, "raises", type(e).__name__ + ":", e)
        return
    if wanted == "error":
        print(text, "is", got, "and an error in PyTorch")
    elif not same(got, wanted):
        print(text, "is", got, "and in PyTorch", wanted)


def put(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def show(value):
    if isinstance(value, torch.Tensor):
        return (str(value.dtype)[6:], tuple(value.shape), value.reshape(-1).tolist())
    if isinstance(value, (tuple, list)):
        return [show(each) for each in value]
    return str(value) if isinstance(value, torch.dtype) else value
