def shown(e): return repr(e.__cause__), repr(e.__context__), e.__suppress_context__
try:
    try: raise ValueError("a")
    except ValueError as e: raise KeyError("b") from e
except KeyError as k: print(shown(k))
try:
    try: raise ValueError("a")
    except ValueError: raise KeyError("b") from None
except KeyError as k: print(shown(k))
try:
    try: raise ValueError("a")
    finally: {}["x"]
except KeyError as k: print(shown(k))
try:
    try: 1 / 0
    except ZeroDivisionError: {}["x"]
except KeyError as k: print(type(k.__context__).__name__, k.__suppress_context__)
try:
    try: raise ValueError("a")
    except ValueError: undefined
except NameError as k: print(repr(k.__context__))
try:
    try:
        try: raise ValueError(1)
        except ValueError: raise KeyError(2)
    except KeyError: raise IndexError(3)
except IndexError as k: print(repr(k.__context__), repr(k.__context__.__context__),
    k.__context__.__context__.__context__)
a = ValueError("a")
try:
    try: raise a
    except ValueError: raise KeyError("b")
except KeyError as k:
    try: raise a
    except ValueError as again: print(repr(again.__context__), again.__context__.__context__)
try: raise ValueError("plain")
except ValueError as k: print(shown(k))
e = ValueError("n")
e.add_note("hi")
e.add_note("there")
print(e.__notes__, hasattr(e, "value"), hasattr(StopIteration(1), "value"), StopIteration(1).value,
    StopIteration().value, hasattr(e, "code"))
def gen():
    yield 1
    return "done"
g = gen()
next(g)
for _ in range(2):
    try: next(g)
    except StopIteration as s: print(s.value)
a, b = ValueError("a"), ValueError("b")
a.__context__, b.__context__ = b, a
try:
    try: raise a
    except ValueError: {}["x"]
except KeyError as k: print(k.__context__ is a)
class Failed(Exception):
    def __init__(self, why): self.why = why
    def __str__(self): return f"failed: {self.why}"
e = Failed("first")
for text in ("first", "second"):
    try:
        try: raise e
        except Failed:
            e.why = text
            raise
    except Failed as k: print(k, k.args)
same = ValueError("same")
for _ in range(20000):
    try: raise same
    except ValueError: pass
print(same)
class Own(ValueError):
    def __init__(self, code, *, kept=1): self.code = code
print(Own(3), Own(3, kept=2).args, repr(Own("x")))
class Through(ValueError):
    def __init__(self, code): super().__init__(f"code {code}")
print(Through(3), Through(4).args)
