"""What Triton's driver asks of a GPU, by ctypes. Triton builds a module for it, which needs a C compiler and takes 0.4
s where its cache is empty."""
from __future__ import annotations

import ctypes
import operator
import os
import threading
from typing import Any

from triton.backends.nvidia import driver as nvidia_driver

# CUfunction_attribute, CUdevice_attribute, CUlimit and CUfunc_cache of cuda.h
_MAX_THREADS, _SHARED_BYTES, _LOCAL_BYTES, _REGISTERS, _MAX_DYNAMIC_SHARED = 0, 1, 3, 4, 8
_SHARED_OPTIN, _SHARED_OF_SM = 97, 81
_MAJOR, _MINOR = 75, 76
_PREFER_SHARED = 1
_PRINTF_FIFO_SIZE = 1
_PROPERTIES = {
    "max_shared_mem": _SHARED_OPTIN, "max_num_regs": 12, "multiprocessor_count": 16, "warpSize": 10,
    "sm_clock_rate": 13, "mem_clock_rate": 36, "mem_bus_width": 37
}
# A block may have more only where it asks for it.
_SHARED_WITHOUT_ASKING = 49152

_theirs = nvidia_driver.CudaUtils
_making = threading.Lock()


def theirs() -> Any:
    """Triton's own. The modules of its launchers need what it leaves in Triton's module when it is made, which must be
    once: they tell its tensor maps by their type."""
    with _making:
        made = getattr(_theirs, "instance", None)
        if hasattr(made, "load_binary"): return made
        now, nvidia_driver.CudaUtils = nvidia_driver.CudaUtils, _theirs  # it asks for itself by this name
        try:
            return _theirs()
        finally:
            nvidia_driver.CudaUtils = now


def is_known() -> bool:
    """Whether this Triton's driver gives what is given here: its module says by what format it tells of loaded code."""
    try:
        with open(os.path.join(nvidia_driver.dirname, "driver.c"), encoding="utf-8") as f:
            return '"(KKiii)"' in f.read()
    except OSError:
        return False


class Utils:
    """In place of Triton's CudaUtils. What is not here (tensor maps of kernels that Triton compiles) is Triton's, which
    is built when it is asked for."""

    _made: Any = None

    def __new__(cls) -> "Utils":
        if cls._made is None: cls._made = super().__new__(cls)
        return cls._made

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL(os.environ.get("KILN_CUDA_LIBRARY") or "libcuda.so.1")
        self._call("cuInit", 0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"): raise AttributeError(name)
        return getattr(theirs(), name)

    def load_binary(self, name: str, code: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Module, function, registers of a thread, its spilled words, and the most threads of a block."""
        self._take_context(device)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(code), 0, None, None)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        registers, local, threads = (self._of_function(of, function) for of in (_REGISTERS, _LOCAL_BYTES, _MAX_THREADS))
        optin = self._of_device(_SHARED_OPTIN, device)
        if shared > _SHARED_WITHOUT_ASKING and optin > _SHARED_WITHOUT_ASKING:
            self._call("cuFuncSetCacheConfig", function, _PREFER_SHARED)
            most = optin - self._of_function(_SHARED_BYTES, function)
            self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, most)
        return module.value or 0, function.value or 0, registers, local // 4, threads

    def unload_module(self, module: int) -> None:
        self._call("cuModuleUnload", ctypes.c_void_p(module))

    # What Triton 3.9 asks where there is no torch, or where a kernel goes.
    def get_device_capability(self, device: int) -> tuple[int, int]:
        return self._of_device(_MAJOR, device), self._of_device(_MINOR, device)

    def get_current_device(self) -> int:
        self._take_context(0)
        device = ctypes.c_int()
        self._call("cuCtxGetDevice", ctypes.byref(device))
        return device.value

    def set_current_device(self, device: int) -> None:
        self._take_context_of(device)

    def get_default_stream(self, device: int) -> int:
        self._take_context_of(device)
        return 0

    def is_stream_capturing(self, stream: int) -> bool:
        status = ctypes.c_int()
        self._call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value != 0

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {name: self._of_device(what, device) for name, what in _PROPERTIES.items()}

    def set_printf_fifo_size(self, size: int) -> None:
        if (size := operator.index(size)).bit_length() > 63:
            raise OverflowError("Python int too large to convert to C long")
        if size < 0: raise ValueError("fifo size must be non-negative")
        self._take_context(0)
        now = ctypes.c_size_t()
        self._call("cuCtxGetLimit", ctypes.byref(now), _PRINTF_FIFO_SIZE)
        # After a kernel has printed the driver refuses to set it ("invalid argument"), also to what it is.
        if now.value != size: self._call("cuCtxSetLimit", _PRINTF_FIFO_SIZE, ctypes.c_size_t(size))

    def _take_context(self, device: int) -> None:
        """The context that is current, or else the device's."""
        context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value: self._take_context_of(device)

    def _take_context_of(self, device: int) -> None:
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._handle(device))
        self._call("cuCtxSetCurrent", context)

    def _handle(self, device: int) -> ctypes.c_int:
        handle = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(handle), device)
        return handle

    def _of_device(self, what: int, device: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), what, self._handle(device))
        return value.value

    def _of_function(self, what: int, function: ctypes.c_void_p) -> int:
        value = ctypes.c_int()
        self._call("cuFuncGetAttribute", ctypes.byref(value), what, function)
        return value.value

    def _call(self, name: str, *arguments: Any) -> None:
        """Errors are worded as Triton's own."""
        if not (code := getattr(self._cuda, name)(*arguments)): return
        text = ctypes.c_char_p()
        self._cuda.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"Triton Error [CUDA]: {(text.value or b'unknown error').decode()}")


def take() -> None:
    """For the drivers that Triton makes from now on."""
    if not is_known(): return
    with _making: nvidia_driver.CudaUtils = Utils


def give_back() -> None:
    with _making: nvidia_driver.CudaUtils = _theirs
