"""Changes in place that wait, against the same with every tensor looked at after each step."""
import torch
n = 5000
def check(name, f):
    torch.manual_seed(3)
    a = f(False)
    torch.manual_seed(3)
    b = f(True)
    for x, y in zip(a, b):
        if x.tolist() != y.tolist(): raise AssertionError(name)
def make(k=3): return [torch.randn(n) for _ in range(k)]
def adam(lazy):
    p, m, v = make(); g = torch.randn(n); v.abs_()
    for _ in range(3):
        m.mul_(0.9).add_(g, alpha=0.1)
        if not lazy: m.sum().item()
        v.mul_(0.99).addcmul_(g, g, value=0.01)
        if not lazy: v.sum().item()
        p.addcdiv_(m, v.sqrt().add_(1e-8), value=-0.1)
        if not lazy: p.sum().item()
    return p, m, v
check("adam", adam)
def lion(lazy):
    p, m, g = make()
    u = m.clone().mul_(0.9).add(g, alpha=0.1).sign_()
    if not lazy: u.sum().item()
    p.mul_(0.99).add_(u, alpha=-0.1)
    if not lazy: p.sum().item()
    m.mul_(0.99).add_(g, alpha=0.01)
    if not lazy: m.sum().item()
    return p, m, u
check("lion", lion)
def swap(lazy):
    a, b, _ = make()
    t = a * 1
    a.copy_(b * 1)
    if not lazy: a.sum().item()
    b.copy_(t)
    if not lazy: b.sum().item()
    a.add_(b); b.mul_(a)
    return a, b, t
check("swap", swap)
def views(lazy):
    a, b, _ = make()
    v = a[10:3000]
    a.mul_(2)
    if not lazy: a.sum().item()
    w = a.view(50, 100)
    a.add_(b)
    if not lazy: a.sum().item()
    w.mul_(3)
    if not lazy: a.sum().item()
    c = a + 1
    d = c.view(100, 50)
    c.mul_(2)
    if not lazy: c.sum().item()
    e = a * 2
    a[3:5] = 7
    a.mul_(2)
    return a, v, w, c, d, e
check("views", views)
def old(lazy):
    a, b, _ = make()
    y = a + 1
    if not lazy: y.sum().item()
    a.mul_(2)
    if not lazy: a.sum().item()
    z = a + y
    if not lazy: z.sum().item()
    a.mul_(3)
    if not lazy: a.sum().item()
    w = a - z
    a.copy_(a.flip(0) * 1)
    if not lazy: a.sum().item()
    a.copy_(b.sum() + a)
    b.copy_(a.view(50, 100).t().reshape(-1) + 0)
    return a, y, z, w, b
check("old", old)
def alias(lazy):
    a, b, _ = make()
    z = a * 2
    b.copy_(z)
    if not lazy: b.sum().item()
    b.mul_(5)
    if not lazy: b.sum().item()
    c = b.clone(); b.add_(1)
    d = b; d += 1
    return a, z, b, c, d
check("alias", alias)
def rows(lazy):
    a = torch.randn(100, 100)
    a.sub_(a.mean(1, keepdim=True))
    if not lazy: a.sum().item()
    a.div_(a.t().abs().sum(0, keepdim=True).t() + 1)
    if not lazy: a.sum().item()
    a.copy_(a.t() * 2)
    if not lazy: a.sum().item()
    return a,
check("rows", rows)
def parts(lazy):
    a, b = torch.randn(100, 100), torch.randn(100, 100)
    def put(index, make):
        value = make()
        if not lazy: value.sum().item()
        a[index] = value
        if not lazy: a.sum().item()
    y, row = a + 1, b[3] * 2
    put(slice(1, None), lambda: a[:-1] * 2)
    put(slice(None, -1), lambda: a[1:] + a[:-1])
    put(slice(10, 60), lambda: row)
    put((slice(None), slice(3, 50)), lambda: b[:, :47] + a[:, 50:97])
    put((None, slice(0, 50), Ellipsis), lambda: (a * a.sum())[50:])
    put(slice(5, 90), lambda: (a[5:90] > 0).long() * 3)
    put(a > 2, lambda: a.max() * 1)
    put(b > 1, lambda: b.min() * 0.5)
    put(b[:, 0] > 0, lambda: torch.ones(1, 1, dtype=torch.int64) * 4)
    c = a.T
    c[b > 0.5] = 1.5
    z = a + y
    a[0] = z[1] + a[2]
    d = torch.zeros(100, 100, dtype=torch.int64)
    d[20:] = (a[20:] * 3).long() + d[20:]
    return a, b, c, d, y, z, row
check("parts", parts)
print("same")
