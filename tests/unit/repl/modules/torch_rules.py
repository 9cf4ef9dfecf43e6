"""torch's rules where Kiln had others: found by a differential against PyTorch 2.15. Values are PyTorch's."""
import torch
import torch.nn.functional as F

nan, inf = float("nan"), float("inf")


def raises(kind, f):
    try:
        f()
    except kind:
        return
    except Exception as e:
        raise AssertionError(f"{type(e).__name__} in place of {kind.__name__}: {e}")
    raise AssertionError(f"no {kind.__name__}")


# A copy broadcasts and does not reshape.
raises(RuntimeError, lambda: torch.zeros(2, 3).copy_(torch.arange(6.0).reshape(3, 2)))
raises(RuntimeError, lambda: torch.zeros(2, 3).copy_(torch.arange(4.0)))
raises(RuntimeError, lambda: torch.zeros(3).copy_(torch.ones(2, 3)))
assert torch.zeros(2, 3).copy_(torch.arange(3.0)).tolist() == [[0, 1, 2], [0, 1, 2]]

# Small float64 tensors keep their bits.
x = torch.tensor([0.1, 0.7], dtype=torch.float64)
assert [x.amin().item(), x.max().item(), x.max(0).values.item(), x.norm(inf).item()] == [0.1, 0.7, 0.7, 0.7]

# Each element is converted before integers are summed.
assert torch.sum(torch.tensor([3.9, 3.9]), dtype=torch.int64).item() == 6
assert torch.tensor([[3.9, 3.9]]).sum(1, dtype=torch.int32).tolist() == [6]
assert torch.prod(torch.tensor([0.1, 1.5]), dtype=torch.bool).item() is True

# Bounds outside of an integer's range.
u, i = torch.tensor([1, 200], dtype=torch.uint8), torch.tensor([1, -100], dtype=torch.int8)
for kept in (u.clamp(min=-1), u.clamp(max=300), torch.clamp_min(u, -2), u.clamp(-7, 1000)):
    assert torch.equal(kept, u) and kept.dtype is torch.uint8
assert u.clamp(-5, 100).tolist() == [1, 100] and i.clamp(min=-300).tolist() == [1, -100]
raises(RuntimeError, lambda: u.clamp(min=300))
raises(RuntimeError, lambda: u.clamp(max=-1))
big = torch.arange(5000).to(torch.uint8)
assert torch.equal(big.clamp(max=300), big)

# alpha multiplies what has the result's type.
assert torch.tensor([0.0]).add(torch.tensor([100], dtype=torch.int8), alpha=3).item() == 300
assert torch.sub(torch.zeros(1, dtype=torch.float64), torch.tensor([2.138]).bfloat16(), alpha=3).item() == -6.421875

# bf16 has float32's denormals, on CPUs with instructions that flush them too.
assert torch.full((5000,), 9.183549615799121e-41).bfloat16().view(torch.int16).max().item() == 1

assert torch.sign(torch.tensor([nan, -2.0, 0.0, 3.0])).tolist() == [0, -1, 0, 1]

# What a tensor's shape does not allow is a RuntimeError; a wrong argument is a TypeError.
a, b = torch.ones(4, 6), torch.ones(5, 5)
for f in (lambda: a @ a, lambda: a + b, lambda: torch.cat([a, b]), lambda: torch.stack([a, b]), lambda: a.view(5),
          lambda: a.reshape(5), lambda: a.expand(3, 3), lambda: bool(a), lambda: a.item(), lambda: torch.mm(a, a),
          lambda: torch.where(a > 0, a, b), lambda: a.masked_fill(b > 0, 1), lambda: a.add_(b), lambda: torch.bmm(a, a),
          lambda: a.permute(0, 0), lambda: torch.ones(5000, 2) @ torch.ones(3, 5000)):
    raises(RuntimeError, f)
for f in (lambda: a + "a", lambda: torch.full((2,), "a"), lambda: a.reshape("x"), lambda: a.sum(keepdims=3, wrong=1)):
    raises(TypeError, f)
raises(IndexError, lambda: a.sum(9))


def count(*all):
    return len(all)


for f in (lambda: count(*range(2**40)), lambda: [0, *range(2**40)], lambda: {*range(2**40)}):
    raises(MemoryError, f)

# A number to the power of a tensor.
assert torch.pow(2, torch.tensor([1, 2])).tolist() == [2, 4]
assert torch.pow(2.0, torch.tensor([1, 2])).dtype is torch.float32
assert torch.pow(self=2, exponent=torch.tensor([3.0])).tolist() == [8]
raises(TypeError, lambda: torch.pow(2, 3))

