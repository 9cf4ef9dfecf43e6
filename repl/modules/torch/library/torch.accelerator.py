"""torch.accelerator: the GPU, by the names that fit any."""
import torch


def is_available():
    return torch.cuda.is_available()


def current_accelerator(check_available=False):
    return torch.device("cuda") if torch.cuda.is_available() else None


def device_count():
    return torch.cuda.device_count()


def current_device_index():
    return torch.cuda.current_device()


def set_device_index(device):
    torch.cuda.set_device(device)


def synchronize(device=None):
    if torch.cuda.is_available():
        torch.cuda.synchronize()
