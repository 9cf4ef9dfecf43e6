"""PyTorch's own files: a zip archive of the storages' elements and of a pickle that says what they are.

A pickle is a program for a stack. This one runs what torch.load(weights_only=True) allows, which makes plain values and
tensors and calls nothing else; what a file holds beyond is refused by name. Python's pickletools describes the codes."""
import collections
import os
import tempfile

import torch
from torch import _kiln

_STORAGES = {"FloatStorage": torch.float32, "DoubleStorage": torch.float64, "HalfStorage": torch.float16,
             "BFloat16Storage": torch.bfloat16, "LongStorage": torch.int64, "IntStorage": torch.int32,
             "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8,
             "BoolStorage": torch.bool, "ComplexFloatStorage": torch.complex64,
             "ComplexDoubleStorage": torch.complex128}
_PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64}
_MARK = object()


# --- writing


class _Writer:
    def __init__(self):
        self.out, self.storages, self.inside = [], {}, []

    def text(self, s):
        data = s.encode()
        self.out.append(b"X" + len(data).to_bytes(4, "little") + data)

    def name(self, module, name):
        self.out.append(f"c{module}\n{name}\n".encode())

    def number(self, n):
        if 0 <= n < 256:
            self.out.append(b"K" + n.to_bytes(1, "little"))
        elif -2**31 <= n < 2**31:
            self.out.append(b"J" + n.to_bytes(4, "little", signed=True))
        else:
            data = n.to_bytes(17, "little", signed=True)
            self.out.append(b"\x8a" + len(data).to_bytes(1, "little") + data)

    def real(self, x):
        # Most significant byte first.
        self.out.append(b"G" + bytes(reversed(torch.tensor([x], dtype=torch.float64).view(torch.uint8).tolist())))

    def items(self, begin, values, end):
        self.out.append(begin)
        for v in values:
            self.value(v)
        self.out.append(end)

    def tensor(self, t):
        names = [name for name, dtype in _STORAGES.items() if dtype is t.dtype]
        if not names:
            raise NotImplementedError(f"save() of a tensor of {t.dtype} is not supported: convert it first")
        if id(t) not in self.storages:
            self.storages[id(t)] = str(len(self.storages)), t
        shape, stride = tuple(t.shape), []
        for n in reversed(shape):
            stride.insert(0, stride[0] * before if stride else 1)
            before = max(n, 1)
        self.name("torch._utils", "_rebuild_tensor_v2")
        self.out.append(b"((")
        self.text("storage")
        self.name("torch", names[0])
        self.text(self.storages[id(t)][0])
        self.text(str(t.device))
        self.number(t.numel())
        self.out.append(b"tQ")
        self.number(0)
        self.items(b"(", shape, b"t")
        self.items(b"(", stride, b"t")
        self.value(t.requires_grad and not t.is_parameter)
        self.name("collections", "OrderedDict")
        self.out.append(b")RtR")

    def value(self, v):
        if v is None:
            self.out.append(b"N")
        elif v is True or v is False:
            self.out.append(b"\x88" if v else b"\x89")
        elif isinstance(v, torch.Tensor):
            self.tensor(v)
        elif isinstance(v, torch.dtype):
            self.name("torch", str(v).partition(".")[2])
        elif isinstance(v, torch.device):
            self.name("torch", "device")
            self.items(b"(", [str(v)], b"tR")
        elif type(v) is int:
            self.number(v)
        elif type(v) is float:
            self.real(v)
        elif type(v) is str:
            self.text(v)
        elif isinstance(v, (dict, list, tuple, set)):
            self.collection(v)
        else:
            raise NotImplementedError(
                f"save() of '{type(v).__name__}' is not supported: what is saved are tensors, numbers, texts, and "
                "dicts, lists and tuples of them, as module.state_dict() is one")

    def collection(self, v):
        if any(v is x for x in self.inside):
            raise NotImplementedError(f"save() of a {type(v).__name__} that holds itself is not supported")
        self.inside.append(v)
        if isinstance(v, dict):
            if type(v) in (collections.OrderedDict, collections.defaultdict, dict, collections.Counter):
                self.items(b"}(", [x for pair in v.items() for x in pair], b"u")
            else:
                raise NotImplementedError(f"save() of '{type(v).__name__}' is not supported: save dict(x)")
        elif isinstance(v, list):
            self.items(b"](", v, b"e")
        elif isinstance(v, torch.Size):
            self.name("torch", "Size")
            self.out.append(b"(")
            self.items(b"(", v, b"ttR")
        elif isinstance(v, tuple):
            self.items(b"(", v, b"t")
        else:
            self.name("builtins", "set")
            self.out.append(b"(")
            self.items(b"](", v, b"etR")
        self.inside.pop()


