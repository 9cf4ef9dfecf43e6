"""keys(), values() and items() are views."""
from collections import OrderedDict, defaultdict

a, b = {"a": 1, "b": 2}, {"b": 3, "c": 4}
print(a.keys() & b.keys(), sorted(a.keys() | b), a.keys() - b.keys(), sorted(a.keys() ^ b.keys()), a.keys() & ["a", "z"])
print({"a", "x"} & a.keys(), sorted({"x"} | a.keys()), a.items() & {("a", 1)}, a.items() - b.items() == set(a.items()))
print(a.keys() == {"a", "b"}, a.keys() == {"b": 0, "a": 0}.keys(), a.keys() <= {"a", "b", "c"}, a.items() == {"a": 1, "b": 2}.items(), a.keys() != b.keys())
print(a.values() == a.values(), a.keys() == ["a", "b"], "a" in a.keys(), 2 in a.values(), ("a", 1) in a.items(), ("a", 2) in a.items())
k, v, i = a.keys(), a.values(), a.items()
a["new"] = 5
print(k, v, i, len(k), list(v), sum(v), max(v), dict(i), sorted(i, key=lambda kv: -kv[1]), bool({}.keys()), type(k).__name__)
for key, value in a.items():
    a[key] = value * 2
print(a, [*a.values()], {**dict(a.items())}, list(zip(a.keys(), a.values())), list(reversed(a.keys())), list(enumerate(a.items()))[0])
try:
    for key in a.keys():
        del a[key]
except RuntimeError:
    print("changed")
for bad in (lambda: a.keys()[0], lambda: a.values() & a.values(), lambda: a.items() + []):
    try:
        bad()
    except TypeError:
        print("TypeError")
print(isinstance(a.keys(), list), list(OrderedDict(x=1).keys()), defaultdict(int, y=2).items(), min(a.items()), list(map(str.upper, a.keys())), ",".join(a.keys()))
