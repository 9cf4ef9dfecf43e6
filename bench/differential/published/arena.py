"""Pointers into the middle of large buffers that both sides have at the same addresses with the same contents."""
import ctypes
import mmap
import os

import numpy as np
import torch

PATTERN = 1 << 22  # bytes of the pattern that a buffer repeats
HALF = 1 << 29  # bytes on either side of a pointer
FIRST = 0x1000_0000_0000
PAGE = 4096
MAP_AT = mmap.MAP_PRIVATE | 0x100000  # MAP_FIXED_NOREPLACE

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]

TORCH = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64, "i1": torch.bool,
         "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
         "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
         "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}


def pattern(dtype, fill, seed):
    g = np.random.default_rng(seed)
    if dtype in ("fp16", "fp32", "fp64", "bf16", "fp8e4nv", "fp8e5"):
        x = torch.from_numpy(g.standard_normal(PATTERN // TORCH[dtype].itemsize).astype(np.float32))
        if fill == "positive": x = x.abs() + 0.1
        return x.to(TORCH[dtype]).view(torch.uint8).numpy()
    if dtype == "i1": return g.integers(0, 2, PATTERN).astype(np.uint8)
    t = np.dtype({"i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32",
                  "i64": "int64", "u64": "uint64"}[dtype])
    n = PATTERN // t.itemsize
    if fill == "ascending": x = np.arange(n, dtype=np.int64) % 64 * 19
    elif t.itemsize < 4:
        info = np.iinfo(t)
        x = g.integers(info.min, info.max, n, endpoint=True)
    else: x = g.integers(0, 12, n)
    return x.astype(t).view(np.uint8)


def at_first(pattern, page):
    """The bytes of a page, counted from a pointer, before anything was stored."""
    start = (page * PAGE + HALF) % PATTERN
    return pattern[start:start + PAGE].tobytes()


class Arena:

    def __init__(self, pointers):
        """pointers: (dtype, fill, seed) of each."""
        self.pointers, self.middles, at = pointers, [], FIRST
        for dtype, fill, seed in pointers:
            file = os.memfd_create("pattern")
            os.write(file, pattern(dtype, fill, seed).tobytes())
            for k in range(2 * HALF // PATTERN):
                place = at + k * PATTERN
                got = libc.mmap(place, PATTERN, mmap.PROT_READ | mmap.PROT_WRITE, MAP_AT, file, 0)
                if got != place: raise OSError(f"no memory at {place:#x}: {os.strerror(ctypes.get_errno())}")
            self.middles.append(at + HALF)
            at += 4 * HALF

    def tensor(self, k):
        dtype = TORCH[self.pointers[k][0]]
        return torch.frombuffer((ctypes.c_char * HALF).from_address(self.middles[k]), dtype=dtype)

    def changed(self):
        """{(pointer, page from its middle): bytes} of the pages that were written."""
        found = {}
        with open("/proc/self/pagemap", "rb") as map_:
            for k, middle in enumerate(self.middles):
                map_.seek((middle - HALF) // PAGE * 8)
                flags = np.frombuffer(map_.read(2 * HALF // PAGE * 8), np.uint64)
                private = (flags >> np.uint64(63) == 1) & ((flags >> np.uint64(61)) & np.uint64(1) == 0)
                for page in np.nonzero(private)[0][:6000]:
                    found[k, int(page) - HALF // PAGE] = ctypes.string_at(middle - HALF + int(page) * PAGE, PAGE)
        return found