def _elements(t):
    t = t.detach()
    return (torch.view_as_real(t) if t.dtype in _PARTS else t).contiguous()


def save(obj, f):
    if isinstance(f, str) and f.endswith((".npy", ".npz", ".safetensors")):
        raise NotImplementedError(f"save() of complex tensors as '{f}' is not supported: a .pt file takes them")
    w = _Writer()
    w.out.append(b"\x80\x02")
    w.value(obj)
    w.out.append(b".")
    entries = [("archive/data.pkl", b"".join(w.out)), ("archive/byteorder", b"little"), ("archive/version", b"3\n")]
    entries += [(f"archive/data/{key}", _elements(t)) for key, t in w.storages.values()]
    if isinstance(f, str):
        _kiln.save_zip(f, entries)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        _kiln.save_zip(path, entries)
        with open(path, "rb") as file:
            f.write(file.read())


# --- reading


def _rebuilt(storage, offset, size, stride, requires_grad=False, hooks=None, metadata=None):
    data, dtype = storage
    flat = data.view(_PARTS.get(dtype, dtype)) if data.numel() else data.new_empty(0, dtype=_PARTS.get(dtype, dtype))
    if dtype in _PARTS:
        flat = torch.view_as_complex(flat.reshape(-1, 2))
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if 0 in size:
        t = flat.new_empty(size) if hasattr(flat, "new_empty") else torch.empty(size, dtype=dtype)
    elif last >= flat.numel() or offset < 0 or min(stride, default=0) < 0:
        raise RuntimeError(f"a tensor of {tuple(size)} does not fit its storage of {flat.numel()} elements")
    elif dtype in _PARTS:
        t = flat[offset:offset + flat.numel()] if offset else flat
        if last - offset + 1 != _count(size):
            raise NotImplementedError("load() of complex tensors that are views is not supported")
        t = t[:_count(size)].reshape(size)
    else:
        t = flat.as_strided(size, stride, offset)
    return t.requires_grad_() if requires_grad else t


def _count(size):
    count = 1
    for n in size:
        count *= n
    return count


def _parameter(data, requires_grad=True, hooks=None):
    return torch.nn.Parameter(data, requires_grad)


_CALLS = {"torch._utils._rebuild_tensor_v2": _rebuilt, "torch._utils._rebuild_parameter": _parameter,
          "collections.OrderedDict": collections.OrderedDict, "collections.Counter": collections.Counter,
          "torch.Size": torch.Size, "torch.device": torch.device, "builtins.set": set, "__builtin__.set": set,
          "builtins.complex": complex, "__builtin__.complex": complex, "_codecs.encode": lambda s, _: s.encode("latin1")}


