"""torch.autograd.Function under torch.func: backward() is what gradients ask."""
import torch
import triton
import triton.language as tl


@triton.jit
def scaled_kernel(x_ptr, by_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, by = tl.load(x_ptr + i, mask=i < n), tl.load(by_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * by, mask=i < n)


def scaled(x, by):
    out = torch.empty_like(x)
    scaled_kernel[(triton.cdiv(x.numel(), 256),)](x, by, out, x.numel(), BLOCK=256)
    return out


class Scaled(torch.autograd.Function):
    """By kernels, forward and backward."""

    @staticmethod
    def forward(ctx, x, by):
        ctx.save_for_backward(x, by)
        return scaled(x, by)

    @staticmethod
    def backward(ctx, g):
        x, by = ctx.saved_tensors
        return scaled(g, by), scaled(g, x)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k=1.0):
        ctx.save_for_backward(x)
        ctx.k = k
        assert len(ctx.needs_input_grad) == 1 or not ctx.needs_input_grad[1]
        return x * x * x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g * ctx.k, None


class ProductAndSum(torch.autograd.Function):
    """Of two results, in the form that torch.func asks of PyTorch."""

    @staticmethod
    def forward(x, y):
        return x * y, x + y, (x > y)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[2])

    @staticmethod
    def backward(ctx, of_product, of_sum, _):
        x, y = ctx.saved_tensors
        return of_product * y + of_sum, of_product * x + of_sum


def loss(x, y):
    p, s, above = ProductAndSum.apply(x, y)
    return (p * p + 3 * s + above.float()).sum()


for n in (5, 5000):  # at once and lazily
    x, y = torch.randn(n), torch.randn(n)
    assert torch.equal(Cube.apply(x, 2.0), x * x * x * 2.0)
    assert torch.allclose(torch.func.grad(lambda x: Cube.apply(x, 2.0).sum())(x), 6 * x * x)
    # In the middle of others, and twice.
    got = torch.func.grad(lambda x: Cube.apply(torch.sin(Cube.apply(x * 0.5, 1.0)), 1.0).sum())(x)
    want = torch.func.grad(lambda x: (torch.sin((x * 0.5) ** 3) ** 3).sum())(x)
    assert torch.allclose(got, want, atol=1e-5)
    of_x, of_y = torch.func.grad(loss, argnums=(0, 1))(x, y)
    assert torch.allclose(of_x, 2 * x * y * y + 3, atol=1e-4) and torch.allclose(of_y, 2 * x * x * y + 3, atol=1e-4)
    # Only one argument has a gradient; the other is a constant.
    assert torch.allclose(torch.func.grad(loss, argnums=1)(x, y), 2 * x * x * y + 3, atol=1e-4)
    of_x, of_y = torch.func.grad(lambda x, y: torch.tanh(Scaled.apply(x * 2, y)).sum(), argnums=(0, 1))(x, y)
    slope = 1 - torch.tanh(2 * x * y) ** 2
    assert torch.allclose(of_x, slope * 2 * y, atol=1e-5) and torch.allclose(of_y, slope * 2 * x, atol=1e-5)
    # Two scopes that know nothing of each other.
    a, back_a = torch.func.vjp(lambda x: Cube.apply(x, 1.0), x)
    b, back_b = torch.func.vjp(lambda y: Cube.apply(y, 1.0), y)
    assert torch.allclose(back_a(torch.ones(n))[0], 3 * x * x) and torch.allclose(back_b(torch.ones(n))[0], 3 * y * y)


class TooFew(Cube):
    @staticmethod
    def backward(ctx, g):
        return ()


class Number(Cube):
    @staticmethod
    def backward(ctx, g):
        return 5, None


class Bare(torch.autograd.Function):
    pass


class Wide(Cube):
    @staticmethod
    def backward(ctx, g):
        return g.sum(), None  # broadcasts to the argument


class InPlace(Cube):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x


x = torch.randn(5)
assert torch.equal(torch.func.grad(lambda x: Wide.apply(x).sum())(x), torch.full((5,), 5.0))
assert InPlace.apply(x) is x
for wrong, said in (
        (lambda: torch.func.grad(lambda x: torch.func.grad(lambda z: Cube.apply(z).sum())(x).sum())(x), "not differentiated"),
        (lambda: torch.func.grad(lambda x: Number.apply(x).sum())(x), "gives 'int' for argument 0"),
        (lambda: Bare.apply(x), "forward() of its own"), (lambda: torch.autograd.Function.apply(), "forward()"),
        (lambda: torch.func.grad(lambda x: TooFew.apply(x).sum())(x), "0 gradients of 1 arguments"),
        (lambda: torch.func.grad(lambda x: InPlace.apply(x).sum())(x), "mark_dirty")):
    try:
        wrong()
    except (RuntimeError, NotImplementedError, TypeError) as e:
        assert said in str(e), e
        continue
    raise AssertionError("not refused: " + said)
print("ok")
