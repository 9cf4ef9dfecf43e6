"""A machine without a GPU that tests take for one with a Hopper GPU: tensors are on the CPU, launches do nothing."""
import sys
import types

import torch
import triton
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget
from triton.backends.driver import GPUDriver

SHARED = 232448


def _properties(device=0):
    return types.SimpleNamespace(name="none", major=9, minor=0, multi_processor_count=132, total_memory=80 << 30,
                                 warp_size=32)


class _Utils:
    """In place of what Triton builds for the driver."""

    def load_binary(self, name, code, shared, device):
        return 0, 0, 32, 0, 1024

    def get_device_properties(self, device):
        return {"max_shared_mem": SHARED, "max_num_regs": 65536, "multiprocessor_count": 132, "warpSize": 32,
                "sm_clock_rate": 1, "mem_clock_rate": 1, "mem_bus_width": 1}

    def fill_tma_descriptor(self, *args):
        return None

    def set_printf_fifo_size(self, size):
        pass


class _Launcher:

    def __init__(self, src, metadata):
        pass

    def __call__(self, *args):
        pass


class Driver(GPUDriver):

    def __init__(self):
        self.utils, self.launcher_cls = _Utils(), _Launcher
        self.get_device_capability = lambda device=0: (9, 0)
        self.get_current_stream = lambda device=0: 0
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_device_interface(self):
        return torch.cuda

    @staticmethod
    def is_active():
        return True

    def map_python_to_cpp_type(self, ty):
        return ty

    def get_benchmarker(self):
        return lambda call, quantiles=None, **keywords: (call(), [1.0] * len(quantiles or [1]))[1]

    def get_empty_cache_for_benchmark(self):
        return torch.empty(1)

    def clear_cache(self, cache):
        pass


_EMPTY = {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty}


class _OnCpu(TorchFunctionMode):
    """Tensors that are asked for on a GPU are made on the CPU."""

    def __torch_function__(self, function, _, args=(), keywords=None):
        keywords = dict(keywords or {})
        if function is torch.Tensor.cuda: return args[0]
        if _is_gpu(keywords.get("device")): keywords["device"] = "cpu"
        if function is torch.Tensor.to: args = tuple("cpu" if _is_gpu(a) else a for a in args)
        made = function(*args, **keywords)
        # What no launch fills is the same in each run, so that tests end alike.
        return made.zero_() if function in _EMPTY and made.layout is torch.strided else made


def _is_gpu(device):
    return (isinstance(device, str) and device.startswith("cuda")) or (isinstance(device, torch.device) and
                                                                       device.type == "cuda")


def take_driver():
    """Before each test: some make Triton ask for its driver anew, which there is none of."""
    for driver in (triton.runtime.driver, sys.modules["triton.runtime.driver"].driver):
        if not isinstance(getattr(driver, "_active", None), Driver): driver.set_active(Driver())


def start():
    take_driver()
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = _properties
    torch.cuda.synchronize = lambda *args: None
    torch.cuda.device_count = lambda: 1
    start.mode = _OnCpu()  # for as long as the process lives
    start.mode.__enter__()
