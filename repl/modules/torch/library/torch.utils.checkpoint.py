"""torch.utils.checkpoint: functions whose intermediate results are computed again for gradients."""


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, context_fn=None, determinism_check="default",
               debug=False, **kwargs):
    """The function's results. What gradients keep, and what they compute again, plans decide by themselves."""
    return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    for f in list(functions.children()) if hasattr(functions, "children") else functions:
        input = f(input)
    return input
