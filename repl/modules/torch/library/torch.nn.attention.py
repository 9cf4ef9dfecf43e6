"""torch.nn.attention: which implementation attention has. There is one for each case here: asking changes nothing."""
from enum import IntEnum


class SDPBackend(IntEnum):
    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


class sdpa_kernel:
    """`with sdpa_kernel(…)`, or a decorator of functions."""

    def __init__(self, backends, set_priority=False):
        backends = [backends] if isinstance(backends, SDPBackend) else list(backends)
        if not backends or not all(isinstance(b, SDPBackend) for b in backends):
            raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")

    def __enter__(self):
        return {}

    def __exit__(self, *args):
        return False

    def __call__(self, function):
        return function
