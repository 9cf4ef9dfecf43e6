# Gradients that are constants let go of what they were made of; seeds, and gradients of gradients, do not.
import torch
from torch import _kiln

_kiln.stay_lazy(True)

# Seeds are somebody else's.
w, x = [torch.randn(70, 80).requires_grad_() for _ in range(2)]
seed = w * 2
y = torch.sin(x)
(g,) = torch.autograd.grad(y, x, grad_outputs=seed, retain_graph=True)
(again,) = torch.autograd.grad(y, x, grad_outputs=seed)
assert torch.equal(g, again)
(seed * seed).sum().backward()
assert torch.allclose(w.grad, 8 * w.detach())

# Gradients of gradients keep what they are made of.
x = torch.randn(50, 60).requires_grad_()
(g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
(h,) = torch.autograd.grad((g * g).sum(), x)
assert torch.allclose(h, 36 * x.detach()**3, rtol=1e-4, atol=1e-4)
# What leads to leaves by operations that read shapes alone is not released: two losses share views and sums of them.
w = torch.randn(60, 70).requires_grad_()
shared = torch.cat([w.t(), w.t() - 1])[:, 1:].double()
for _ in range(2):
    (shared * shared).sum().backward()
assert torch.allclose(w.grad[1:], 2 * (4 * w.detach()[1:] - 2), rtol=1e-4, atol=1e-4) and not w.grad[0].any()
product = shared.sin()
product.sum().backward()
try:
    product.sum().backward()
    raise AssertionError("the values that sin() needs were released")
except RuntimeError as e:
    assert "released" in str(e)
# requires_grad_() of what has a gradient already changes nothing.
product = shared.sin()
assert product.requires_grad_() is product and product.requires_grad and not product.is_leaf
_kiln.stay_lazy(False)
print("released")
