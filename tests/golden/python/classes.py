class A:
    count = 0
    def __init__(self, x): self._x = x; A.count += 1
    @property
    def x(self): return self._x
    @x.setter
    def x(self, v): self._x = v * 2
    @staticmethod
    def s(a): return a + 1
    @classmethod
    def make(cls, *a): return cls(*a)
    def __getattr__(self, n):
        if n.startswith("dyn"): return n.upper()
        raise AttributeError(n)
    def __repr__(self): return f"A({self.x})"
    def __eq__(self, o): return isinstance(o, A) and self.x == o.x
    def __hash__(self): return hash(self.x)
    def __enter__(self): return self
    def __exit__(self, *e): print("exit", e[0]); return False
    def __contains__(self, v): return v == 1
    def __iter__(self): yield from (1,2)
a = A(3); a.x = 5; print(a.x, A.s(1), a.s(2), A.make(1), a.make(2), a.dynfoo, A.count, 1 in a, list(a))
print(getattr(a, "nope", None), hasattr(a, "zzz"), {a: 1}[A.make(10)])
with a as b: print(b is a)
class B(A):
    def __init__(self, x, y): super().__init__(x); self.y = y
    @property
    def x(self): return super().x + 1
print(B(1,2).x, B.__mro__[1].__name__, B.__bases__, type(B(1,2)), B.__name__, B(1,2).__class__.__name__, isinstance(B(1,2), A))
