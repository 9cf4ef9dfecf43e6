"""Functions of torch.cuda that need nothing native of their own."""
import torch
from torch import _kiln


class _Properties:
    """Figures of a device; what a CPU does not have is None. What a property asks for changes."""

    def __init__(self, device):
        self.__dict__.update(_kiln.device_info(device))
        self._device = device

    free_memory = property(lambda self: _kiln.free_memory(self._device))

    def __repr__(self):
        figures = {k: v for k, v in self.__dict__.items() if k != "_device"}
        return "_CudaDeviceProperties(" + ", ".join(f"{k}={v!r}" for k, v in figures.items()) + ")"


def get_device_properties(device=None):
    return _Properties(device)


class device:
    """`with torch.cuda.device(0)`: accepted; a session has one device, chosen by --device."""

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        return None

    def __exit__(self, *args):
        return False


class device_of(device):
    pass


def manual_seed(seed):
    torch.manual_seed(seed)


def manual_seed_all(seed):
    torch.manual_seed(seed)


def is_bf16_supported(including_emulation=True):
    return True


def is_initialized():
    return torch.cuda.is_available()


def mem_get_info(device=None):
    """Free and total bytes."""
    figures = _kiln.device_info(device)
    return _kiln.free_memory(device), figures["total_memory"]