class _Reader:
    def __init__(self, path, text, storages, place):
        self.path, self.text, self.at = path, text, 0
        self.storages, self.place, self.made = storages, place, {}
        self.stack, self.memo = [], {}

    def damaged(self):
        raise RuntimeError(f"'{self.path}' is damaged: its pickle ends or goes wrong at byte {self.at}")

    def take(self, n):
        out = self.text[self.at:self.at + n]
        if len(out) != n:
            self.damaged()
        self.at += n
        return out

    def size(self, n):
        return int.from_bytes(self.take(n), "little")

    def line(self):
        end = self.text.find(b"\n", self.at)
        if end < 0:
            self.damaged()
        out = self.text[self.at:end].decode()
        self.at = end + 1
        return out

    def pop(self):
        if not self.stack:
            self.damaged()
        return self.stack.pop()

    def to_mark(self):
        out = []
        while (v := self.pop()) is not _MARK:
            out.append(v)
        return out[::-1]

    def global_of(self, module, name):
        full = f"{module}.{name}"
        if full in _CALLS:
            return _CALLS[full]
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return name
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        raise NotImplementedError(f"'{self.path}' holds '{full}', which is code: load() reads tensors, numbers, texts "
                                  "and collections of them, as module.state_dict() is one")

    def storage(self, given):
        if not isinstance(given, tuple) or len(given) != 5 or given[0] != "storage" or given[1] not in _STORAGES:
            self.damaged()
        _, kind, key, location, count = given
        if key not in self.made:
            if key not in self.storages:
                raise RuntimeError(f"'{self.path}' is damaged: it has no storage '{key}'")
            self.made[key] = self.storages[key].to(location if self.place is None else self.place)
        return self.made[key], _STORAGES[kind]

    def build(self):
        state = self.pop()
        if not isinstance(self.stack[-1], dict):
            raise NotImplementedError(f"'{self.path}' holds an object with attributes, which load() does not make")
        if isinstance(state, dict) and state:  # _metadata of a state_dict
            return

    def fill(self, values):
        if not self.stack or len(values) % 2 or not isinstance(self.stack[-1], dict):
            self.damaged()
        for k, v in zip(values[::2], values[1::2]):
            self.stack[-1][k] = v

    def call(self):
        args, f = self.pop(), self.pop()
        if not any(f is g for g in _CALLS.values()) or not isinstance(args, tuple):
            self.damaged()
        self.stack.append(f(*args))

    def run(self):
        stack = self.stack
        constants = {b"N": None, b"\x88": True, b"\x89": False, b"(": _MARK, b")": ()}
        ints = {b"K": 1, b"M": 2}
        texts, blobs = {b"\x8c": 1, b"X": 4, b"\x8d": 8}, {b"C": 1, b"B": 4, b"\x8e": 8}
        while True:
            op = self.take(1)
            if op in constants:
                stack.append(constants[op])
            elif op in (b"q", b"r", b"\x94"):
                if not stack:
                    self.damaged()
                self.memo[len(self.memo) if op == b"\x94" else self.size(1 if op == b"q" else 4)] = stack[-1]
            elif op in (b"h", b"j"):
                key = self.size(1 if op == b"h" else 4)
                if key not in self.memo:
                    self.damaged()
                stack.append(self.memo[key])
            elif op in ints:
                stack.append(self.size(ints[op]))
            elif op == b"J":
                stack.append(int.from_bytes(self.take(4), "little", signed=True))
            elif op == b"\x8a":
                stack.append(int.from_bytes(self.take(self.size(1)), "little", signed=True))
            elif op == b"G":
                stack.append(torch.tensor(list(reversed(self.take(8))), dtype=torch.uint8).view(torch.float64).item())
            elif op in texts:
                stack.append(self.take(self.size(texts[op])).decode())
            elif op in blobs:
                stack.append(self.take(self.size(blobs[op])))
            elif op == b"c":
                module = self.line()
                stack.append(self.global_of(module, self.line()))
            elif op == b"\x93":
                name = self.pop()
                stack.append(self.global_of(self.pop(), name))
            elif op == b"Q":
                stack.append(self.storage(self.pop()))
            elif op in (b"R", b"\x81"):
                self.call()
            elif op == b"b":
                self.build()
            elif op in (b"}", b"]", b"\x8f"):
                stack.append({} if op == b"}" else [] if op == b"]" else set())
            elif op == b"u":
                self.fill(self.to_mark())
            elif op == b"s":
                v = self.pop()
                self.fill([self.pop(), v])
            elif op in (b"e", b"a", b"\x90"):
                values = [self.pop()] if op == b"a" else self.to_mark()
                if not stack or not isinstance(stack[-1], set if op == b"\x90" else list):
                    self.damaged()
                if op == b"\x90":
                    stack[-1].update(values)
                else:
                    stack[-1].extend(values)
            elif op == b"t":
                stack.append(tuple(self.to_mark()))
            elif op in (b"\x85", b"\x86", b"\x87"):
                values = [self.pop() for _ in range(op[0] - 0x84)]
                stack.append(tuple(values[::-1]))
            elif op in (b"\x80", b"\x95"):
                self.take(1 if op == b"\x80" else 8)  # the protocol, a frame's length
            elif op == b"0":
                self.pop()
            elif op == b"2":
                stack.append(stack[-1])
            elif op == b".":
                return self.pop()
            else:
                raise NotImplementedError(f"'{self.path}': its pickle has the code {op!r}, which load() does not run")


def load(f, map_location):
    if isinstance(f, str):
        return _loaded(f, f, map_location)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            file.write(f.read())
        return _loaded(path, "the stream", map_location)


def _loaded(path, shown, map_location):
    entries = _kiln.load_zip(path, lambda name: "/data/" not in name)
    pickles = [name for name in entries if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise RuntimeError(f"'{shown}' has {len(pickles)} entries 'data.pkl': it is no file of torch.save()")
    root = pickles[0][:-len("data.pkl")]
    if entries.get(root + "byteorder", b"little") != b"little":
        raise NotImplementedError(f"'{shown}' has the byte order of another machine")
    if isinstance(map_location, dict):
        raise NotImplementedError("load(map_location={…}) is not supported: it is a device")
    # A function of a storage and its place mostly gives the storage as it was read: on the CPU.
    place = "cpu" if callable(map_location) else map_location
    storages = {name[len(root) + 5:]: t for name, t in entries.items() if name.startswith(root + "data/")}
    return _Reader(shown, entries[pickles[0]], storages, place).run()
