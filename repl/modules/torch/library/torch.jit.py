"""torch.jit: functions and modules are given back as they are, as by torch.compile."""
from typing import Final

from torch.nn import Module as ScriptModule

RecursiveScriptModule = ScriptModule


def script(obj=None, **options):
    return obj if obj is not None else lambda f: f


def trace(func=None, example_inputs=None, **options):
    """The function itself, which runs anew at each call."""
    return func if func is not None else lambda f: f


def script_if_tracing(fn):
    return fn


def ignore(drop=False, **options):
    return drop if callable(drop) else lambda f: f


def unused(fn):
    return fn


def export(fn):
    return fn


def script_method(fn):
    return fn


def interface(obj):
    return obj


def freeze(mod, *args, **options):
    return mod


def optimize_for_inference(mod, *args, **options):
    return mod


def annotate(the_type, the_value):
    return the_value


def is_scripting():
    return False


def is_tracing():
    return False


def fork(func, *args, **kwargs):
    """What the function gives: it runs at once."""
    return func(*args, **kwargs)


def wait(future):
    return future


def save(m, f, *args, **kwargs):
    raise NotImplementedError("torch.jit.save(): torch.save(model.state_dict(), FILE) keeps the parameters")


def load(f, *args, **kwargs):
    raise NotImplementedError("torch.jit.load(): torch.load(FILE) reads parameters")
