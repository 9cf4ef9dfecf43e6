"""Gradients of torch.func: functions of tensors, and what PyTorch on a CPU makes of them.

    python3 tests/unit/repl/modules/torch_gradients.py record               # writes torch_gradients.txt beside it
    python3 tests/unit/repl/modules/torch_gradients.py compare KILN [TEXT]  # the same in both, now; of rows with TEXT

torch_gradients_test.cc holds Kiln to the recorded results. The file has the variables, then a row for each expression,
which gives tensors: it, a tab, and its shapes, dtypes and elements as `record` shows them, or "error".
"""
import os
import subprocess
import sys
import tempfile

VARIABLES = """
inf, nan = float("inf"), float("nan")
f = torch.tensor([[0.5, -1.25, 2.0, 3.5], [-0.75, 0.25, 1.0, -2.0], [4.0, -3.0, 0.125, 1.5]])
g = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.75, -2.0, 3.0, 1.25], [-1.5, 0.5, 2.0, -0.25]])
h, b, d = f.half(), g.bfloat16(), f.double()
w = torch.tensor([[0.5, -0.25], [1.0, 0.75], [-0.5, 0.125], [0.25, 1.5]])
v = torch.tensor([0.75, -0.5, 1.5, 0.25])
x3 = (torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) - 7.5) / 6
y3 = (torch.arange(24, dtype=torch.float32).reshape(2, 4, 3) % 7 - 3) / 4
x4 = (torch.arange(96, dtype=torch.float32).reshape(2, 3, 4, 4) % 13 - 6) / 5
k4 = (torch.arange(54, dtype=torch.float32).reshape(2, 3, 3, 3) % 11 - 5) / 7
p = torch.tensor([2, 0, 1])
q = torch.tensor([[0, 2, 1, 1], [3, 1, 0, 2], [1, 0, 2, 3]])
r = torch.tensor([[0, 2], [2, 2], [1, 0]])
m = f > 0
pos = f.abs() + 0.5
def G(function, *args, **kwargs):
    places = kwargs.pop("at", tuple(range(len(args))))
    def weighted(*a):
        y = function(*a)
        return (y.float() * (torch.arange(y.numel()).reshape(y.shape) % 5 + 1)).sum()
    return torch.func.grad(weighted, argnums=places)(*args)
"""

UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor frac log log10 log1p log2 logit neg
reciprocal relu round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc"""
ACTIVATIONS = """celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu
softplus softshrink softsign tanhshrink"""


def rows():
    out = []
    for name in UNARY.split():
        of = {"acos": "f / 8", "asin": "f / 8", "atanh": "f / 8", "logit": "f / 10 + 0.5", "acosh": "pos + 1"}.get(
            name, "pos" if name in ("log", "log10", "log1p", "log2", "rsqrt", "sqrt") else "f")
        out.append(f"G(torch.{name}, {of})")
    out += [f"G(F.{name}, f * 1.7)" for name in ACTIVATIONS.split()]
    out += [f"G(F.{name}, h)" for name in ("gelu", "silu", "softplus", "elu")]
    out += [f"G({name}, h)" for name in ("torch.tanh", "torch.sigmoid", "torch.exp", "torch.sqrt", "torch.abs")]
    out += ["G(lambda x: F.gelu(x, approximate='tanh'), f)", "G(lambda x: F.threshold(x, 0.1, 20.0), f)",
            "G(lambda x, y: F.prelu(x, y), f, v)", "G(F.glu, f)", "G(lambda x: x.clamp(-1, 1.25), f)",
            "G(lambda x: x.clamp(min=v), f)", "G(lambda x: torch.nan_to_num(x), f)", "G(lambda x: x.neg().abs_(), f)"]
    # two operands
    for op in ("+", "-", "*", "/", "**"):
        out += [f"G(lambda x, y: x {op} y, pos, g)", f"G(lambda x, y: x {op} y, pos, v)",
                f"G(lambda x: x {op} 2.5, pos)", f"G(lambda x: 2.5 {op} x, pos)"]
    out += ["G(lambda x, y: x * y, h, b)", "G(lambda x, y: x + y, h, v)", "G(lambda x, y: x * y, d, f)",
            "G(lambda x: x * p.reshape(3, 1), f)", "G(lambda x: x % 1.5, f)"]
    for name in ("maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp", "logaddexp2", "xlogy", "copysign"):
        out.append(f"G(torch.{name}, pos, g + 0.125)")
    out += ["G(torch.maximum, f, f)", "G(lambda x, y: torch.where(m, x, y), f, v)", "G(lambda x: torch.where(m, x, 2.0), f)",
            "G(lambda x, y: torch.lerp(x, y, 0.25), f, g)", "G(lambda x, y, z: torch.lerp(x, y, z), f, g, f * g)",
            "G(lambda x, y: x.addcmul(y, y, value=0.5), f, g)", "G(lambda x, y: x.addcdiv(y, x, value=0.5), f, g)",
            "G(lambda x, y: torch.add(x, y, alpha=3), f, g)", "G(lambda x: x.masked_fill(m, 1.5), f)",
            "G(lambda x, s: x.masked_fill(m, s), f, torch.tensor(1.5))"]
    # reductions
    for name in ("sum", "mean", "amax", "amin", "var", "std", "prod", "logsumexp", "max", "min", "norm"):
        take = "[0]" if name in ("max", "min") else ""
        along = "2, 1" if name == "norm" else "1"
        if name != "logsumexp":
            out.append(f"G(torch.{name}, f)")
        out += [f"G(lambda x: x.{name}({along}){take}, f)"]
        if name in ("sum", "mean", "amax", "var", "std", "logsumexp"):
            out.append(f"G(lambda x: x.{name}((0, 2), keepdim=True), x3)")
    out += ["G(lambda x: x.var(1, correction=0), f)", "G(lambda x: x.std(0, correction=0), h)", "G(lambda x: x.sum(1), h)",
            "G(lambda x: x.mean(0), b)", "G(lambda x: x.norm(1), f)", "G(lambda x: x.norm(3, 0), f)",
            "G(lambda x: x.norm(inf), f)", "G(lambda x: x.norm(), torch.zeros(3))", "G(lambda x: x.std(), torch.ones(3))",
            "G(lambda x: x.amax(), torch.tensor([1.0, 3.0, 3.0]))", "G(lambda x: x.max(0)[0], torch.tensor([1.0, 3.0, 3.0]))",
            "G(lambda x: x.prod(0), torch.tensor([[0.0, 2.0], [3.0, 0.0], [4.0, 0.0]]))", "G(torch.nansum, f)",
            "G(torch.nanmean, f)", "G(lambda x: torch.var_mean(x, 1)[0] + torch.var_mean(x, 1)[1], f)"]
    for name in ("cumsum", "cumprod", "softmax", "log_softmax", "cummax", "cummin", "logcumsumexp"):
        take = "[0]" if name in ("cummax", "cummin") else ""
        if name != "logcumsumexp":
            out += [f"G(lambda x: x.{name}(0){take}, f)", f"G(lambda x: torch.{name}(x, 1){take}, x3)"]
    out += ["G(lambda x: x.softmax(-1), h)", "G(lambda x: F.softmin(x, 1), f)",
            "G(lambda x: x.cumprod(1), torch.tensor([[2.0, 0.0, 3.0], [1.0, 2.0, 0.0]]))",
            "G(lambda x: torch.diff(x, dim=0), f)", "G(lambda x: torch.trapezoid(x), f)"]
    # shapes
    for text in ("x.T", "x.reshape(2, 6)", "x.flatten()", "x.unsqueeze(1)", "x[1]", "x[:, 1:3]", "x[::2]", "x[1:, ::3]", "x[-1, 2]",
                 "x[None, 1]", "x.expand(2, 3, 4)", "x.repeat(2, 3)", "x.tile(2)", "x.flip(0)", "x.roll(1, 1)", "x.roll(5)",
                 "x.rot90()", "x.tril()", "x.triu(1)", "x.diagonal()", "x.diagonal(1)", "x.diag()", "x.trace()", "x.contiguous()",
                 "x.clone()", "x.repeat_interleave(2, 0)", "x.unfold(1, 2, 1)", "torch.cat([x, x * 2], 0)", "torch.cat([x, g], 1)",
                 "torch.stack([x, x, g], 1)", "x.chunk(2, 1)[1]", "torch.split(x, 3, 1)[0]", "x.unbind(0)[2]", "x.movedim(0, 1)",
                 "F.pad(x, (1, 2))", "F.pad(x, (0, 1, 2, 1), value=3.0)", "F.pad(x, (-1, 1))", "x.squeeze()", "x.permute(1, 0)",
                 "torch.diag_embed(x)", "x.narrow(1, 1, 2)", "x.select(0, 1)", "torch.hstack([x, x])",
                 "torch.meshgrid(x[0], x[1], indexing='ij')[0]", "x.double()", "x.half()", "x.to(torch.bfloat16).float()",
                 "x.int().float()", "x.view(12)", "torch.broadcast_to(x, (2, 3, 4))", "x.unflatten(1, (2, 2))"):
        out.append(f"G(lambda x: {text}, f)")
    out += ["G(lambda x: F.pad(x, (1, 2), mode='reflect'), f)", "G(lambda x: F.pad(x, (2, 2), mode='replicate'), f)",
            "G(lambda x: F.pad(x, (2, 1), mode='circular'), x3)", "G(lambda x: F.pixel_shuffle(x.reshape(2, 3, 4, 1)[:, :1].expand(2, 4, 4, 1), 2), x3)"]
    # places
    out += ["G(lambda x: x[p], f)", "G(lambda x: x[p, p], f)", "G(lambda x: x[:, q[0]], f)", "G(lambda x: x[m], f)",
            "G(lambda x: x.gather(1, q), f)", "G(lambda x: x.gather(1, r), f)", "G(lambda x: x.gather(0, r), f)",
            "G(lambda x: x.index_select(1, p), f)", "G(lambda x: x.take(p), f)", "G(lambda x: torch.take_along_dim(x, q, 1), f)",
            "G(lambda x: F.embedding(q, x), torch.cat([f, g]))", "G(lambda x: F.embedding(p, x), b)",
            "G(lambda x, y: x.scatter(1, q[:, :2], y), f, w[:3])", "G(lambda x, y: x.scatter_add(1, r, y), f, w[:3])",
            "G(lambda x, y: x.index_add(0, p, y), f, g)", "G(lambda x, y: x.index_copy(0, p, y), f, g)",
            "G(lambda x: x.index_fill(1, p, 2.0), f)", "G(lambda x, y: x.index_put((p, p), y), f, v[:3])",
            "G(lambda x, y: x.index_put((q,), y, accumulate=True), torch.cat([f, g]), v)",
            "G(lambda x: x.sort(1)[0], f)", "G(lambda x: x.topk(2, 1)[0], f)", "G(lambda x: x.kthvalue(2, 0)[0], f)",
            "G(lambda x: x.median(1)[0], f)", "G(lambda x: x.median(), f)", "G(lambda x: x.msort(), f)",
            "G(lambda x: torch.masked_select(x, m), f)", "G(lambda x: x[x > 0], f)", "G(lambda x: x[q > 1], f)"]
    # products
    out += ["G(torch.matmul, f, w)", "G(torch.matmul, x3, y3)", "G(torch.matmul, x3, w)", "G(torch.matmul, f, y3)", "G(torch.matmul, v, w)",
            "G(torch.matmul, f, v)", "G(torch.dot, v, v)", "G(lambda x, y: x @ y.T, f, g)", "G(lambda x: x @ x.T, f)",
            "G(torch.mv, f, v)", "G(torch.outer, v, v)", "G(torch.bmm, x3, y3)", "G(lambda x, y: x @ y, h, w.half())",
            "G(lambda x, y: x @ y, b, w.bfloat16())", "G(torch.addmm, g[:, :2], f, w)", "G(torch.baddbmm, x3[:, :, :3], x3, y3)",
            "G(torch.kron, f[:2], w)", "G(lambda x, y: torch.einsum('ij,jk->ik', x, y), f, w)",
            "G(lambda x, y: torch.einsum('bij,bjk->bik', x, y), x3, y3)", "G(lambda x: torch.einsum('ii->i', x), x3[0, :, :3])",
            "G(lambda x, y: torch.einsum('bij,kj->bk', x, y), x3, f)", "G(lambda x, y: torch.tensordot(x, y, 1), f, w)",
            "G(F.linear, f, g, v[:3])", "G(F.linear, x3, g)", "G(lambda x, y, z: F.linear(x, y, z), b, h.bfloat16(), v[:3].bfloat16())",
            "G(F.bilinear, f[:, :2], f[:, :2], k4[:, 0, :2, :2].contiguous())", "G(lambda x, y: torch.cdist(x, y), f, g)",
            "G(F.cosine_similarity, f, g)", "G(lambda x: F.normalize(x), f)", "G(F.pairwise_distance, f, g)"]
    # norms, losses, layers
    out += ["G(lambda x, y, z: F.layer_norm(x, (4,), y, z), f, v, v)", "G(lambda x: F.layer_norm(x, (3, 4)), x3)",
            "G(lambda x, z: F.layer_norm(x, (4,), None, z), f, v)", "G(lambda x, y, z: F.layer_norm(x, (4,), y, z), h, v.half(), v.half())",
            "G(lambda x, y: F.rms_norm(x, (4,), y), f, v)", "G(lambda x: F.rms_norm(x, (4,)), b)", "G(lambda x, y: F.rms_norm(x, (4,), y, 0.1), x3, v)",
            "G(lambda x, y, z: F.group_norm(x, 2, y, z), x4[:, :2], v[:2], v[2:])", "G(lambda x: F.instance_norm(x), x4)",
            "G(lambda x, y, z: F.batch_norm(x, None, None, y, z, training=True), x3, v[:3], v[1:])",
            "G(lambda x: F.batch_norm(x, v[:3], v[:3].abs()), x3)",
            "G(F.mse_loss, f, g)", "G(lambda x: F.mse_loss(x, g, reduction='sum'), h)", "G(F.l1_loss, f, g)", "G(F.smooth_l1_loss, f, g)",
            "G(F.huber_loss, f, g)", "G(lambda x: F.cross_entropy(x, p), f)", "G(lambda x: F.cross_entropy(x, p, weight=v), f)",
            "G(lambda x: F.cross_entropy(x, p, label_smoothing=0.1), f)", "G(lambda x: F.cross_entropy(x, p, ignore_index=2, reduction='sum'), f)",
            "G(lambda x, y: F.cross_entropy(x, y.softmax(1)), f, g)", "G(lambda x: F.cross_entropy(x, p), b)",
            "G(lambda x: F.nll_loss(x.log_softmax(1), p), f)", "G(lambda x: F.binary_cross_entropy(x.sigmoid(), (g > 0).float()), f)",
            "G(lambda x: F.binary_cross_entropy_with_logits(x, (g > 0).float()), f)", "G(lambda x, y: F.kl_div(x, y.softmax(1), reduction='batchmean'), f, g)",
            "G(lambda x, y: F.conv2d(x, y, v[:2], padding=1), x4, k4)", "G(lambda x, y: F.conv2d(x, y, stride=2, padding=1), x4, k4)",
            "G(lambda x, y: F.conv1d(x, y), x3, k4[:, :, 0])", "G(lambda x: F.max_pool2d(x * 1.37 + torch.arange(16).reshape(4, 4) * 0.01, 2), x4)",
            "G(lambda x: F.avg_pool2d(x, 2, 1, 1), x4)", "G(lambda x: F.interpolate(x, scale_factor=2), x4)",
            "G(lambda x: F.interpolate(x, (6, 5), mode='bilinear'), x4)", "G(lambda x: F.unfold(x, 2), x4)",
            "G(lambda x: F.dropout(x, 0.5, training=False), f)", "G(lambda x, y, z: F.scaled_dot_product_attention(x, y, z), x3, x3 * 0.5, y3.mT)",
            "G(lambda x, y, z: F.scaled_dot_product_attention(x, y, z, is_causal=True), x3, x3 * 0.5, y3.mT)",
            "G(lambda x, y: F.scaled_dot_product_attention(x, x, x, attn_mask=y), x3, y3[0, :3])"]
    # more than one derivative, tuples and dicts, values that are looked at, changes in place
    out += ["torch.func.grad(lambda x: torch.func.grad(lambda y: (y ** 3).sum())(x).sum())(f)",
            "torch.func.grad(lambda x: (torch.func.grad(lambda y: (y * x).tanh().sum())(x * 2) ** 2).sum())(f)",
            "G(lambda x: torch.func.grad(lambda y: F.gelu(y @ w).square().sum())(x), f)",
            "G(lambda x: torch.func.grad(lambda y: F.layer_norm(y, (4,)).pow(3).sum())(x), f)",
            "G(lambda x: torch.func.grad(lambda y: F.cross_entropy(y, p))(x), f)",
            "torch.func.grad(lambda t: (t['a'] * t['b'][0]).sum())({'a': f, 'b': [g]})['b'][0]",
            "torch.func.grad_and_value(lambda x: x.square().sum())(f)", "torch.func.grad(lambda x, y: (x * y).sum(), 1)(f, g)",
            "torch.func.grad(lambda x, y: (x * y).sum(), (1, 0))(f, g)", "torch.func.grad(lambda x: (x.sum(), x * 2), has_aux=True)(f)",
            "torch.func.grad_and_value(lambda x: (x.sum(), x * 2), has_aux=True)(f)[1]", "torch.func.grad(lambda x, k: (x * k).sum())(f, k=g)",
            "torch.func.vjp(torch.matmul, f, w)[1](torch.ones(3, 2))", "torch.func.vjp(lambda x: (x * 2, x.sum()), f)[1]((g, torch.tensor(3.0)))",
            "torch.func.vjp(lambda x: x.exp(), f)[0]", "torch.func.grad(lambda x: (x.detach() * x).sum())(f)",
            "torch.func.grad(lambda x: (x * float(x[0, 0])).sum())(f)", "torch.func.grad(lambda x: x.square().sum() if x.sum() > 0 else x.sum())(f)",
            "torch.func.grad(lambda x: x.argmax() * x.sum())(f)", "torch.func.grad(lambda x: (x > 0).all())(f)",
            "torch.func.grad(lambda x, y: y.sum())(f, g)", "torch.func.grad(lambda x: x.sum().double())(h)",
            "G(lambda x: (x * 2).mul_(x), f)", "G(lambda x: (x * 2).add_(x, alpha=3), f)", "G(lambda x: (x * 1).clamp_(0, 1), f)",
            "G(lambda x: (x * 1).copy_(x[0]), f)", "G(lambda x: x.data * x, f)"]
    out += ["torch.func.grad(lambda x: x)(f)", "torch.func.grad(lambda x: 3.0)(f)", "torch.func.grad(lambda x: x.sum())(p)",
            "torch.func.grad(lambda x: x.add_(1).sum())(f)", "torch.func.grad(lambda x: (x // 2).sum())(f)", "torch.func.grad(lambda x: x.sum(), 3)(f)",
            "torch.func.grad(lambda x: x * 2)(3.0)", "torch.func.grad(lambda x: (x.sum(),))(f)", "torch.func.vjp(lambda x: x * 2, f)[1](v)"]
    return out


SHOW = """
def show(value):
    if isinstance(value, (tuple, list)):
        return "; ".join([show(v) for v in value])
    return str(value.dtype)[6:] + " " + str(tuple(value.shape)) + " " + " ".join(["%.6g" % x for x in value.double().reshape(-1).tolist()])
