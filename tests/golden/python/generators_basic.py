def gen(n):
    for i in range(n):
        try:
            x = yield i
            if x: print("got", x)
        finally:
            print("fin", i)
g = gen(3)
print(next(g)); print(g.send("hi"))
g.close()
def flat(t):
    for x in t:
        if isinstance(x, list):
            yield from flat(x)
        else:
            yield x
print(list(flat([1,[2,[3,4]],5])))
def r():
    yield 1
    return 7
def outer():
    v = yield from r()
    yield v
print(list(outer()))
