"""torch.distributed: as in a PyTorch that was built without it. A script is one process."""


def is_available():
    return False


def is_initialized():
    return False


def is_nccl_available():
    return False
