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


# --- random numbers: the session has one generator for all devices


def get_rng_state(device="cuda"):
    return torch.get_rng_state()


def set_rng_state(new_state, device="cuda"):
    torch.set_rng_state(new_state)


def get_rng_state_all():
    return [torch.get_rng_state() for _ in range(torch.cuda.device_count())]


def set_rng_state_all(new_states):
    for state in new_states:
        torch.set_rng_state(state)


def initial_seed():
    return torch.initial_seed()


def seed():
    torch.seed()


def seed_all():
    torch.seed()


# --- memory and what there is of the device


def init():
    """Nothing to do: a device is opened when it is first needed."""


def ipc_collect():
    """Nothing to do: a script has one process."""


def max_memory_reserved(device=None):
    return torch.cuda.memory_reserved(device)


def memory_stats(device=None):
    return {"allocated_bytes.all.current": torch.cuda.memory_allocated(device),
            "allocated_bytes.all.peak": torch.cuda.max_memory_allocated(device),
            "reserved_bytes.all.current": torch.cuda.memory_reserved(device)}


def memory_summary(device=None, abbreviated=False):
    rows = [f"{name:<32} {value:>16}" for name, value in memory_stats(device).items()]
    return "\n".join(rows) + "\n"


def is_tf32_supported():
    return torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8


def get_arch_list():
    major, minor = torch.cuda.get_device_capability()
    return [f"sm_{major}{minor}"]


def can_device_access_peer(device, peer_device):
    return False
