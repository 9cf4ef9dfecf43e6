class A:
    __slots__ = ("x",)
    def __init__(self): self.x = 1
    def __call__(self, y): return self.x + y
    def __getitem__(self, i): return i
    def __len__(self): return 4
    def __bool__(self): return False
    def __add__(self, o): return "add"
    def __radd__(self, o): return "radd"
    def __lt__(self, o): return True
    def __setattr__(self, k, v): object.__setattr__(self, k, v)
    def __delattr__(self, k): print("del", k)
    def __del__(self): pass
    def __str__(self): return "STR"
    def __format__(self, s): return "F" + s
    def __int__(self): return 5
    def __float__(self): return 2.5
    def __index__(self): return 2
    def __neg__(self): return "neg"
a = A()
print(a(2), a[1:2], a[1,2], len(a), bool(a), a+1, 1+a, a<1, str(a), f"{a:x}", int(a), float(a), [1,2,3][a], -a, vars(A).keys() is not None)
del a.x
class Meta(dict):
    def __getattr__(self, k):
        try: return self[k]
        except KeyError: raise AttributeError(k)
    def __setattr__(self, k, v): self[k] = v
m = Meta(a=1); m.b = 2; print(m.a, m["b"], m, isinstance(m, dict), len(m))
class L(list):
    def first(self): return self[0]
print(L([3,4]).first(), L([1]))
class E(Exception):
    def __init__(self, m, code): super().__init__(m); self.code = code
try: raise E("bad", 3) from None
except E as e: print(e, e.code, repr(e), e.args)
try:
    try: raise KeyError("k")
    except KeyError as e: raise RuntimeError("r") from e
except RuntimeError as e: print(e, repr(e.__cause__))
