import itertools as it
import heapq, bisect, statistics, string, textwrap, pprint, copy, types, numbers, fnmatch
print(list(it.product("ab", repeat=2)), list(it.product()), list(it.product([], [1])))
print(list(it.permutations("abc", 2)), list(it.combinations("abcd", 3)), list(it.combinations_with_replacement("ab", 2)))
print(list(it.chain.from_iterable([[1], [2, 3]])), list(it.compress("abc", [1, 0, 1])), list(it.dropwhile(lambda v: v < 2, [1, 2, 1])))
print(list(it.takewhile(lambda v: v < 2, [1, 2, 1])), list(it.filterfalse(None, [0, 1, 2])), list(it.pairwise([1, 2, 3])))
print([(k, list(g)) for k, g in it.groupby(sorted(["ab", "b", "ac"]), key=lambda s: s[0])])
print(list(it.islice("abcdef", 1, None, 2)), list(it.islice(it.cycle("ab"), 5)), list(it.accumulate([3, 1, 2], max)), list(it.accumulate([1, 2], initial=10)))
a, b = it.tee([1, 2, 3]); print(list(a), list(b), list(it.zip_longest("ab", "c", fillvalue="-")))
h = [5, 1, 4]; heapq.heapify(h); heapq.heappush(h, 0); print([heapq.heappop(h) for _ in range(4)], heapq.nlargest(2, [1, 3, 2]))
print(bisect.bisect_left([1, 2, 2, 3], 2), bisect.bisect([1, 2, 2, 3], 2))
print(statistics.mean([1, 2, 3, 4]), statistics.median([3, 1, 2]), statistics.stdev([1, 2, 3, 4]), statistics.quantiles([1, 2, 3, 4, 5]), statistics.mean([1, 2, 3]))
print(string.Template("$a ${b}c $$").substitute(a=1, b=2), textwrap.indent("a\nb\n", "  "), textwrap.fill("aaa bbb ccc", 7), textwrap.wrap("one two three four", 9), textwrap.shorten("hello big world", 12))
pprint.pprint({"b": list(range(30)), "a": "x" * 30, "c": {"k": (1, 2)}})
class A:
    def __init__(self): self.x = [1]; self.me = self
x = A(); y = copy.deepcopy(x); y.x.append(2); print(x.x, y.x, y.me is y, copy.copy(x).x is x.x)
n = types.SimpleNamespace(a=1); n.b = 2; print(n, isinstance(1, numbers.Number), isinstance("a", numbers.Number))
print(fnmatch.fnmatch("ab.py", "*.py"), fnmatch.filter(["a.c", "b.h"], "*.[ch]"), isinstance(lambda: 1, types.FunctionType))
# Groups are read as they are asked for: one without an end, and one that is left behind.
k, endless = next(it.groupby(it.repeat(7)))
print(k, next(endless), list(it.islice(endless, 2)))
groups = it.groupby("aaabbc")
k, first = next(groups)
print(k, next(first), next(groups)[0], list(first))
print([k for k, _ in it.groupby([1, 3, 2, 4, 5], lambda v: v % 2)], [list(g) for _, g in list(it.groupby("aab"))])
