def g():
    try:
        for i in range(3):
            try:
                r = yield i
                print("r", r)
                if r == "boom": raise ValueError("b")
            except ValueError as e:
                print("caught", e)
                x = yield "handled"
                print("x", x)
                continue
            else:
                print("else", i)
            finally:
                print("fin", i)
    except KeyError as k:
        yield "key"
        raise RuntimeError("after") from k
    return 5
it = g(); print(next(it)); print(it.send("boom")); print(it.send("q")); print(it.throw(KeyError("zz")))
try: next(it)
except RuntimeError as e: print("RE", e, e.__cause__)
print(list(it))
def count():
    n = 0
    while True:
        got = yield n
        n = got if got is not None else n + 1
c = count(); print(next(c), next(c), c.send(10), next(c)); c.close(); print(list(c))
def cm():
    class C:
        def __enter__(self): print("enter"); return 1
        def __exit__(self, t, v, tb): print("exit", t); return t is ValueError
    with C() as a:
        yield a
        yield a + 1
    yield "after"
i = cm(); print(next(i)); 
try: print(i.throw(ValueError("e")))
except Exception as e: print(type(e))
i = cm(); next(i); del i
print("deleted")
def ret():
    yield 1
    return 9
def d():
    z = yield from ret()
    print("z", z)
    z += yield from [1,2]  if False else ret()
    print(z)
    return (yield "last")
k = d(); print(list(k))
k = ret(); next(k)
try: next(k)
except StopIteration as e: print("SI", e.value)
def early():
    for i in range(5):
        if i == 2: return
        yield i
    else: yield "never"
print(list(early()), sum(early()), max(early()), [a for a in early()], *early())
def bad():
    yield 1
    raise StopIteration
try: list(bad())
except RuntimeError as e: print(e)
class Tree:
    def __init__(self, v, *kids): self.v, self.kids = v, kids
    def __iter__(self):
        yield self.v
        for k in self.kids: yield from k
print(list(Tree(1, Tree(2, Tree(3)), Tree(4))))
def igen():
    try: yield 1
    finally:
        try: yield 2
        except GeneratorExit: print("GE"); raise
x = igen(); next(x)
try: x.close()
except RuntimeError as e: print(e)
def nested():
    while True:
        try:
            while True:
                yield 1
                break
            break
        finally: print("nf")
    yield 2
print(list(nested()))
gen = (i*i for i in range(3)); print(next(gen), list(gen))
def w():
    import sys
    a, b = yield
    print(a + b)
    yield
q = w(); next(q); q.send((1, 2))
def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
print([x for x, _ in zip(fib(), range(10))], next(x for x in fib() if x > 100))
try: next(iter([]))
except StopIteration: print("si")
try:
    def s():
        x = yield
    s().send(3)
except TypeError as e: print("TE")
print(hasattr(fib(), "send"), isinstance(fib(), object))
for i, v in enumerate(fib()):
    if i > 3: break
print(v)
