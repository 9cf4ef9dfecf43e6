from collections.abc import (Callable, Collection, Container, Generator, Hashable, Iterable, Iterator, Mapping,
    MutableMapping, MutableSequence,
                             MutableSet, Reversible, Sequence, Set, Sized)
class D(MutableMapping):
    def __init__(s, *a, **k):
        s.d = {}
        s.update(*a, **k)
    def __getitem__(s, k): return s.d[k]
    def __setitem__(s, k, v): s.d[k] = v
    def __delitem__(s, k): del s.d[k]
    def __iter__(s): return iter(s.d)
    def __len__(s): return len(s.d)
d = D({"a": 1}, c=3)
d.update([("b", 2)])
print(dict(d), d.get("z", 9), list(d.items()), "a" in d, "z" in d, d.pop("a"), d.pop("zz", None), d.setdefault("q", 5),
    len(d), {**d})
print(d == {"b": 2, "q": 5, "c": 3}, d != {}, d == 5, list(d.keys()), list(d.values()), d.popitem(), bool(d))
d.clear()
print(len(d), bool(d))
try: d.pop("x")
except KeyError as e: print(e)
class S(Sequence):
    def __init__(s, *v): s.v = v
    def __getitem__(s, i): return s.v[i]
    def __len__(s): return len(s.v)
s = S(1, 2, 3, 2)
print(list(s), 2 in s, 9 in s, s.index(2), s.index(2, 2), s.count(2), list(reversed(s)), max(s))
class L(MutableSequence):
    def __init__(s): s.v = []
    def __getitem__(s, i): return s.v[i]
    def __setitem__(s, i, x): s.v[i] = x
    def __delitem__(s, i): del s.v[i]
    def __len__(s): return len(s.v)
    def insert(s, i, x): s.v.insert(i, x)
l = L()
l.append(1)
l.extend([2, 3])
l += (4,)
l.reverse()
print(list(l), l.pop(), l.pop(0), l.remove(2), list(l), isinstance(l, Sequence), isinstance(l, list))
class B(Set):
    def __init__(s, it=()): s.v = sorted(set(it))
    def __contains__(s, x): return x in s.v
    def __iter__(s): return iter(s.v)
    def __len__(s): return len(s.v)
    def __repr__(s): return f"B({s.v})"
a, b = B([1, 2, 3]), B([2, 3, 4])
print(a & b, a | b, a - b, a ^ b, a <= b, a < B([1, 2, 3, 4]), a == B([3, 2, 1]), a == {1, 2, 3}, {1} <= a,
    a.isdisjoint([9]), {5, 1} & a)
try: Sequence()
except TypeError: print("abstract")
class Half(Mapping):
    def __len__(s): return 0
try: Half()
except TypeError: print("abstract")
class C:
    def __iter__(s): return iter([1])
    def __len__(s): return 1
    def __contains__(s, x): return True
class K:
    def __call__(s): return 1
    __hash__ = None
checks = [Callable, Collection, Container, Generator, Hashable, Iterable, Iterator, Mapping, MutableMapping,
    MutableSequence, MutableSet,
          Reversible, Sequence, Set, Sized]
for x in ([], (), {}, "a", {1}, frozenset(), range(3), 5, len, iter([]), (i for i in []), C(), K(), d, s, l, a):
    print(type(x).__name__ if not isinstance(x, (Iterator, Callable)) else "-", [int(isinstance(x, c)) for c in checks])
for t in (list, tuple, dict, str, int, C, K, D, S, L, B):
    print(t.__name__, [int(issubclass(t, c)) for c in checks])
class Odd: pass
Sequence.register(Odd)
print(isinstance(Odd(), Sequence), issubclass(Odd, Sequence), isinstance(Odd(), Mapping))
