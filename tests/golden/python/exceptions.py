def f():
    try: return 1
    finally: print("f")
print(f())
for i in range(3):
    try:
        if i == 1: continue
        print(i)
    finally: print("fin", i)
try:
    raise ValueError("a", 1)
except ValueError as e: print(e.args, str(e), repr(e))
try: int("x")
except ValueError as e: print("VE")
try: [][0]
except IndexError as e: print("IE")
try: {}["k"]
except KeyError as e: print("KE", e)
try: None.x
except AttributeError as e: print("AE")
try: undefined
except NameError as e: print("NE")
try: "a" + 1
except TypeError as e: print("TE")
import traceback
try: 1/0
except Exception: print(traceback.format_exc().splitlines()[-1])
class Ctx:
    def __enter__(self): print("in"); return self
    def __exit__(self, t, v, tb): print(t.__name__ if t else None, v); return True
with Ctx() as c: raise RuntimeError("z")
with Ctx(), Ctx() as d: pass
try: raise SystemExit(0)
except SystemExit as e: print("SE", e.code)
assert isinstance(NotImplementedError(), RuntimeError)
try:
    raise NotImplementedError
except NotImplementedError as e: print(repr(e))
print(issubclass(bool, int), issubclass(ValueError, Exception), OSError is IOError, BaseException.__name__)
for message in ((1, 2), None, "", 5):
    try: assert False, message
    except AssertionError as e: print(e.args)