# Decimals of round().
x = torch.tensor([1.2345, -2.675, 1250.0, 0.25])
assert x.round(decimals=2).tolist() == [1.2300000190734863, -2.680000066757202, 1250.0, 0.25]
assert torch.round(x, decimals=-2).tolist() == [0.0, -0.0, 1200.0, 0.0]
assert x.half().round(decimals=1).tolist() == [1.2001953125, -2.69921875, 1250.0, 0.199951171875]
assert x.bfloat16().round_(decimals=1).tolist() == [1.203125, -2.703125, 1248.0, 0.2001953125]
raises(RuntimeError, lambda: torch.arange(3).round(decimals=1))

# Several dimensions of squeeze(), and logsumexp() of integers.
ones = torch.zeros(1, 2, 1)
assert [tuple(ones.squeeze(d).shape) for d in ((), (0,), (0, -1), [2, 1], 1)] == [(1, 2, 1), (2, 1), (2,), (1, 2), (1, 2, 1)]
assert tuple(ones.squeeze(0, 2).shape) == tuple(torch.squeeze(ones, dim=(0, 2)).shape) == (2,)
assert tuple(ones.squeeze_((0, 1)).shape) == (2, 1) and torch.zeros(()).squeeze((0,)).ndim == 0
raises(RuntimeError, lambda: ones.squeeze((0, 0)))
raises(IndexError, lambda: ones.squeeze((0, 5)))
sums = torch.logsumexp(torch.arange(3), 0), torch.logsumexp(torch.tensor([True, False]), 0)
assert all(s.dtype is torch.float32 for s in sums)
assert abs(sums[0].item() - 2.4076058864593506) < 1e-6 and abs(sums[1].item() - 1.31326162815094) < 1e-6

# What moves nothing is a copy all the same.
for make in (lambda x: F.max_pool1d(x, 1), lambda x: F.max_pool1d(x, 1, 2), lambda x: F.channel_shuffle(x[..., None], 1),
             lambda x: F.channel_shuffle(x[..., None], 2), lambda x: F.pixel_shuffle(x[..., None], 1),
             lambda x: F.pixel_unshuffle(x[..., None], 1), lambda x: F.pixel_shuffle(x.reshape(4, 1, 1), 2),
             lambda x: F.pixel_unshuffle(x.reshape(1, 2, 2), 2), lambda x: torch.linalg.matrix_power(x[0], 1)):
    x = torch.arange(4.0).reshape(1, 2, 2)
    y = make(x)
    y += 1
    assert x.tolist() == [[[0, 1], [2, 3]]]

# Activations in place.
for act in (lambda x: F.relu(x, inplace=True), lambda x: F.leaky_relu(x, inplace=True), lambda x: F.elu(x, 1.0, True),
            lambda x: F.selu(x, inplace=True), lambda x: F.celu(x, inplace=True), lambda x: F.relu6(x, inplace=True),
            lambda x: F.hardtanh(x, inplace=True), lambda x: F.hardsigmoid(x, inplace=True), lambda x: F.mish(x, True),
            lambda x: F.hardswish(x, inplace=True), lambda x: F.silu(x, inplace=True),
            lambda x: F.threshold(x, 0.5, 0, True), lambda x: F.dropout(x, 1.0, inplace=True),
            torch.nn.ReLU(inplace=True), torch.nn.ReLU(True), torch.nn.SiLU(inplace=True), torch.nn.ELU(inplace=True),
            torch.nn.LeakyReLU(0.1, inplace=True), torch.nn.Dropout(1.0, inplace=True)):
    x = torch.tensor([-1.0, 0.25, 7.0])
    y = act(x)
    assert y is x and x.tolist() != [-1.0, 0.25, 7.0]

# Activations of floats alone.
for act in (F.gelu, F.silu, F.elu, F.selu, F.celu, F.mish, F.hardswish, F.hardsigmoid, F.logsigmoid, F.leaky_relu,
            F.softplus, F.hardshrink, F.softshrink, F.glu, lambda x: F.relu6(x > 1)):
    raises(NotImplementedError, lambda: act(torch.arange(4)))
assert F.hardtanh(torch.arange(3)).tolist() == [0, 1, 1] and F.hardtanh(torch.arange(3)).dtype is torch.int64

# Errors have torch's classes.
m, t3 = torch.ones(2, 3), torch.zeros(1, 2, 3)


def put(index, value):
    m[index] = value


