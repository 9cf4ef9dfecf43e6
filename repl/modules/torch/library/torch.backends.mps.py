"""torch.backends.mps: there is none."""


def is_available():
    return False


def is_built():
    return False
