if (n := len([1,2,3])) > 2: print(n)
a, *b = [1,2,3]; print(a, b)
def f(a, /, b, *, c=3, **k): return a, b, c, k
print(f(1, 2, c=4, d=5))
print([1,2,3,4][::-1], "abc"[1:], [1,2,3][-2:], list(range(10))[2:8:3])
l=[1,2,3,4]; l[1:3]=[9]; print(l); del l[0]; print(l); del l[:]; print(l)
s={1,2}|{3}; print(s & {1,3}, s - {1}, s ^ {1,9}, {1}<=s, s.union([5]), s.issubset({1,2,3,4}))
print(1 < 2 < 3, 1 < 3 > 2, not 1 == 2, 3 if False else 4)
x = 10
def g():
    global x
    x += 1
    y = 1
    def h():
        nonlocal y
        y += 1
        return y
    return h()
print(g(), x)
print({k: v for k, v in zip("ab", range(2))}, [(i,j) for i in range(2) for j in range(i)], sum(i for i in range(4)))
fs = [lambda i=i: i for i in range(3)]; print([q() for q in fs])
for i in range(3):
    if i == 5: break
else: print("else")
try: 1/0
except (ZeroDivisionError, ValueError) as e: print("E", e)
else: print("no")
finally: print("fin")
print(*[1,2], sep=", ", end="!\n"); print({**{"a":1}, "b":2}, [*range(2), 3], (*"ab",))
print(max([1,2], key=lambda v:-v), sorted({"b":1,"a":2}.items(), key=lambda kv: kv[1], reverse=True), any([]), all([]), divmod(7,2), round(2.5), abs(-3), pow(2,10), sum([[1],[2]], []))
d={"a":1}; print(d.get("z",0), d.setdefault("b",[]), d.pop("a"), list(d.items()), list(d.keys()), list(d.values()), d.update(c=3), d, "c" in d); print(dict(a=1)|{"b":2})
print("a,b".split(","), " x ".strip(), "-".join(["a","b"]), "abc".replace("b","x"), "abc".upper().lower().title(), "a".isdigit(), "abc".startswith(("a","b")), "x".zfill(3), "abc".find("c"), "a b".partition(" "), "AbC".swapcase(), "abc".center(7,"*"), "l\nm".splitlines(), "abc".rjust(5), "t".encode() if False else "")
print(int("ff",16), float("1e3"), bool(""), str(1.0), 7//-2, -7%3, 2**-1, 1e16, 0.1+0.2, 5/2, int(3.9), hex(255), True+1)
print(isinstance(1,(int,float)), type(1).__name__, type("a"), type(None), callable(print), id(1)==id(1), 3 .bit_length(), (255).to_bytes if False else "")
assert True, "x"
print(list(map(str, [1,2])), list(filter(None,[0,1])), list(enumerate("ab",1)), list(reversed([1,2])), list(zip([1],[2])))
print(1 if x else 2, x and 3, x or 4, None is None, [] == [], (1,) + (2,), [1]*3, "a"*3, (1,2) < (1,3), ~5, 5 & 3, 5 | 3, 1 << 4, 5 ^ 1)
