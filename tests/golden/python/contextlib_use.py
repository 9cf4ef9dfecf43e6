from contextlib import contextmanager, nullcontext, suppress, ExitStack
@contextmanager
def timer(name, *, verbose=True):
    print("start", name)
    try:
        yield 5
    except ValueError as e:
        print("caught", e)
    finally:
        print("end", name)
with timer("a") as t: print(t)
with timer("b"): raise ValueError("x")
with suppress(KeyError): {}["a"]
with nullcontext(3) as n: print(n)
with ExitStack() as s:
    s.enter_context(timer("c"))
    s.callback(print, "cb")
