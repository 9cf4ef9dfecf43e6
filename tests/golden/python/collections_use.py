from collections import defaultdict, OrderedDict, namedtuple, deque, Counter
d = defaultdict(list); d["a"].append(1); print(d, dict(d), isinstance(d, dict))
o = OrderedDict(a=1); o["b"]=2; o.move_to_end("a"); print(list(o.items()), o)
P = namedtuple("P", ["x","y"], defaults=[3]); p = P(1); print(p, p.x, p._replace(x=4), p._asdict(), P._fields, p == (1,3), *p)
q = deque([1,2,3], maxlen=3); q.append(4); q.appendleft(0); print(q, q.popleft(), len(q))
c = Counter("hello"); print(c.most_common(1), c["z"], c)
from typing import NamedTuple
class S(NamedTuple):
    a: int
    b: str = "x"
    def tot(self): return self.a * 2
print(S(1), S(2,"y").tot(), S._fields)
