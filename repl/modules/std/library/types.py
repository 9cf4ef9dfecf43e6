"""types: the types of functions and modules, and SimpleNamespace."""
import sys as _sys


class SimpleNamespace:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def __repr__(self):
        return "namespace(" + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items()) + ")"

    def __eq__(self, other):
        return isinstance(other, SimpleNamespace) and self.__dict__ == other.__dict__


class _Methods:
    def method(self):
        pass


NoneType = type(None)
FunctionType = LambdaType = type(lambda: None)
BuiltinFunctionType = type(len)
MethodType = type(_Methods().method)
ModuleType = type(_sys)
GeneratorType = type(x for x in ())
EllipsisType = type(...)
MappingProxyType = dict
