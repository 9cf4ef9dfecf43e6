"""torch.random: the session's generator, which all devices share."""
from torch import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state


class fork_rng:
    """`with fork_rng():` draws as before it again when it ends."""

    def __init__(self, devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
        self.enabled = enabled

    def __enter__(self):
        self.before = get_rng_state()

    def __exit__(self, *args):
        if self.enabled:
            set_rng_state(self.before)
        return False
