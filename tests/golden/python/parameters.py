def f(a, b, /, c, *, d=4): return a, b, c, d
print(f(1, 2, 3), f(1, 2, c=3, d=5))
for bad in (lambda: f(a=1, b=2, c=3), lambda: f(1, 2, 3, a=4)):
    try: bad()
    except TypeError: print("TypeError")
def g(a, /, **kw): return a, kw
print(g(1, a=2), (lambda x, /, y=2: (x, y))(1, y=5), f.__kwdefaults__, g.__kwdefaults__)
print(f.__code__.co_varnames, f.__code__.co_argcount, f.__code__.co_posonlyargcount, f.__code__.co_kwonlyargcount,
    f.__code__.co_name)
import inspect
print(inspect.signature(f), inspect.signature(g), inspect.signature(f).bind(1, 2, 3).args)
