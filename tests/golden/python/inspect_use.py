import inspect
def f(a, b: int = 2, *args, c=3, **kw):
    """Doc."""
    return a
sig = inspect.signature(f)
print(list(sig.parameters), sig.parameters["b"].default, inspect.isfunction(f), inspect.getdoc(f), sig)
print(inspect.isclass(int), f.__defaults__, f.__name__, f.__qualname__, f.__module__)
print(inspect.getsource(f).splitlines()[0])
print(sig.parameters["a"].default is inspect.Parameter.empty)
def g(): yield 1
print(inspect.isgeneratorfunction(g), inspect.isgeneratorfunction(f), inspect.isgenerator(g()), inspect.isgenerator(iter([])), inspect.iscoroutinefunction(g))