for f in (lambda: torch.cat([m[0], m]), lambda: torch.stack([m[0], m]), lambda: torch.arange(3).add_(0.5), lambda: t3.t(),
          lambda: torch.zeros(1).add_(m[0]), lambda: m.half().view(torch.int32), lambda: m.permute(0), lambda: m.expand(3),
          lambda: m.clamp(), lambda: torch.eye(-1), lambda: torch.linspace(0, 1, -1), lambda: torch.randperm(-1),
          lambda: torch.randint(0, 0, (2,)), lambda: F.gelu(m, approximate="x"), lambda: F.layer_norm(m, (2,)),
          lambda: F.layer_norm(m, ()), lambda: F.rms_norm(m, (2,)), lambda: t3.H, lambda: m[0].mT, lambda: m.item(),
          lambda: torch.arange(3).add(torch.arange(3), alpha=1.5), lambda: put(0, torch.ones(2)),
          lambda: put([0, 1], torch.ones(2)), lambda: put(m > 0, torch.ones(2)), lambda: torch.arange(4, 2),
          lambda: torch.arange(2, 4, -1), lambda: torch.arange(-2), lambda: torch.arange(0.0, 2.0, -0.5),
          lambda: torch.arange(2, 4, 0)):
    raises(RuntimeError, f)
for f in (lambda: torch.arange(3).std(), lambda: torch.arange(3).mean(), lambda: torch.arange(3).softmax(0),
          lambda: (m > 1).argmax(), lambda: torch.randn(2, dtype=torch.int64)):
    raises(NotImplementedError, f)
for f in (lambda: m.sum(True), lambda: m.sum(0, 1), lambda: m.sum(0, keepdim=1), lambda: m.sum(1.5), lambda: m.amax(True),
          lambda: m.argmax(0.5), lambda: m.softmax(True), lambda: m.unsqueeze(True), lambda: m.transpose(0.0, 1),
          lambda: m.max(0, 1), lambda: (m > 1).all(True)):
    raises(TypeError, f)
for f in (lambda: float(m), lambda: int(m), lambda: int(torch.tensor(nan))):
    raises(ValueError, f)
raises(OverflowError, lambda: int(torch.tensor(inf)))
raises(IndexError, lambda: m[1.5])
raises(IndexError, lambda: put(0.5, 1))
assert torch.arange(2, 2).tolist() == torch.arange(2, 2, -1).tolist() == []
assert torch.tensor([1.0, 3.0]).var(False).item() == torch.var(torch.tensor([1.0, 3.0]), False).item() == 1

# Elements that index tensors name take values of the tensor's dtype; slices, and masks with one value, take others.
x16, mask = torch.zeros(3).half(), torch.tensor([True, False, True])


def put_in(index, value):
    x16[index] = value


for index in (mask, [True, False, True], (mask,), slice(0, 2), 0, torch.tensor(1)):
    put_in(index, torch.tensor(2.0))
assert x16.tolist() == [2, 2, 2]
put_in(slice(0, 2), torch.tensor([3.0, 4.0]))
for index in (mask, [0, 1], torch.tensor([0, 2])):
    raises(RuntimeError, lambda: put_in(index, torch.tensor([2.0, 3.0])))
raises(RuntimeError, lambda: put_in([0], torch.tensor(2.0)))
raises(RuntimeError, lambda: x16.index_put_((mask,), torch.tensor([2.0, 3.0])))
assert x16.tolist() == [3, 4, 2]

# Boundaries and numbers of two dtypes, extremes of bools, halves to decimals.
lines = torch.tensor([1.0, 2.0, 3.0])
assert torch.searchsorted(lines, torch.tensor([1.0, 2.5]).half()).tolist() == [0, 2]
assert torch.searchsorted(lines, torch.tensor([1, 4])).tolist() == [0, 3]
assert torch.searchsorted(torch.tensor([1, 2, 3]), torch.tensor([1.5])).tolist() == [1]
flags = torch.tensor([True, False])
for how, wanted in (("amin", [False, False]), ("amax", [True, False])):
    assert flags.scatter_reduce(0, torch.tensor([0, 0]), flags, how, include_self=False).tolist() == wanted
assert torch.tensor([-3.0, 2.625]).bfloat16().round(decimals=3).tolist() == [-3.0, 2.625]
for f in (lambda: torch.cat(lines), lambda: torch.stack(lines)):
    raises(TypeError, f)
raises(RuntimeError, lambda: F.scaled_dot_product_attention(*[torch.ones(1, 2, 3).long()] * 3))

