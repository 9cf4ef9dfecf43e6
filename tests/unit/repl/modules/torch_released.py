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
_kiln.stay_lazy(False)
print("released")
