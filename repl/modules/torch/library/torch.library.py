"""torch.library: operations of a script's own. They run as functions; torch.ops does not have them."""
import functools as _functools

import torch as _torch


class CustomOpDef:
    def __init__(self, name, fn):
        if "::" not in name:
            raise ValueError(f"expected a name of the form NAMESPACE::NAME, got {name!r}")
        self._qualname, self._fn, self._function = name, fn, None
        _functools.update_wrapper(self, fn)

    def __call__(self, *args, **kwargs):
        if self._function is None:
            return self._fn(*args, **kwargs)
        # A Function takes its arguments in order, those that have defaults too.
        import inspect
        names = list(inspect.signature(self._fn).parameters.values())
        given = [kwargs.pop(p.name) if p.name in kwargs else p.default for p in names[len(args):]]
        if kwargs:
            raise TypeError(f"{self._qualname}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        args = args + tuple(given)
        return self._function.apply(*args)

    def register_autograd(self, backward, /, *, setup_context=None):
        fn = self._fn

        class Differentiable(_torch.autograd.Function):
            @staticmethod
            def forward(ctx, *args):
                output = fn(*args)
                if setup_context is not None:
                    setup_context(ctx, args, output)
                return output

        Differentiable.backward = staticmethod(backward)
        self._function = Differentiable

    def register_fake(self, fn, /):
        return fn

    def register_kernel(self, device_types, fn=None, /):
        def take(kernel):
            kinds = [device_types] if device_types is None or isinstance(device_types, str) else device_types
            if None in kinds or "cuda" in kinds or not _torch.cuda.is_available() and "cpu" in kinds:
                self._fn = kernel
            return kernel

        return take if fn is None else take(fn)

    def register_vmap(self, func=None):
        raise NotImplementedError("torch.vmap takes functions of torch's own operations")


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    return CustomOpDef(name, fn) if fn is not None else lambda function: CustomOpDef(name, function)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel, /):
    return triton_kernel


def register_fake(op, func=None, /, **kwargs):
    return func if func is not None else lambda function: function


def register_autograd(op, backward, /, *, setup_context=None, **kwargs):
    if not isinstance(op, CustomOpDef):
        raise NotImplementedError("register_autograd() takes what custom_op() made")
    op.register_autograd(backward, setup_context=setup_context)