# out= of functions of the library, of products, of what has several results, and sums in its dtype.
x, y = torch.tensor([0.5, 0.25]), torch.tensor([1.5, 2.0])
out = torch.zeros(2)
for f, arguments, wanted in ((torch.maximum, (x, y), [1.5, 2]), (torch.atan2, (x * 0, y), [0, 0]), (torch.where, (x > 0.3, x, y), [0.5, 2]),
                             (torch.fmod, (y, 1), [0.5, 0]), (torch.remainder, (y, 1), [0.5, 0]), (torch.mv, (torch.eye(2), x), [0.5, 0.25]),
                             (torch.take, (y, torch.tensor([1, 0])), [2, 1.5]), (torch.clamp_min, (x, 0.4), [0.5, 0.4000000059604645])):
    view = out[:]
    assert f(*arguments, out=out) is out and out.tolist() == view.tolist() == wanted
both = torch.empty(0)
assert torch.cat([x, y], out=both) is both and both.tolist() == [0.5, 0.25, 1.5, 2]
assert torch.stack((x, y), out=torch.empty(0)).tolist() == [[0.5, 0.25], [1.5, 2]]
for f in (torch.mm, torch.matmul):
    assert f(torch.eye(2), torch.eye(2), out=torch.empty(0)).tolist() == [[1, 0], [0, 1]]
values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
torch.sort(y, descending=True, out=(values, places))
assert values.tolist() == [2, 1.5] and places.tolist() == [1, 0]
torch.max(y, 0, out=(torch.empty(()), places.new_empty(())))
assert torch.sum(x.bfloat16(), 0, out=torch.empty(0)).item() == 0.75
assert torch.cumsum(torch.tensor([1.9, 1.9]), 0, out=torch.empty(0, dtype=torch.int16)).tolist() == [1, 2]
raises(RuntimeError, lambda: torch.atan2(x, y, out=torch.empty(0, dtype=torch.int64)))
raises(TypeError, lambda: torch.sort(y, out=values))

# Results of their own, whole and side by side in memory.
one, row = torch.ones(1, 1), torch.arange(4.0).reshape(1, 4)
for y in (one.tile(2), torch.tile(row, (2, 1)), F.adaptive_max_pool1d(row, 4), F.adaptive_max_pool2d(row[None], (1, 4))):
    y += 1
assert one.item() == 1 and row.tolist() == [[0, 1, 2, 3]]
for n in (3, 5000):
    for dim in (0, 1, 2):
        assert torch.ones(3, 4, n).prod(dim).is_contiguous() and torch.ones(3, 4, n).prod(dim, keepdim=True).is_contiguous()
# A difference is rounded before it is squared.
far = torch.tensor([1.531, -2.688]).bfloat16(), torch.tensor([-3.508, 0.5]).bfloat16()
assert F.mse_loss(*far, reduction="none").tolist() == [25.625, 10.1875]


# Resized by cubic convolution, by areas, and to the nearest centre.
x = torch.tensor([[[[0.0, 1.0, 3.0], [2.0, 4.0, 8.0]]]])
resized = (
    (dict(size=(3, 2), mode='bicubic'), [-0.030925, 2.184286, 1.234375, 4.873047, 2.499674, 7.561809]),
    (dict(size=(2, 4), mode='bicubic', align_corners=True), [0.0, 0.462963, 1.74074, 3.0, 2.0, 2.925926, 5.48148, 8.0]),
    (dict(size=(1, 2), mode='area'), [1.75, 4.0]),
    (dict(scale_factor=1.5, mode='nearest-exact'), [0.0, 1.0, 1.0, 3.0, 2.0, 4.0, 4.0, 8.0, 2.0, 4.0, 4.0, 8.0]),
)
for arguments, wanted in resized:
    got = F.interpolate(x, **arguments).flatten().tolist()
    assert len(got) == len(wanted) and max(abs(a - b) for a, b in zip(got, wanted)) < 1e-5
raises(NotImplementedError, lambda: F.interpolate(x[0], size=3, mode="bicubic"))
raises(ValueError, lambda: F.interpolate(x, size=(3, 3), mode="area", align_corners=True))

# What topk() does of a long row depends on the tensor's device, and not on the session's.
from torch import _threshold


class _OnGpu:
    is_cuda = True

    def __init__(self, device):
        self.device = device

    def element_size(self):
        return 4


class _Figures:

    def processors(self, x, otherwise):
        return 10 * (1 + int(x.device[-1]))


