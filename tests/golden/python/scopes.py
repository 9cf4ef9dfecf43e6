def outer():
    fns = []
    for i in range(3):
        def f(): return i
        fns.append(f)
    return [g() for g in fns]
print(outer())
class K:
    a = 2
    b = [a * i for i in range(3)] if False else a
    def m(self): return self.a
    c = m
print(K().c(), K.b)
x = 5
print([x for x in range(3)], x)
def kw(*, a, b=2): return a+b
print(kw(a=1), kw(**{"a":3,"b":4}))
def va(*args, **kwargs): return args, kwargs
print(va(1,*[2,3],k=1,**{"z":2}))
print((lambda *a, k=1: (a,k))(1,2,k=3))
def doc():
    """Hi."""
print(doc.__doc__, doc())
d = {}
d.setdefault("x", []).append(1); d["y"] = d.get("y", 0) + 1; print(d)
(a, b), c = (1, 2), 3; print(a,b,c)
a = b = []; a.append(1); print(b)
i = 5
while i:
    i -= 1
    if i == 2: break
else: print("no")
print(i)
m = [[0]*3 for _ in range(2)]; m[1][2] = 5; print(m)
print("yes" if "a" in "abc" else "no", not [], [] or "d")
del a
try: a
except NameError: print("deleted")
