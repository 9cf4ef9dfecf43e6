"""gc: values go as soon as nothing refers to them; there is nothing to collect."""


def collect(generation=2):
    return 0


def enable():
    pass


disable = freeze = unfreeze = enable


def isenabled():
    return False
