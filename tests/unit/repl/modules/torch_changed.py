# Tensors that have a gradient, changed in place: by views of themselves, by copies, and inside of no_grad().
import torch


def gradient_of(x, of):
    return torch.autograd.grad((x * torch.arange(1.0, x.numel() + 1).view_as(x)).sum(), of)[0].tolist()


y = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)

# Their shape.
x = y * 2
x.unsqueeze_(0)
assert x.shape == (1, 2, 3) and x.requires_grad
x.squeeze_(0)
x.t_()
assert x.tolist() == [[0, 6], [2, 8], [4, 10]]
assert gradient_of(x, y) == [[2, 6, 10], [4, 8, 12]]
try:
    y.unsqueeze_(0)
    raise AssertionError("a leaf takes another shape")
except RuntimeError as e:
    assert "leaf" in str(e)
with torch.no_grad():
    leaf = torch.ones(2, 1, requires_grad=True).squeeze_(1)
assert leaf.shape == (2,) and leaf.requires_grad and leaf.is_leaf

# A copy has memory of its own.
x, c = y * 2, torch.ones(2, 3)
x.copy_(c)
c.add_(1)
assert x.tolist() == [[1, 1, 1], [1, 1, 1]]
x, c = y * 2, y * 3
x.copy_(c)
with torch.no_grad():
    c.mul_(0)
assert x.tolist() == [[0, 3, 6], [9, 12, 15]] and gradient_of(x, y) == [[3, 6, 9], [12, 15, 18]]

# Without a gradient the elements change, and what reaches them goes on to what they were.
x = y * 3
with torch.no_grad():
    x.mul_(2)
    x += 1
    x.clamp_(max=20)
    x.copy_(x - 1)
assert x.requires_grad and not x.is_leaf
assert x.tolist() == [[0, 6, 12], [18, 19, 19]]
assert gradient_of(x, y) == [[3, 6, 9], [12, 15, 18]]
print("changed")