kept = _threshold._kiln, torch.cuda.get_device_capability
_threshold._kiln, torch.cuda.get_device_capability = _Figures(), lambda device: (8 + int(device[-1]), 0)
plans = [_threshold.plan(_OnGpu(d), 1, 2**24, 8) for d in ("cuda:0", "cuda:1", "cuda:0")]
_threshold._kiln, torch.cuda.get_device_capability = kept
assert plans[0] is plans[2] and [(p.early, p.programs) for p in plans[:2]] == [(False, 320), (True, 640)], plans
raises(RuntimeError, lambda: torch.cuda.get_device_capability(torch.device("cpu")))
assert torch.cuda.get_device_properties(torch.device("cpu")).name == torch.cuda.get_device_name("cpu")

# numpy's names of arguments, and Python's float as a dtype.
x = torch.arange(6.0).reshape(2, 3)
assert x.sum(axis=0).tolist() == [3, 5, 7] and x.mean(axis=1, keepdims=True).tolist() == [[1], [4]]
assert torch.max(x, axis=1)[1].tolist() == [2, 2] and x.argmax(axis=0).tolist() == [1, 1, 1]
raises(TypeError, lambda: x.sum(dim=0, axis=0))
assert torch.ones(2, dtype=float).dtype is torch.float64 and x.to(float).dtype is torch.float64

# Names of PyTorch's own modules, as models import them.
from torch.autograd.function import Function, once_differentiable
from torch.distributions.multivariate_normal import MultivariateNormal
from torch.distributions.utils import broadcast_all
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.utils import _ntuple, _pair, _reverse_repeat_tuple
from torch.nn.parameter import Parameter
from torch.nn.utils.clip_grad import clip_grad_norm_
from torch.optim.adamw import AdamW

assert issubclass(torch.nn.BatchNorm2d, _BatchNorm) and isinstance(torch.nn.Conv1d(1, 1, 1), _ConvNd)
assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2) and _ntuple(5)(0) == (0,) * 5
assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
assert [t.tolist() for t in broadcast_all(1.0, torch.zeros(2))] == [[1, 1], [0, 0]]
raises(ValueError, lambda: broadcast_all("a", 1.0))


@torch.jit.script
def doubled(t):
    return t * 2


@torch.jit.ignore(drop=True)
def ignored(t):
    return t


@torch.compiler.disable
def added(t):
    return t + 1


assert doubled(x).equal(x * 2) and ignored(x) is x and added(x).equal(x + 1)
assert torch.jit.trace(doubled, x) is doubled and not torch.jit.is_tracing() and torch.version.hip is None

# Eigenvectors of what is not symmetric, of equal eigenvalues and of pairs too.
waves = (torch.arange(36, dtype=torch.float64).reshape(6, 6) * 0.7391).sin()
for A in (torch.eye(3).double(), torch.zeros(2, 2).double(), waves, waves * 1e150, waves.triu(), waves[:5, 1:] + waves.T[1:, :5],
          torch.tensor([[2.0, 1, 0], [0, 2, 1], [0, 0, 2]], dtype=torch.float64), torch.complex(waves, waves.T),
          torch.stack([waves, waves.T])):
    values, vectors = torch.linalg.eig(A)
    away = torch.as_tensor(A, dtype=torch.complex128) @ vectors - vectors * values.unsqueeze(-2)
    assert float(away.abs().max()) <= 1e-13 * max(1e-300, float(A.abs().max())), A
    assert float((vectors.abs().square().sum(-2) - 1).abs().max()) < 1e-12, A
    if not A.is_complex():  # real ones are real, the others conjugate pairs
        imag = values.imag.flatten().sort().values
        assert imag.equal(-imag.flip(0)), values
raises(NotImplementedError, lambda: torch.linalg.eig(torch.eye(2).requires_grad_()))
raises(RuntimeError, lambda: torch.arange(0, 1, 0.25, dtype=torch.int64))  # a step of 0
assert torch.arange(0.3, 2.5, 0.7, dtype=torch.int32).tolist() == [0, 0, 0, 0]  # which only int64 refuses
print("ok")

# A parameter is told from a tensor by its type, as loops over state_dict() do.
layer = torch.nn.Linear(3, 2)
assert isinstance(layer.weight, torch.nn.Parameter) and isinstance(torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter)
assert isinstance(layer.weight, torch.Tensor) and not isinstance(torch.ones(2), (torch.nn.Parameter, int))
assert not isinstance(layer(torch.ones(1, 3)), torch.nn.Parameter) and not isinstance(3, torch.nn.Parameter)
