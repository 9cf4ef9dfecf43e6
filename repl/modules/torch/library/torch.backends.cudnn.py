"""torch.backends.cudnn: whether convolutions of float32 may use tf32. cuDNN itself is not used."""

# PyTorch's do unless this is cleared. Here a device changes no value unless it was asked to.
allow_tf32 = False

# Scripts set them; they have no effect.
enabled = False
benchmark = False
deterministic = False


def is_available():
    return False


def version():
    return None
