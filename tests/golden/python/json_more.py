"""json.loads() with functions that make its values, where an error stands, and values that hold themselves."""
import io
import json
import sys
from collections import OrderedDict


def show(f):
    try:
        print(repr(f()))
    except Exception as e:
        print(type(e).__name__, e)


text = '{"a": 1, "b": {"c": [2.5, 3, null], "a": -1e3}, "a": 4}'
show(lambda: json.loads(text))
show(lambda: json.loads(text, object_hook=lambda d: sorted(d.items(), key=str)))
show(lambda: json.loads(text, object_pairs_hook=lambda pairs: pairs))
show(lambda: json.loads(text, object_pairs_hook=OrderedDict)["a"])
show(lambda: json.loads(text, object_hook=dict, object_pairs_hook=list))
show(lambda: json.loads(text, parse_float=lambda s: "f" + s, parse_int=lambda s: "i" + s))
show(lambda: json.loads("[NaN, Infinity, -Infinity]", parse_constant=lambda s: s))
show(lambda: json.loads("{}", object_hook=lambda d: "empty"))
show(lambda: json.loads(b'{"\xc3\xa9": 1}'))
show(lambda: json.load(io.StringIO("[1.5]"), parse_float=str))

for bad in ("{", "[1,]", '{"a" 1}', '[1] 2', '["a\nb"]', '{"é": tru}', "", '[\n 1,\n  x]'):
    try:
        json.loads(bad)
    except json.JSONDecodeError as e:
        print(e.msg, e.pos, e.lineno, e.colno, e.doc == bad, isinstance(e, ValueError), str(e))
    except ValueError as e:
        print("ValueError", e)

loop = [1]
loop.append({"loop": loop})
show(lambda: json.dumps(loop))
twice = [1]
show(lambda: json.dumps([twice, twice, {"t": twice}]))
table = {}
table["t"] = [table]
show(lambda: json.dumps(table))

show(lambda: json.dumps({(1, 2): 3, "a": 1}, skipkeys=True))
show(lambda: json.dumps([1.5, float("nan")], allow_nan=True))
try:
    json.dumps([float("inf")], allow_nan=False)
except ValueError:
    print("refused")


class Encoder(json.JSONEncoder):
    def default(self, o):
        return "a set"


show(lambda: json.dumps({"s": {1}, (1,): 2}, cls=Encoder, skipkeys=True))
