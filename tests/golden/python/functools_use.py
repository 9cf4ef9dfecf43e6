import functools, itertools, operator
from functools import lru_cache, partial, wraps, reduce, cache, cmp_to_key
@lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n-1)+fib(n-2)
print(fib(50), fib.cache_info())
@cache
def f(a, b=2): print("call"); return a+b
f(1); f(1); f(1,b=2)
def deco(fn):
    @wraps(fn)
    def inner(*a, **k): return fn(*a, **k)
    return inner
@deco
def named(): "doc"; return 1
print(named.__name__, named.__doc__, named.__wrapped__())
print(partial(max, 3)(4), reduce(operator.mul, [1,2,3,4], 1), reduce(lambda a,b:a+b,[1,2]))
print(list(itertools.product([1,2],"ab", repeat=1)), list(itertools.chain([1],[2])), list(itertools.combinations(range(4),2)), list(itertools.permutations([1,2,3]))[:2])
print(list(itertools.accumulate([1,2,3])), list(itertools.islice(itertools.count(5),3)), [(k,list(g)) for k,g in itertools.groupby([1,1,2])], list(itertools.zip_longest([1],[2,3])), list(itertools.repeat(1,2)), list(itertools.starmap(pow,[(2,3)])))
print(sorted([3,1,2], key=cmp_to_key(lambda a,b:b-a)), operator.itemgetter(1)([4,5]), operator.attrgetter("real")(3))
# An argument is never mistaken for a keyword, and typed=True looks at keywords too.
@cache
def keyed(*a, **k): return a, k
print(keyed(1, x=2), keyed((1,), (("x", 2),)), keyed(1, ("x", 2)), keyed.cache_info().currsize)
@lru_cache(typed=True)
def typed(x, y=0): return x, y
print(typed(1, y=2), typed(1, y=2.0), typed(1.0, y=2), typed(1, y=True), typed.cache_info())
class One:
    def make(name): return type(name, (int,), {})
print([typed(One.make("Same")(1))[0].__class__ is typed(One.make("Same")(1))[0].__class__])