"""
# Elements that differ by the rounding of a step in between.
CLOSE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 2e-5}
HERE = os.path.dirname(os.path.abspath(__file__))


def in_torch(texts):
    import torch
    import torch.nn.functional as F
    names = {"torch": torch, "F": F}
    exec(SHOW, names)
    out = []
    for text in texts:
        fresh = dict(names)
        exec(VARIABLES, fresh)
        try:
            out.append(fresh["show"](eval(text, fresh)))
        except Exception:
            out.append("error")
    return out


def in_kiln(program, texts):
    script = "import torch\nimport torch.nn.functional as F\n" + SHOW
    for text in texts:
        script += VARIABLES + f"try:\n    print('=', show({text}))\nexcept Exception as e:\n    print('= error', e)\n"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(script)
        file.flush()
        out = subprocess.run([program, "run", "--device", "cpu", file.name], capture_output=True, text=True)
    print(out.stderr, end="")
    return [line[2:] for line in out.stdout.splitlines() if line.startswith("= ")]


def close(got, expected):
    if got.startswith("error") or expected == "error":
        return got.startswith("error") and expected == "error"
    parts, wanted = got.split("; "), expected.split("; ")
    if len(parts) != len(wanted):
        return False
    for a, b in zip(parts, wanted):
        (x, y), (u, v) = a.split(") "), b.split(") ")
        if x != u:
            return False
        rtol = CLOSE.get(x.split()[0], 0)
        y, v = [float(t) for t in y.split()], [float(t) for t in v.split()]
        most = max([abs(t) for t in v if abs(t) < 1e30] + [1e-3])
        if len(y) != len(v) or any(not (s == t or s != s and t != t or abs(s - t) <= rtol * most) for s, t in zip(y, v)):
            return False
    return True


def main():
    texts = rows()
    if sys.argv[1] == "record":
        import torch
        with open(os.path.join(HERE, "torch_gradients.txt"), "w") as file:
            file.write(f"# PyTorch {torch.__version__.split('+')[0]}; made by torch_gradients.py\n{VARIABLES}\n")
            for text, value in zip(texts, in_torch(texts)):
                file.write(f"{text}\t{value}\n")
        return
    texts = [t for t in texts if len(sys.argv) < 4 or sys.argv[3] in t]
    wrong = 0
    for text, got, expected in zip(texts, in_kiln(sys.argv[2], texts), in_torch(texts)):
        if not close(got, expected):
            wrong += 1
            print(f"{text}\n  kiln  {got}\n  torch {expected}")
    print(f"{wrong} of {len(texts)} differ")


main()
