"""torch.amp: autocast(), GradScaler, and what autograd functions say of their arithmetic."""
import functools as _functools

import torch as _torch
from torch._amp import GradScaler, autocast, get_autocast_dtype, is_autocast_enabled


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Of a Function's forward(): under autocast its floats become `cast_inputs`, and it computes without autocast."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return _functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @_functools.wraps(fwd)
    def forward(ctx, *args, **kwargs):
        enabled = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd=None, *, device_type):
    """Of a Function's backward(): it runs under autocast as forward() did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return _functools.partial(custom_bwd, device_type=device_type)

    @_functools.wraps(bwd)
    def backward(ctx, *args, **kwargs):
        with autocast(device_type=device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return backward


def _cast(value, device_type, dtype):
    if isinstance(value, _torch.Tensor):
        casts = value.is_floating_point() and value.device.type == device_type and value.dtype is not _torch.float64
        return value.to(dtype) if casts else value
    if isinstance(value, dict):
        return {key: _cast(item, device_type, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(item, device_type, dtype) for item in value])
    return value
