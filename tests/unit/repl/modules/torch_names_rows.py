"""The expressions of torch_names.py: a few of every name, with what is an error."""
ROWS = []


def add(*texts):
    for text in texts:
        if text not in ROWS:
            ROWS.append(text)


# --- indexing
add("f[p]", "f[:, p]", "f[p, p]", "x3[[0, 1], :, [1, 2]]", "x3[:, [0, 2], [1, 3]]", "x3[0, :, [1, 2]]", "f[[True, False, True]]",
    "f[m]", "f[t]", "f[:, [True, False, True, True]]", "x3[:, m]", "x3[..., p]", "f[p][:, p]", "f[p.reshape(3, 1)]", "f[-p]",
    "f[p.int()]", "f[torch.tensor(1)]", "f[torch.tensor(1), p]", "f[5]", "f[torch.tensor([3])]", "f[torch.tensor([-4])]",
    "f[p, p, p]", "f[::-1]", "f[::2, 1::2]", "f[None]", "f[..., None]", "f[:, None, 1:]", "x3[1, ..., 2]", "f[p.float()]",
    "f[p.short()]", "f[torch.tensor([], dtype=torch.int64)]", "f[[]]", "f[:, p, None]", "f[None, p]", "f[t[:, :3]]", "x3[:, t]",
    "x3[m[:2]]", "f[p, [0, 1]]", "f[torch.tensor([[0, 1], [2, 0]]), torch.tensor([1, 2])]", "s[None]", "s[0]", "s[...]",
    "i[p] + f[p]", "(f * 2)[p]", "(f * 2)[:, 1:3] + 1", "(f + g)[p, [0, 1, 2]]", "(h * b)[1]", "z[:, p]", "f[u[:, 0] > 3]")
# --- assignment
for dst in ("f", "i", "t", "h"):
    for where in ("p", "m", "t", "(p, [0, 1, 2])", "(slice(None), p)", "0", "(slice(None), 1)"):
        add(f"put({dst}, {where}, 1)")
add("put(f, p, g)", "put(f, m, g[:2])",
    "put(f, t, torch.arange(8.))", "put(f, p, g[:2])",
    "put(f, t, s)", "put(f, t, nan)",
    "put(u, f > 1, 300)")
# --- where, masks
for a in ("f", "i", "h", "t", "u", "s", "2", "2.5", "True", "300", "d"):
    for c in ("f", "i", "b", "1", "0.5", "False", "-1"):
        add(f"torch.where(t, {a}, {c})")
add("torch.where(t, u, 300)", "torch.where(t, u, -1)", "torch.where(t, torch.int8, 1)", "torch.where(t, i.to(torch.int8), 300)",
    "torch.where(t, i.to(torch.int8), 200)", "torch.where(t, h, 1e6)", "torch.where(t, h, 65536)", "torch.where(t, b, 1e39)",
    "torch.where(t, k, 2**40)", "torch.where(t, k, 2**31)", "torch.where(t, f, 1e300)", "torch.where(t, f, 2**70)",
    "torch.where(t)", "torch.where(f > 0)", "torch.where(t, f)", "torch.where(f, f, f)", "torch.where(i > 0, f, g)",
    "f.where(t, 0)", "f.where(t, g)", "torch.where(m[:, None], f, -inf)", "torch.where(s > 0, f, g)", "torch.where(t, s, h)")
for x in ("f", "h", "i", "u", "t", "x3"):
    for value in ("0", "1.5", "True", "-inf", "s"):
        add(f"{x}.masked_fill(t, {value})" if x != "x3" else f"x3.masked_fill(t[:, :4], {value})")
add("f.masked_fill(m[:, None], -inf)", "f.masked_fill(i, 0)", "u.masked_fill(t, 300)", "h.masked_fill(t, 1e6)", "f.masked_fill(t, f)",
    "torch.masked_fill(f, t, 2)", "f.masked_select(t)", "torch.masked_select(f, m[:, None])", "f.masked_select(i)",
    "f.clone().masked_fill_(t, 2)", "i.nonzero()", "f.nonzero()", "torch.nonzero(t, as_tuple=True)", "s.nonzero()", "torch.argwhere(i > 3)",
    "torch.count_nonzero(i)", "torch.count_nonzero(i, 1)", "torch.count_nonzero(f, dim=0)")
# --- gather and the like
add("torch.gather(f, 1, q)", "torch.gather(f, 0, p.reshape(1, 3))", "f.gather(1, q[:, :2])", "f.gather(1, q[:2])", "f.gather(0, q)",
    "torch.gather(f, 2, q)", "torch.gather(f, 1, p)", "torch.gather(f, 1, -q)", "torch.gather(h, -1, q)", "torch.gather(i, 1, q.int())",
    "torch.gather(x3, 2, i3 % 4)", "torch.gather(x3, 1, i3[:1] % 3)", "torch.gather(s, 0, torch.tensor(0))", "(f * g).gather(1, q)",
    "torch.gather(f, 1, q.float())", "torch.gather(z, 0, q[:0])", "torch.gather(t, 1, q)")
add("torch.index_select(f, 0, p)", "f.index_select(1, p)", "f.index_select(1, torch.tensor(2))", "f.index_select(0, q)",
    "f.index_select(0, torch.tensor([3]))", "f.index_select(0, torch.tensor([-1]))", "f.index_select(0, p.int())", "x3.index_select(-1, w[1:])",
    "s.index_select(0, torch.tensor([0]))", "h.index_select(0, p) * 2", "f.index_select(2, p)", "f.index_select(0, p.float())")
add("torch.take_along_dim(f, q, 1)", "f.take_along_dim(q.argsort(1), dim=1)", "torch.take_along_dim(f, p)", "f.take_along_dim(p.reshape(3, 1), 1)",
    "f.take_along_dim(p.reshape(1, 3), 0)", "torch.take(f, q)", "f.take(torch.tensor([-1, 11]))", "f.take(torch.tensor([12]))")
# --- rearranging
for x in ("f", "i", "t", "h", "x3", "(f * 2)"):
    add(f"{x}.flip(0)", f"torch.flip({x}, (0, 1))", f"{x}.flip(-1)", f"torch.roll({x}, 1)", f"torch.roll({x}, 1, 0)", f"{x}.roll((1, -2), (0, 1))",
        f"torch.tril({x})", f"{x}.triu(1)", f"{x}.tril(-1)", f"{x}.repeat(2, 1)", f"{x}.repeat(1, 2, 3)", f"torch.tile({x}, (2,))", f"{x}.tile(2, 3)",
        f"torch.repeat_interleave({x}, 2)", f"{x}.repeat_interleave(2, 0)", f"{x}.repeat_interleave(3, dim=-1)", f"torch.movedim({x}, 0, -1)",
        f"{x}.chunk(2)", f"torch.chunk({x}, 3, -1)", f"torch.split({x}, 2, 1)", f"{x}.split([1, 2], 1)", f"{x}.unbind(1)", f"torch.unbind({x})",
        f"{x}.narrow(0, 1, 1)", f"{x}.select(1, -1)", f"torch.cat([{x}, {x}])", f"torch.cat([{x}, {x}], -1)", f"torch.stack([{x}, {x}], 1)",
        f"F.pad({x}, (1, 2))", f"F.pad({x}, (1, 0, 2, 1))", f"F.pad({x}, (-1, 1))", f"F.pad({x}, (1, 1), value=3)", f"torch.diagonal({x})", f"{x}.flatten(0, 1)",
        f"{x}.swapaxes(0, 1)", f"torch.diff({x})", f"{x}.diff(dim=0)", f"torch.diff({x}, n=2)", f"torch.atleast_3d({x})")
add("f.flip(0, 0)", "f.flip(2)", "f.flip()", "s.flip(0)", "f.fliplr()", "torch.flipud(f)", "v.fliplr()", "f.roll(5, 1)", "f.roll((1, 2))", "f.roll(1, 2)", "v.tril()",
    "f.repeat(2)", "f.repeat(2, -1)", "f.repeat(0, 1)", "s.repeat(3)", "v.repeat(2, 2)", "v.repeat_interleave(torch.tensor([1, 0, 2, 1, 3]))",
    "torch.repeat_interleave(f, p, dim=0)", "torch.repeat_interleave(f, p, dim=1)", "v.repeat_interleave(-1)", "s.repeat_interleave(3)",
    "torch.movedim(x3, (0, 1), (2, 0))", "torch.moveaxis(x3, 2, 0)", "torch.movedim(x3, (0, 0), (1, 2))", "f.chunk(5, 1)", "f.chunk(0)", "f.split(0)", "f.split([1, 1])",
    "f.split(5)", "z.chunk(2)", "f.tensor_split(3, 1)", "v.tensor_split([1, 3])", "s.unbind()", "f.narrow(0, 2, 2)", "f.narrow(1, -2, 2)", "f.select(0, 3)",
    "torch.cat([f, i])", "torch.cat([f, h], 1)", "torch.cat([-f, g * 2], 1)", "torch.cat([f[:, :2] * 2, g[:, 2:] + 1, f], 1)", "torch.cat([t, u])", "torch.cat([f, v])",
    "torch.cat([f, z])", "torch.cat([f, torch.empty(0)])", "torch.cat([])", "torch.cat([s, s])", "torch.cat([-x3[..., 2:], x3[..., :2]], -1)", "torch.cat((f, g), dim=2)",
    "torch.stack([f, v])", "torch.stack([s, s * 2])", "torch.stack([-f, g + 1], -1)", "torch.hstack([f, g])", "torch.hstack([v, v])", "torch.vstack([v, v])",
    "torch.dstack([f, g])", "torch.column_stack([v, v])", "torch.concat([f, g])", "torch.diag(v)", "torch.diag(v, 1)", "torch.diag(v, -2)", "torch.diag(f)", "f.diag(1)",
    "f.diag(-1)", "torch.diag(x3)", "torch.diag_embed(f)", "torch.diag_embed(f, 1)", "f.diagonal(1)", "f.diagonal(-2)", "x3.diagonal(0, 1, 2)", "v.diagonal()", "f.trace()", "i.trace()",
    "f.flatten()", "x3.flatten(1)", "x3.flatten(1, 0)", "s.flatten()", "torch.unflatten(f, 1, (2, 2))", "f.unflatten(1, (2, -1))", "f.unflatten(1, (3, 2))", "f.ravel()",
    "F.pad(f, (1, 1), 'reflect')", "F.pad(f[None], (1, 2), 'reflect')", "F.pad(f[None], (1, 2), 'replicate')", "F.pad(f[None], (2, 1), mode='circular')",
    "F.pad(x3[None], (1, 2, 2, 1), mode='reflect')", "F.pad(f, (1,))", "F.pad(f, (1, 1, 1, 1, 1, 1))", "F.pad(f, (-3, -2))", "F.pad(h, (1, 1), value=inf)", "F.pad(u, (1, 1), value=300)",
    "F.pad(f * n[:4], (1, 1))", "v.expand_as(torch.empty(2, 5))", "f.view_as(torch.empty(4, 3))", "f.reshape_as(torch.empty(2, 6))", "f.type_as(i)", "f.new_full((2,), 7)", "i.new_full((2,), 7.5)",
    "f.new_tensor([1, 2])", "v.unfold(0, 2, 1)", "f.unfold(1, 3, 1)", "f.unfold(1, 5, 1)", "torch.broadcast_to(v, (2, 5))", "torch.broadcast_tensors(v, f[:, :1])", "torch.broadcast_shapes((2, 1), (3,))",
    "torch.broadcast_shapes((2,), (3,))", "torch.meshgrid(p, w)", "torch.meshgrid(p, w, indexing='xy')", "torch.tril_indices(3, 3)", "torch.triu_indices(3, 4, 1)", "torch.atleast_1d(s)", "torch.atleast_2d(v)",
    "torch.squeeze(f[None], 0)", "v.diff(prepend=v[:1])", "torch.diff(v, append=v[:2])", "torch.diff(s)")
# --- element by element
for x in ("f", "h", "b", "d", "n"):
    y = x if x != "n" else "n * 2"
    add(f"torch.lerp({x}, {y} * 2, 0.25)", f"torch.lerp({x}, {x} + 1, 0.75)", f"{x}.lerp({x} * 3, {x})", f"torch.addcmul({x}, {x}, {x})",
        f"{x}.addcmul({x}, {x}, value=0.5)", f"torch.addcdiv({x}, {x}, {x} + 5, value=-2)", f"F.softplus({x})", f"F.softplus({x} * 10, beta=2)",
        f"F.logsigmoid({x})", f"F.leaky_relu({x})", f"F.leaky_relu({x}, 0.2)", f"F.elu({x})", f"F.selu({x})", f"F.celu({x}, 2.0)", f"F.relu6({x} * 3)",
        f"F.hardtanh({x})", f"F.hardsigmoid({x})", f"F.hardswish({x})", f"F.mish({x})", f"F.softsign({x})", f"F.tanhshrink({x})", f"F.threshold({x}, 0.1, 7.0)",
        f"torch.tan({x})", f"torch.sinh({x})", f"torch.cosh({x})", f"torch.log10({x})", f"torch.frac({x})", f"torch.nan_to_num({x})", f"torch.erfc({x})",
        f"torch.expm1({x})", f"torch.signbit({x})", f"torch.square({x})", f"torch.isposinf({x})", f"{x}.isneginf()", f"torch.trunc({x})", f"{x}.add({x}, alpha=2)",
        f"torch.sub({x}, {x} * 3, alpha=0.5)", f"torch.add({x}, 2, alpha=3)", f"torch.fmod({x}, 2)", f"torch.fmod({x}, {x} + 10)", f"torch.hypot({x}, {x} + 1)")
for name in ("logical_and", "logical_or", "logical_xor"):
    add(f"torch.{name}(f, i)", f"torch.{name}(t, u)", f"f.{name}(g)", f"torch.{name}(n, n * 0)")
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    add(f"torch.{name}(i, 3)", f"i.{name}(k)", f"t.{name}(t)", f"torch.{name}(f, 1)")
add("torch.bitwise_not(i)", "torch.bitwise_left_shift(k, 2)", "u.bitwise_right_shift(1)", "torch.floor_divide(f, 2)", "torch.remainder(i, 3)", "torch.fmod(i, 3)", "torch.fmod(i, -3)",
    "torch.true_divide(i, 2)", "torch.divide(f, g)", "torch.divide(f, g, rounding_mode='floor')", "torch.divide(f, g, rounding_mode='trunc')", "torch.divide(i, 3, rounding_mode='trunc')",
    "torch.div(i, 3, rounding_mode='floor')", "f.div(g, rounding_mode='trunc')", "torch.div(i, 4, rounding_mode='up')", "torch.subtract(f, g)", "torch.multiply(f, 2)", "torch.negative(f)", "torch.positive(f)",
    "torch.positive(t)", "torch.absolute(i)", "torch.greater(f, 0)", "torch.greater_equal(f, g)", "torch.less(i, f)", "torch.less_equal(f, 1)", "torch.not_equal(f, f)", "f.clamp_min(0)",
    "torch.clamp_max(f, 1)", "torch.heaviside(f, g)", "torch.sgn(f)", "torch.logit(torch.tensor([0.1, 0.5, 0.9]))", "torch.logit(f, 0.1)", "torch.lerp(f, g, 2)", "torch.lerp(f, h, 0.5)", "torch.lerp(i, i, 0.5)",
    "torch.lerp(f, g, g)", "torch.addcmul(i, i, i)", "torch.addcdiv(i, i, i)", "torch.addcmul(f, g, v)", "torch.add(i, i, alpha=2)", "torch.add(i, i, alpha=0.5)", "f.add(i, alpha=2)", "torch.signbit(i)",
    "torch.nan_to_num(n, 1.0, 2.0, 3.0)", "torch.nan_to_num(i)", "torch.frac(i)", "F.softplus(i)", "F.glu(f)", "F.glu(f, 0)", "F.glu(h)", "F.softmin(f, 1)", "F.prelu(f, torch.tensor([0.1]))",
    "F.prelu(f, torch.tensor([0.1, 0.2, 0.3, 0.4]))", "torch.isin(i, w)", "torch.isin(i, 4)", "torch.isin(i, w, invert=True)", "torch.tan(i)", "torch.sinh(i)", "torch.log10(u)")
for name in ("abs", "ceil", "cos", "exp", "floor", "neg", "relu", "round", "sigmoid", "sin", "square", "tanh", "trunc", "sqrt"):
    add(f"f.clone().{name}_()", f"i.clone().{name}_()")
add("f.clone().clamp_(0, 1)", "f.clone().pow_(2)", "f.clone().lerp_(g, 0.5)", "f.clone().addcmul_(f, g, value=2)", "f.clone().addcdiv_(f, g)", "f.clone().add_(g, alpha=3)", "f.clone().sub_(g, alpha=0.5)",
    "h.clone().add_(h, alpha=0.3)", "i.clone().add_(f)", "f.clone().add_(x3)", "f.clone().tril_()", "f.clone().fill_diagonal_(9)", "f.clone().clamp_min_(0.5)", "i.clone().clamp_(min=0)", "f.clone().masked_fill_(t, i)")
# --- products
add("torch.addmm(torch.ones(3, 3), f, g.T)", "torch.addmm(torch.ones(3), f, g.T, beta=2, alpha=0.5)", "torch.addmm(f, f, g)", "torch.addmm(h[:, :3], h, h.T)", "torch.addmm(torch.full((3, 3), nan), f, g.T, beta=0)",
    "torch.addmm(torch.ones(3), f, h.T)", "torch.addmv(torch.ones(3), f, torch.arange(4.))", "torch.baddbmm(torch.ones(2, 3, 3), x3, x3.mT)", "torch.baddbmm(torch.ones(3), x3, x3.mT, beta=0.5, alpha=2)", "torch.baddbmm(s, f, f)",
    "torch.bmm(x3, x3.mT)", "torch.bmm(f, f.T)", "torch.bmm(x3, x3)", "torch.mm(f, g.T)", "torch.mm(x3, x3)", "torch.outer(v, v)", "v.outer(torch.arange(3))", "torch.outer(f, v)", "torch.ger(v, v)", "torch.dot(v, v)",
    "torch.dot(w, w)", "torch.dot(v, w)", "torch.dot(f, f)", "torch.vdot(v, v)", "torch.mv(f, torch.arange(4.))", "torch.mv(f, v)", "torch.inner(f, g)", "torch.inner(v, s)", "torch.inner(v, v)", "torch.inner(f, v)",
    "torch.tensordot(x3, f, 1)", "torch.tensordot(f, g, dims=([1], [1]))", "torch.tensordot(x3, x3, dims=([0, 2], [0, 2]))", "torch.tensordot(f, v, 1)", "torch.chain_matmul(f, g.T, f)")
for e, args in (("ij,kj->ik", "f, g"), ("ij,kj", "f, g"), ("ij->ji", "f"), ("ij->", "f"), ("ij->i", "f"), ("ii->i", "f[:, :3]"), ("ii", "f[:, :3]"), ("i,j->ij", "v, v"), ("bij,bkj->bik", "x3, x3"), ("bij,bjk->bik", "x3, x3.mT"),
                ("...ij,...kj->...ik", "x3, x3"), ("bhd,hd->bh", "x3, f"), ("ij,ij->ij", "f, g"), ("ij,ij,ij->i", "f, g, f"), ("i,i->", "v, v"), ("ij,jk,kl->il", "f, f.T, g"), ("ij,k->kij", "f, v"), ("ij,ik->jk", "h, h"),
                ("ij,kj->ik", "i, i"), ("ij,kl->il", "f, g"), ("ij,jk->ik", "f, g"), ("ij->ii", "f"), ("ijk->i", "f"), ("...->...", "f"), ("b...,b...->b...", "f, g"), ("i j, k j -> i k", "f, g"), ("ij", "f, g")):
    add(f"torch.einsum('{e}', {args})")
add("torch.cdist(f, g)", "torch.cdist(f, g, p=1)", "torch.cdist(f, g, p=inf)", "torch.cdist(x3, x3)", "torch.cdist(f, v)", "torch.dist(f, g)", "torch.dist(f, g, 1)", "torch.cosine_similarity(f, g)", "F.cosine_similarity(f, g, dim=0)",
    "F.pairwise_distance(f, g)", "F.normalize(f)", "F.normalize(f, p=1, dim=0)")
# --- along dimensions
for x in ("f", "h", "d", "x3", "n"):
    add(f"torch.var_mean({x})", f"torch.std_mean({x})", f"torch.norm({x})", f"{x}.norm(1)", f"{x}.norm(inf)", f"{x}.norm(-inf)", f"{x}.norm(0)", f"{x}.norm(3)", f"torch.linalg.norm({x})" if x != "x3" else "torch.linalg.vector_norm(x3, 3)",
        f"torch.std({x})", f"torch.nansum({x})")
    if x != "n":
        add(f"torch.var_mean({x}, 1)", f"torch.var_mean({x}, dim=1, unbiased=False, keepdim=True)", f"torch.std_mean({x}, 0, correction=0)", f"{x}.norm(dim=1)", f"torch.norm({x}, 2, 1, True)", f"torch.norm({x}, dim=(0, 1))", f"torch.linalg.vector_norm({x}, dim=1)",
            f"{x}.std(1)", f"{x}.std(0, unbiased=False)", f"{x}.std(dim=1, keepdim=True)")
add("i.norm()", "torch.var_mean(i)", "torch.nansum(i)", "torch.nansum(n, 0)", "torch.norm(f, dtype=torch.float64)", "f.norm('fro', 1)")
for name in ("cummax", "cummin"):
    add(f"torch.{name}(f, 1)", f"torch.{name}(i, 0)", f"v.{name}(0)", f"torch.{name}(n, 0)", f"torch.{name}(x3, 1).indices", f"torch.{name}(f, 2)")
add("torch.logcumsumexp(f, 1)", "torch.logcumsumexp(n, 0)", "torch.logcumsumexp(d, 0)", "torch.logcumsumexp(i, 0)")
# --- sorting
for x in ("f", "i", "h", "u", "t", "x3", "v", "n"):
    add(f"torch.sort({x}, stable=True)", f"{x}.sort(dim=0, descending=True, stable=True)", f"torch.sort({x}).values", f"{x}.argsort(stable=True)", f"torch.argsort({x}, dim=0, descending=True, stable=True)", f"torch.unique({x})",
        f"torch.unique({x}, return_inverse=True, return_counts=True)", f"torch.msort({x})", f"{x}.topk(2).values", f"torch.topk({x}, 1, 0, largest=False)[0]", f"torch.median({x})", f"{x}.median(0).values", f"torch.kthvalue({x}, 2).values",
        f"torch.unique_consecutive({x})", f"torch.unique_consecutive({x}, return_inverse=True, return_counts=True)")
add("f.topk(2)", "f.topk(3, 0)", "f.topk(1, largest=False)", "f.topk(5)", "f.topk(0)", "f.topk(-1)", "s.topk(1)", "s.sort()", "f.sort(2)", "torch.median(torch.empty(0))", "f.median(1)", "f.median(1, keepdim=True)", "f.median(2)", "i.median(0).indices.shape",
    "f.kthvalue(1)", "f.kthvalue(2, 0, True)", "f.kthvalue(5)", "torch.quantile(f, 0.5)", "torch.quantile(f, 0.3, 1)", "f.quantile(torch.tensor([0.1, 0.9]), 0)", "f.quantile(0.25, dim=1, keepdim=True)", "torch.quantile(f, 1.5)", "torch.quantile(h, 0.5)",
    "torch.quantile(v, 0.6, interpolation='lower')", "torch.quantile(v, 0.6, interpolation='higher')", "torch.quantile(v, 0.6, interpolation='nearest')", "torch.quantile(v, 0.6, interpolation='midpoint')", "torch.quantile(d, torch.tensor([0.5], dtype=torch.float64), 1)",
    "torch.quantile(n, 0.5)", "torch.bincount(w)", "torch.bincount(w, minlength=8)", "torch.bincount(w, v)", "w.bincount(weights=v.double())", "torch.bincount(i)", "torch.bincount(-w)", "torch.bincount(v)", "torch.bincount(w[:0])",
    "torch.histc(f, 4)", "torch.histc(f, 5, -2, 2)", "torch.histc(v, bins=3, min=0, max=3)", "torch.histc(i, 4)", "torch.searchsorted(v.sort()[0], f)", "torch.searchsorted(v.sort()[0], f, right=True)", "torch.searchsorted(f.sort(1)[0], g)",
    "torch.searchsorted(v.sort()[0], 1.0)", "torch.searchsorted(w.sort()[0], i, side='right')", "torch.searchsorted(f.sort(1)[0], v)", "torch.bucketize(f, v.sort()[0])", "torch.bucketize(f, v.sort()[0], right=True)", "torch.bucketize(i, w.sort()[0], out_int32=True)",
    "torch.searchsorted(torch.arange(-2.0, 3.0), f)", "torch.bucketize(f, torch.arange(-2.0, 3.0), right=True)")
# --- putting
for x in ("f", "h", "i"):
    src = {"f": "g", "h": "g.half()", "i": "i * 2"}[x]
    add(f"torch.scatter({x}, 1, q, {src})", f"{x}.scatter(0, p.reshape(1, 3), {src})", f"{x}.scatter(1, q[:, :1], 9)", f"{x}.scatter_add(1, q, {src})", f"torch.scatter_add({x}, 0, q[:, :3] % 3, {src})", f"{x}.index_add(0, p, {src})",
        f"torch.index_add({x}, 1, q[0], {src}, alpha=2)", f"{x}.index_copy(0, p, {src})", f"{x}.index_fill(1, p, 5)", f"{x}.scatter_reduce(1, q, {src}, 'sum')", f"{x}.scatter_reduce(1, q, {src}, 'amax')", f"{x}.scatter_reduce(1, q, {src}, 'amin', include_self=False)",
        f"{x}.scatter_reduce(1, q, {src}, 'prod')", f"{x}.scatter_reduce(1, q, {src}, 'mean')", f"{x}.clone().scatter_(1, q, {src})", f"{x}.clone().index_put_((p, p), {x}[0, 0])", f"{x}.index_put((p % 2,), {src}, accumulate=True)")
add("f.scatter(1, q, i)", "f.scatter(1, q + 1, g)", "f.scatter(1, -q, g)", "f.scatter(1, q, g[:2])", "f.scatter(1, p, v)", "f.scatter(1, q, 2, reduce='multiply')", "f.scatter(1, q, g, reduce='add')", "f.index_add(0, p, g[:2])", "f.index_add(0, p + 1, g)",
    "f.index_fill(0, torch.tensor([-1]), 2)", "f.index_copy(0, p.int(), g)", "f.scatter_reduce(1, q, g, 'median')", "f.clone().masked_scatter_(t, torch.arange(12.))", "f.index_add(0, q, g)")
# --- functional
add("F.linear(f, g)", "F.linear(f, g, torch.arange(3.))", "F.linear(h, h, h[:, 0])", "F.linear(b, b, b[:, 0])", "F.linear(f, f.T)", "F.linear(x3, g)", "F.linear(f, g, h[0, :3])", "F.linear(torch.arange(4.), g)", "F.embedding(q, torch.arange(20.).reshape(5, 4))", "F.embedding(w, h.T[:, :2].repeat(2, 1))",
    "F.embedding(torch.tensor([3]), f)", "F.embedding(v, f)", "F.embedding(w.int() % 3, f)", "F.embedding(torch.tensor(1), f)", "F.embedding(p, f, padding_idx=0)", "F.one_hot(w)", "F.one_hot(w, 6)", "F.one_hot(w, 4)", "F.one_hot(q)", "F.one_hot(w.int())", "F.one_hot(-w)", "F.dropout(f, 0.0)",
    "F.dropout(f, 0.5, False)", "F.dropout(f, 1.0)", "F.dropout(f, 1.5)", "F.dropout(torch.ones(1000), 0.25).unique()", "F.bilinear(f, g, torch.arange(32.).reshape(2, 4, 4))")
for x in ("x3", "x3.half()", "x3.bfloat16() / 8", "x3.double()"):
    y = f"({x})"
    add(f"F.scaled_dot_product_attention({y} / 8, {y} / 4, {y})", f"F.scaled_dot_product_attention({y} / 8, {y} / 4, {y}, is_causal=True)", f"F.scaled_dot_product_attention({y} / 8, {y}, {y}, attn_mask=t[:, :3])",
        f"F.scaled_dot_product_attention({y}, {y}, {y}, scale=0.01)", f"F.scaled_dot_product_attention({y} / 8, {y}, {y}, attn_mask=(f[:, :3]).to({y}.dtype))")
add("F.scaled_dot_product_attention(x3, x3, x3, attn_mask=torch.zeros(3, 3, dtype=torch.bool))", "F.scaled_dot_product_attention(x3, x3.half(), x3)", "F.scaled_dot_product_attention(x3[None].repeat(1, 2, 1, 1) / 9, x3[None], x3[None], enable_gqa=True)", "F.scaled_dot_product_attention(x3, x3, x3, attn_mask=t[:, :3], is_causal=True)")
for x in ("f", "h", "b", "d"):
    add(f"F.cross_entropy({x}, p)", f"F.cross_entropy({x}, p, reduction='none')", f"F.cross_entropy({x}, p, reduction='sum')", f"F.cross_entropy({x}, torch.tensor([1, -100, 3]))", f"F.cross_entropy({x}, p, weight={x}.abs()[0])", f"F.cross_entropy({x}, p, label_smoothing=0.1)",
        f"F.cross_entropy({x}, p, weight={x}.abs()[0], label_smoothing=0.1)", f"F.cross_entropy({x}, torch.softmax({x}, 1))", f"F.cross_entropy({x}[0], torch.tensor(2))", f"F.nll_loss({x}.log_softmax(1), p)", f"F.nll_loss({x}.log_softmax(1), p, reduction='none')", f"F.mse_loss({x}, {x} * 2)", f"F.mse_loss({x}, {x} + 1, reduction='sum')",
        f"F.l1_loss({x}, {x} * 2)", f"F.smooth_l1_loss({x}, {x} * 2)", f"F.smooth_l1_loss({x}, {x} * 2, beta=0.5, reduction='none')", f"F.huber_loss({x}, {x} * 2, delta=0.7)", f"F.binary_cross_entropy_with_logits({x}, t.to({x}.dtype))", f"F.kl_div({x}.log_softmax(1), {x}.softmax(1), reduction='batchmean')",
        f"F.group_norm({x}[:, :, None], 2)", f"F.group_norm({x}[None], 3, {x}[:, 0], {x}[:, 1])", f"F.batch_norm({x}, {x}[0], {x}[0].abs())", f"F.batch_norm({x}, {x}[0], {x}[0].abs(), {x}[1], {x}[2], eps=1e-3)", f"F.instance_norm({x}[None])")
add("F.cross_entropy(x3, torch.tensor([[0, 1, 2, 0], [1, 1, 0, 2]]))", "F.cross_entropy(x3, torch.tensor([[0, 1, 2, 0], [1, -100, 0, 2]]), reduction='none')", "F.cross_entropy(f, torch.tensor([0, 4, 1]))", "F.cross_entropy(f, p[:2])", "F.cross_entropy(f, p.float())", "F.cross_entropy(f, p, reduction='max')",
    "F.cross_entropy(i, p)", "F.cross_entropy(f, torch.full((3,), -100))", "F.nll_loss(x3, torch.tensor([[0, 1, 2, 0], [1, 1, 0, 2]]))", "F.nll_loss(f, p, weight=torch.arange(4.), reduction='mean')", "F.nll_loss(f, p, ignore_index=0)", "F.binary_cross_entropy(torch.sigmoid(f), t.float())", "F.binary_cross_entropy(torch.sigmoid(f), t[0].float())",
    "F.binary_cross_entropy_with_logits(f, t.float(), pos_weight=torch.tensor(2.0))", "F.kl_div(f.log_softmax(1), g.log_softmax(1), reduction='sum', log_target=True)", "F.mse_loss(f, h)", "F.batch_norm(x3, None, None, training=True)", "F.group_norm(f, 3)", "F.group_norm(x3, 3)", "F.group_norm(v, 1)",
    "F.layer_norm(f, (4,))", "F.rms_norm(h, (4,))", "F.max_pool2d(x3, 2)", "F.max_pool2d(x3, 2, 1)", "F.max_pool2d(x3, 3, 1, 1)", "F.max_pool2d(x3[None], (1, 2))", "F.max_pool2d(x3, 5)", "F.max_pool1d(f, 2)", "F.max_pool1d(x3, 3, stride=1)", "F.avg_pool2d(x3, 2)", "F.avg_pool2d(x3, 3, 1, 1)",
    "F.avg_pool2d(x3, 3, 1, 1, count_include_pad=False)", "F.avg_pool1d(x3, 2, 1)", "F.avg_pool2d(x3.half(), 2, divisor_override=3)", "F.adaptive_avg_pool2d(x3, (1, 2))", "F.conv2d(x3[None], torch.arange(16.).reshape(2, 2, 2, 2) / 16)", "F.conv2d(x3[None], torch.arange(18.).reshape(1, 2, 3, 3) / 18, torch.ones(1), padding=1)",
    "F.conv2d(x3[None], torch.arange(16.).reshape(2, 2, 2, 2) / 16, stride=2, padding=1)", "F.conv2d(x3, torch.arange(8.).reshape(2, 1, 2, 2) / 8, groups=2)", "F.conv2d(x3[None], torch.arange(16.).reshape(2, 2, 2, 2) / 16, dilation=2)", "F.conv2d(x3[None], torch.arange(18.).reshape(1, 2, 3, 3) / 18, padding='same')",
    "F.conv2d(x3[None], torch.ones(1, 3, 2, 2))", "F.conv1d(x3, torch.arange(12.).reshape(2, 3, 2) / 12)", "F.conv1d(x3, torch.arange(9.).reshape(1, 3, 3) / 9, torch.ones(1), padding=1, stride=2)", "F.conv1d(f, torch.arange(12.).reshape(2, 3, 2) / 12)", "F.unfold(x3[None], 2)", "F.unfold(x3[None], (2, 3), padding=1, stride=2)",
    "F.pixel_shuffle(torch.arange(16.).reshape(1, 4, 2, 2), 2)")
# --- torch itself
for a in ("float16", "bfloat16", "float32", "float64"):
    add(f"[torch.finfo(torch.{a}).max, torch.finfo(torch.{a}).min, torch.finfo(torch.{a}).eps, torch.finfo(torch.{a}).tiny, torch.finfo(torch.{a}).smallest_normal, torch.finfo(torch.{a}).bits]")
for a in ("uint8", "int8", "int16", "int32", "int64"):
    add(f"[torch.iinfo(torch.{a}).max, torch.iinfo(torch.{a}).min, torch.iinfo(torch.{a}).bits]")
add("torch.finfo(torch.int32)", "torch.iinfo(torch.float32)", "torch.finfo().eps", "torch.promote_types(torch.int8, torch.uint8)", "torch.promote_types(torch.float16, torch.bfloat16)", "torch.promote_types(torch.int64, torch.float16)", "torch.promote_types(torch.bool, torch.int8)",
    "torch.result_type(f, 1)", "torch.result_type(i, 1.0)", "torch.result_type(h, d)", "torch.result_type(i, s)", "torch.result_type(h, s.double())", "torch.result_type(1, 2.0)", "torch.can_cast(torch.float32, torch.int32)", "torch.can_cast(torch.int32, torch.float16)", "torch.can_cast(torch.int8, torch.bool)",
    "torch.is_floating_point(f)", "torch.is_nonzero(s)", "torch.get_default_dtype()", "torch.compile(lambda x: x + 1)(f)", "torch.compile()(lambda x: x + 1)(f)", "torch.get_float32_matmul_precision()", "torch.logspace(0, 2, 5)", 
    "torch.__version__.split('+')[0].split('.')[0]", "torch.zeros(3, generator=None)", "torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 1)", "torch.multinomial(torch.tensor([0.0, 1.0]), 3, replacement=True)", "torch.multinomial(v, 9)", "torch.bernoulli(torch.ones(3))",
    "torch.randn(3, generator=torch.Generator().manual_seed(1)).shape", "(lambda a, b: bool((a == b).all()))(*[torch.rand(5, generator=torch.Generator().manual_seed(7)) for _ in range(2)])", "torch.Generator().manual_seed(3).initial_seed()")
add("t ** t", "t ** True", "t ** False", "True ** t", "False ** t", "t ** 2", "2 ** t", "t ** i", "i.abs() ** t", "t ** 0.5", "torch.pow(t, t)", "f ** t", "t ** f", "torch.where(t, d, 1e300)")
for a in ("i * 1000003", "(i * 123456789123)", "torch.tensor([2049 * 2**40 + 1, 2**53 + 1, -(2**62) + 12345])"):
    add(f"({a}).half()", f"({a}).bfloat16()", f"({a}).float()")
for a in ("d * 1.0000000001", "torch.tensor([1.00048828125 + 2**-40, 1.001953125 + 2**-40, 65519.99999999, 1 + 2**-8 + 2**-40], dtype=torch.float64)"):
    add(f"({a}).half()", f"({a}).bfloat16()", f"({a}).float()")
# --- other dtypes of the same memory
add("f.view(torch.int32)", "f.view(dtype=torch.int32)", "f.view(torch.float16)", "h.view(torch.float32)", "f.view(torch.int64)", "f.view(torch.uint8)", "f.T.view(torch.int32)", "f.T.view(torch.int16)", "f[:, :2].view(torch.int64)", "f[:, 1:].view(torch.int64)",
    "f[1].view(torch.float64)", "s.view(torch.int32)", "s.view(torch.int16)", "t.view(torch.uint8)", "i.view(torch.float64)", "v.view(torch.float64)", "(f * 2).view(torch.int32)", "u.view(torch.int8)", "b.view(torch.int16)", "z.view(torch.int32)", "f.view(torch.int32).view(torch.float32)",
    "f.view(4, 3)", "[x.view(torch.int32).zero_() for x in [f.clone()]][0]", "u.view(torch.bool)")
add("torch.cuda.is_bf16_supported() and 1 or 1")
# --- rarer names, dtypes that differ, and wrong arguments
add("torch.einsum('ij->i', torch.full((2, 3), 100, dtype=torch.uint8))",
    "torch.einsum('ij->', i.to(torch.int8) * 20)", "torch.einsum('ij->i', t)", "torch.einsum('ij,ij->i', u, u)",
    "torch.einsum('ij,kj->ik', u, u)", "torch.einsum('ij,kl->il', k, k)", "torch.einsum('ii->i', torch.ones(3, 1))",
    "torch.einsum('ij,k->i', u, u[0])", "F.smooth_l1_loss(i, f)", "F.smooth_l1_loss(i, i)",
    "F.smooth_l1_loss(h, f, reduction='none')", "F.smooth_l1_loss(f, h)", "F.smooth_l1_loss(i, f, beta=0)",
    "F.smooth_l1_loss(i, h)", "F.huber_loss(i, f)", "F.huber_loss(f, i)", "F.huber_loss(i, i)",
    "F.huber_loss(h, f, reduction='none')", "F.huber_loss(f, h)", "F.kl_div(i, i)", "F.kl_div(i, f)",
    "F.kl_div(f, i)", "F.kl_div(h, f.abs(), reduction='none')", "F.kl_div(f, g, reduction='none')",
    "F.kl_div(f, h.abs()).dtype",
    "F.kl_div(torch.tensor([0.5, -1.0, 2.0]), torch.tensor([-1.0, 0.0, 2.0]), reduction='none')",
    "F.kl_div(torch.tensor([0.5, inf, nan]), torch.tensor([0.0, 0.0, 0.0]), reduction='none')",
    "F.kl_div(torch.tensor([0.5, -1.0, 2.0]), torch.tensor([nan, 0.0, inf]), reduction='none')",
    "F.kl_div(s, s, reduction='batchmean')", "F.mse_loss(i, i)", "F.mse_loss(i, f)",
    "F.mse_loss(i, i, reduction='sum')", "F.l1_loss(i, i)", "F.l1_loss(i, i * 2, reduction='sum')", "F.l1_loss(h, f)",
    "F.binary_cross_entropy_with_logits(i, f)", "F.binary_cross_entropy_with_logits(f, i)",
    "F.binary_cross_entropy_with_logits(f, h)", "F.binary_cross_entropy_with_logits(h, f)",
    "F.binary_cross_entropy(torch.sigmoid(f), i.half())", "F.binary_cross_entropy(torch.sigmoid(h), t.half())",
    "F.cosine_similarity(i, f)", "F.cosine_similarity(i, i)", "F.cosine_similarity(h, f).dtype",
    "F.cosine_similarity(t, f, 0)", "F.cosine_similarity(f, h).dtype",
    "torch.nansum(torch.tensor([1.7, nan, 2.6]), dtype=torch.int64)",
    "torch.nansum(torch.tensor([1.7, nan, 2.6, -0.5]), dtype=torch.uint8)", "torch.nansum(f, dtype=torch.int64)",
    "f.nansum(1, dtype=torch.int32)", "torch.nansum(u, dtype=torch.uint8)", "torch.nansum(f, dtype=torch.bool)",
    "torch.nansum(f, dtype=torch.float64)", "torch.nansum(h * 5000)", "torch.nanmean(n)", "torch.nanmean(f, 1)",
    "torch.nanmean(torch.tensor([[1.0, nan], [nan, nan]]), 1, True)", "torch.nanmean(i)", "h.nanmean()",
    "torch.nanmean(h, 0, dtype=torch.float32)", "torch.ones(0, 3).repeat(3, 2)", "torch.ones(2, 0).tile(2, 1)",
    "torch.ones(2, 0).repeat(2, 3, 1)", "torch.ones(0, 3).tile(2)", "torch.ones(0).repeat(0)",
    "F.prelu(-s, torch.tensor([0.5]))", "F.prelu(-s, torch.tensor(0.5))", "F.prelu(f, torch.ones(3))",
    "F.prelu(f, torch.tensor([[0.1, 0.2, 0.3, 0.4]]))", "F.prelu(v, torch.ones(5))",
    "F.prelu(f, torch.ones(4).half())", "F.prelu(i, torch.ones(1))", "F.prelu(x3, torch.tensor([0.1, 0.2, 0.3]))",
    "F.prelu(-s, torch.ones(2))", "torch.quantile(s, 0.5, dim=0, keepdim=True)",
    "torch.quantile(s, torch.tensor([0.5, 0.1]), dim=0, keepdim=True)", "torch.quantile(s, torch.tensor([0.5]))",
    "torch.quantile(s, 0.5, keepdim=True)", "torch.quantile(s, 0.5)",
    "F.pad(torch.ones(2, 0), (1, 2), mode='replicate')", "F.pad(torch.ones(2, 0), (1, 2), mode='reflect')",
    "F.pad(torch.ones(0, 2), (1, 2), mode='replicate')", "F.pad(torch.ones(0, 2, 3), (1, 1), mode='replicate')",
    "F.pad(torch.ones(2, 0, 3), (1, 1), mode='replicate')", "F.pad(torch.ones(2, 0, 3), (1, 1), mode='reflect')",
    "F.pad(torch.ones(2, 0, 3), (1, 1), mode='circular')", "F.pad(v, (1, 1), mode='replicate')",
    "F.pad(f, (-1, 2), mode='replicate')", "F.pad(f, (1, 1, 1, 1), mode='replicate')",
    "F.pad(x3, (1, 1, 1, 1), mode='replicate')", "F.pad(torch.ones(2, 0), (1, 2))",
    "v.repeat_interleave(torch.tensor([1, -1, 2, 0, 1]))", "v.repeat_interleave(torch.tensor([-1]))",
    "v.repeat_interleave(torch.tensor([1., 2, 3, 4, 5]))", "v.repeat_interleave(w.reshape(1, 5))",
    "v.repeat_interleave(w.int())", "v.repeat_interleave(w, output_size=9)", "v.repeat_interleave(w, output_size=8)",
    "torch.multinomial(torch.zeros(3), 1)", "torch.multinomial(torch.tensor([-1.0, 2.0]), 1)",
    "torch.multinomial(torch.tensor([nan, 2.0]), 1)", "torch.multinomial(torch.tensor([inf, 2.0]), 1)",
    "torch.multinomial(torch.zeros(3), 1, True)", "torch.multinomial(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), 1)",
    "torch.multinomial(w, 1)", "torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 2).shape",
    "torch.multinomial(torch.ones(0, 3), 1)", "torch.tensor([0.0, 1.0]).multinomial(4, True)",
    "torch.bernoulli(torch.tensor([2.0]))", "torch.bernoulli(torch.tensor([-0.5]))",
    "torch.bernoulli(torch.tensor([nan]))", "torch.bernoulli(w)", "torch.bernoulli(torch.ones(2), 1.5)",
    "torch.bernoulli(f, 1.0)", "torch.ones(2).bernoulli(1.0)", "torch.ones(2).bernoulli()",
    "torch.ones(2).bernoulli_(1.5)", "torch.ones(2).bernoulli_(torch.tensor([2.0, 0.0]))", "w.bernoulli(1.0)",
    "w.bernoulli()", "torch.tensordot(f, g, dims=-1)", "torch.tensordot(f, g, dims=3)",
    "torch.tensordot(f, v, dims=0)", "torch.tensordot(f, g, dims=([0], [0, 1]))",
    "torch.tensordot(f[:, :1], g, dims=1)", "torch.tensordot(g, f[:1, :], dims=([0], [0]))",
    "torch.tensordot(f, g, dims=([0, 0], [0, 1]))", "torch.tensordot(torch.ones(2, 0), torch.ones(0, 3), dims=1)",
    "torch.tensordot(torch.ones(0, 2), torch.ones(2, 0), dims=1)", "v.diff(-1)", "v.diff(0)", "torch.diff(v, n=6)",
    "torch.diff(v, n=0, prepend=v)", "f.clone().bitwise_and_(f)", "i.clone().bitwise_and_(3)",
    "i.clone().bitwise_or_(i)", "i.clone().bitwise_xor_(k)", "i.clone().bitwise_not_()", "t.clone().bitwise_and_(i)",
    "t.clone().bitwise_and_(t)", "f.clone().logical_and_(i)", "i.clone().logical_or_(f)", "t.clone().logical_xor_(f)",
    "f.clone().logical_not_()", "f.clone().remainder_(2)", "i.clone().remainder_(2.5)", "i.clone().remainder_(3)",
    "f.clone().fmod_(g)", "f.clone().floor_divide_(2)", "i.clone().floor_divide_(i.abs() + 1)",
    "f.clone().cumsum_(1)", "i.clone().cumprod_(0)", "k.clone().cumsum_(0)", "t.clone().cumsum_(0)",
    "f.clone().eq_(g)", "f.clone().ne_(0.5)", "i.clone().lt_(2.5)", "f.clone().le_(g)", "f.clone().gt_(1)",
    "i.clone().ge_(f)", "t.clone().gt_(0)", "f.clone().sign_()", "f.clone().frac_()", "i.clone().frac_()",
    "n.clone().nan_to_num_()", "f.clone().expm1_()", "f.abs().log2_()", "f.abs().log10_()", "f.abs().log1p_()",
    "f.clone().erf_()", "i.clone().erf_()", "torch.ones(2, 3, 3).baddbmm_(x3, x3.mT, beta=2)",
    "torch.ones(3).addmv_(f, f[0])", "f.clone().detach_()", "f.clone().clip_(0, 1)", "f.clone().multiply_(2)",
    "f.clone().subtract_(g)", "f.clone().divide_(g)", "f.clone().divide_(g, rounding_mode='floor')",
    "i.clone().divide_(2)", "f.clone().atan2_(g)", "f.clone().tan_()", "f.clone().sinh_()", "i.clone().gcd_(i * 2)",
    "f.maximum(g)", "f.minimum(i)", "f.isclose(g)", "f.allclose(f)", "f.equal(f)", "f.equal(g)", "f.dist(g)",
    "torch.as_tensor([1, 2])", "torch.as_tensor(f)", "torch.as_tensor(f, dtype=torch.float64)",
    "torch.as_tensor(2.5)", "torch.as_tensor([1.5, 2.5], dtype=torch.int64)", "torch.atan2(f, g)",
    "torch.atan2(i, k)", "torch.atan2(h, f)", "torch.atan2(d, d * 0)", "f.atan2(s)",
    "torch.atan2(torch.tensor([0.0, 0.0, -0.0, -0.0, inf, inf, -inf, nan, 1.0, 1.0]), torch.tensor([0.0, -0.0, 0.0, -0.0, inf, -inf, -inf, 1.0, nan, -inf]))",
    "torch.atan2(u, u)", "torch.atan(f)",
    "torch.atan(torch.tensor([0.0, -0.0, inf, -inf, nan, 1e-30, 1e30, 0.66, 2.4, 2.5, 1e-10]))",
    "torch.atan(torch.tensor([0.0, -0.0, inf, -inf, nan, 1e-30, 1e30, 0.66, 2.4, 2.5, 1e-10], dtype=torch.float64))",
    "torch.atan(i)", "torch.atan(h)", "torch.atan(b)", "torch.atan(d * 100)", "torch.asin(f / 4)",
    "torch.asin(torch.tensor([0.0, -0.0, 1.0, -1.0, 1.5, nan, 0.999999, -0.7, 1e-20]))", "torch.asin(d / 3)",
    "torch.asin(t)", "torch.asin(h / 4)", "torch.acos(f / 4)",
    "torch.acos(torch.tensor([0.0, -0.0, 1.0, -1.0, 1.5, nan, 0.999999, -0.7, 1e-20]))", "torch.acos(d / 3)",
    "torch.acos(i)", "torch.acos(b / 3)", "torch.asinh(f)",
    "torch.asinh(torch.tensor([0.0, -0.0, inf, -inf, nan, 1e-30, 1e30, 1e-5, 3e8, 1e15]))", "torch.asinh(d * 1e200)",
    "torch.asinh(i)", "torch.asinh(h)", "torch.acosh(f)",
    "torch.acosh(torch.tensor([1.0, 1.0001, 0.5, -1.0, -2.0, inf, -inf, nan, 1e30, 3e8]))", "torch.acosh(d)",
    "torch.acosh(i)", "torch.atanh(f / 4)",
    "torch.atanh(torch.tensor([0.0, -0.0, 1.0, -1.0, 1.5, nan, 0.999999, -0.7, 1e-20]))", "torch.atanh(d / 3)",
    "torch.atanh(i)", "f.clone().atan_()", "(f / 4).asin_()", "(f / 4).acos()", "f.asinh()", "f.acosh()",
    "(f / 4).atanh()", "torch.logaddexp(f, g)", "torch.logaddexp(f * 100, g)", "torch.logaddexp(n, n)",
    "torch.logaddexp(torch.tensor([inf, -inf, inf, -inf, nan]), torch.tensor([inf, -inf, -inf, 1.0, 1.0]))",
    "torch.logaddexp(i, i)", "torch.logaddexp(i, f)", "torch.logaddexp(h, f)", "f.logaddexp(d)",
    "torch.logaddexp(h, h)", "torch.logaddexp2(f, g)",
    "torch.logaddexp2(torch.tensor([inf, -inf, inf, -inf, nan]), torch.tensor([inf, -inf, -inf, 1.0, 1.0]))",
    "torch.logaddexp2(i, i)", "f.logaddexp2(s)", "torch.fmax(f, g)", "torch.fmin(f, g)",
    "torch.fmax(n, torch.tensor([nan, 2.0, nan, 1.0, nan]))",
    "torch.fmin(n, torch.tensor([nan, 2.0, nan, 1.0, nan]))", "torch.fmax(i, f)", "torch.fmin(i, k)",
    "torch.fmax(t, t)", "f.fmax(s)", "h.fmin(f)", "torch.aminmax(f)", "torch.aminmax(f, dim=1)",
    "torch.aminmax(f, dim=0, keepdim=True)", "torch.aminmax(i).max", "torch.aminmax(t)", "torch.aminmax(n).min",
    "f.aminmax(dim=1).min", "torch.aminmax(torch.empty(0))", "torch.aminmax(s, dim=0)",
    "torch.aminmax(f, keepdim=True)", "torch.aminmax(f, dim=3)", "torch.copysign(f, g)", "torch.copysign(i, f)",
    "torch.copysign(i, k)", "torch.copysign(f, -1)", "torch.copysign(f, -0.0)", "torch.copysign(f, 2)",
    "torch.copysign(h, torch.tensor([[-0.0, 0.0, inf, -inf]]))", "f.copysign(s)", "torch.copysign(t, f)",
    "torch.xlogy(f, g)", "torch.xlogy(i, 2)", "torch.xlogy(2, f)", "torch.xlogy(i, i)",
    "torch.xlogy(torch.tensor([0.0, 0.0, nan, 1.0, 0.0]), torch.tensor([nan, -1.0, 1.0, 0.0, inf]))",
    "torch.xlogy(h, 3.5)", "f.xlogy(g)", "torch.xlogy(f, d)", "torch.xlogy(2.5, i)", "torch.gcd(i, k)",
    "torch.gcd(i * 6, torch.tensor([4, 9, 15, 0]))", "torch.gcd(f, f)", "torch.gcd(t, t)", "torch.gcd(u, u[0])",
    "i.gcd(torch.tensor(6))", "torch.lcm(i, k + 1)", "torch.lcm(i, torch.tensor([4, 9, 15, 0]))", "u.lcm(u[1])",
    "torch.lcm(f, f)", "torch.gcd(i[:0], i[:0])", "torch.kron(f, g[:2, :2])", "torch.kron(v, f)", "torch.kron(i, f)",
    "torch.kron(s, v)", "v.kron(v)", "torch.kron(x3, v)", "torch.mode(w)", "torch.mode(w.repeat(3))",
    "torch.mode(i, 1).values", "torch.mode(u, 0).values", "torch.mode(f, 1, True).values", "torch.mode(s)",
    "torch.mode(torch.tensor([2, 1, 2, 1, 3, 1, 2]))", "torch.mode(torch.tensor([nan, nan, 1.0, 2.0, 2.0])).values",
    "torch.mode(torch.empty(0))", "w.mode()", "torch.mode(x3, 1).values", "torch.mode(t, 1).values", "torch.rot90(f)",
    "torch.rot90(f, 2)", "torch.rot90(f, -1)", "torch.rot90(x3, 1, (1, 2))", "torch.rot90(x3, 3, [0, 2])",
    "torch.rot90(f, 4)", "torch.rot90(f, 1, (0, 0))", "torch.rot90(v)", "torch.rot90(f, 1, (0,))",
    "f.rot90(1, (1, 0))", "torch.cartesian_prod(p, w)", "torch.cartesian_prod(p)",
    "torch.cartesian_prod(p, w[:2], p[:2])", "torch.cartesian_prod(f, v)", "torch.cartesian_prod(p, v)",
    "torch.trapezoid(v)", "torch.trapezoid(f, dim=0)", "torch.trapezoid(f, torch.tensor([0.0, 1.0, 3.0, 6.0]))",
    "torch.trapezoid(f, g)", "torch.trapezoid(f, dx=0.5)", "torch.trapz(v, dx=2)", "torch.trapezoid(i)",
    "torch.trapezoid(i, w)", "torch.trapezoid(i, p.reshape(3, 1), dim=0)", "torch.trapezoid(z, dim=0)",
    "torch.trapezoid(s)", "torch.trapezoid(h)", "torch.trapezoid(f[:, :1])", "F.hardshrink(f)",
    "F.hardshrink(n, 1.5)", "F.hardshrink(h, 0.3)", "F.hardshrink(i)", "F.softshrink(f)", "F.softshrink(n, 1.5)",
    "F.softshrink(h, 0.3)", "F.softshrink(f, -1)", "F.softshrink(i)", "F.threshold(n, 0.5, 9.0)",
    "F.threshold(i, 2, 7)", "F.pixel_unshuffle(torch.arange(16.).reshape(1, 1, 4, 4), 2)",
    "F.pixel_unshuffle(torch.arange(24.).reshape(1, 2, 3, 4), 2)",
    "F.pixel_unshuffle(torch.arange(36.).reshape(1, 6, 6), 3)", "F.interpolate(x3, scale_factor=2)",
    "F.interpolate(x3, 7)", "F.interpolate(x3, 3)", "F.interpolate(x3[None], scale_factor=2)",
    "F.interpolate(x3[None], (5, 7))", "F.interpolate(x3[None], scale_factor=(1.5, 0.7))",
    "F.interpolate(x3[None], scale_factor=2, mode='bilinear')", "F.interpolate(x3[None], (5, 7), mode='bilinear')",
    "F.interpolate(x3[None], (2, 3), mode='bilinear', align_corners=False)",
    "F.interpolate(x3[None], (5, 7), mode='bilinear', align_corners=True)",
    "F.interpolate(x3[None], scale_factor=1.7, mode='bilinear')",
    "F.interpolate(x3[None], scale_factor=1.7, mode='bilinear', recompute_scale_factor=True)",
    "F.interpolate(x3[None].half(), scale_factor=2, mode='bilinear')",
    "F.interpolate(x3[None].double(), (4, 9), mode='bilinear')", "F.interpolate(x3, 9, mode='linear')",
    "F.interpolate(x3[None, None], scale_factor=2)", "F.interpolate(x3[None, None], (3, 4, 5), mode='trilinear')",
    "F.interpolate(x3[None], (1, 1), mode='bilinear', align_corners=True)",
    "F.interpolate(x3, scale_factor=2, mode='bilinear')", "F.interpolate(f, scale_factor=2)", "F.interpolate(x3)",
    "F.interpolate(x3, 5, scale_factor=2)", "F.interpolate(x3, 5, align_corners=True)", "F.interpolate(i3, 5)",
    "F.interpolate(u[None], 5)", "F.interpolate(i3[None], (5, 5), mode='bilinear')", "F.interpolate(x3[None], 0)",
    "F.fold(torch.arange(48.).reshape(1, 12, 4), (3, 3), 2)",
    "F.fold(torch.arange(32.).reshape(1, 8, 4), (4, 4), 2, stride=2)",
    "F.fold(torch.arange(36.).reshape(1, 4, 9), (4, 4), (2, 2))",
    "F.fold(torch.arange(36.).reshape(4, 9), (4, 4), (2, 2))",
    "F.fold(torch.arange(64.).reshape(1, 4, 16), (5, 5), 2, padding=1, stride=2, dilation=2)",
    "F.fold(torch.arange(72.).reshape(1, 12, 6), (3, 4), (2, 3), padding=(0, 1))",
    "F.fold(F.unfold(x3[None], 2, padding=1), (3, 4), 2, padding=1)",
    "F.fold(torch.arange(36.).reshape(1, 4, 9), (5, 4), (2, 2))",
    "F.fold(torch.arange(36.).reshape(1, 4, 9).half(), (4, 4), (2, 2))",
    "[nn.BatchNorm1d(2).state_dict()['num_batches_tracked'], list(nn.BatchNorm1d(2).state_dict())]",
    "list(nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2)).state_dict())",
    "list(nn.BatchNorm1d(2, track_running_stats=False).state_dict())",
    "nn.BatchNorm1d(4, track_running_stats=False).eval()(f)", "nn.BatchNorm1d(4)(f)",
    "(lambda l: (l(f), l(f * 2), l.num_batches_tracked, l.running_mean, l.eval()(f)))(nn.BatchNorm1d(4))",
    "(lambda l: (l(f), l(f * 2), l.running_mean))(nn.BatchNorm1d(4, momentum=None))",
    "setattr(nn.Linear(3, 2), 'weight', 5)", "setattr(nn.Linear(3, 2), 'weight', torch.ones(2, 3))",
    "setattr(nn.Linear(3, 2), 'weight', None)", "setattr(nn.BatchNorm1d(2), 'running_mean', 5)",
    "setattr(nn.BatchNorm1d(2), 'running_mean', torch.ones(2))", "setattr(nn.Sequential(nn.ReLU()), '0', 5)",
    "nn.Linear(3, 2).load_state_dict({'weight': torch.ones(3, 2), 'bias': torch.ones(2)})",
    "nn.Linear(3, 2).load_state_dict({'weight': torch.ones(2, 3)})",
    "nn.Linear(3, 2).load_state_dict({'weight': torch.ones(1, 3)}, strict=False)", "repr(nn.BatchNorm2d(3))",
    "F.binary_cross_entropy_with_logits(f, t.float(), weight=g)",
    "nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2).state_dict()).missing_keys",
    "nn.Linear(2, 2).load_state_dict({'weight': torch.ones(2, 2), 'x': 1}, strict=False)",
    "repr(nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2).state_dict()))", "repr(nn.BatchNorm1d(3, affine=False))",
    "list(nn.BatchNorm1d(3, bias=False).state_dict())", "torch.meshgrid(p, v)", "f.clone().copysign_(g)",
    "f.clone().xlogy_(g)", "f.clone().hypot_(g)", "i.clone().lcm_(k + 1)", "f.clone().true_divide_(2)",
    "i.clone().true_divide_(2)", "k.clone().bitwise_left_shift_(2)", "u.clone().bitwise_right_shift_(1)",
    "f.clone().subtract_(g, alpha=2)", "f.clone().exp2_()", "f.clone().erfc_()", "f.clone().cosh_()",
    "(f / 4).atanh_()", "(f / 4).acos_()", "f.clone().asinh_()", "f.clone().acosh_()", "f.clone().sgn_()",
    "setattr(nn.Linear(2, 2), 'weight', nn.ReLU())", "setattr(nn.Linear(2, 2), 'other', 5)",
    "[len(list((lambda l: [setattr(l, 'bias', None), l][1])(nn.Linear(2, 2)).parameters()))]",
    "torch.hypot(i, i)", "torch.hypot(f, t)", "torch.hypot(f, i)", "torch.fmod(t, t)", "torch.fmod(t, 2)", "torch.fmod(f, t)",
    "F.threshold(t, 0.5, 3)", "F.cosine_similarity(f, x3, -1)", "F.cosine_similarity(f, s, 0)", "torch.trapezoid(t)",
    "torch.trapezoid(f, t)", "torch.trapezoid(n)", "F.pad(t, (1, 1), mode='reflect')",
    "torch.einsum('ij,ij->i', torch.ones(0, 3), torch.ones(1, 3))", "torch.tensordot(u, u[:1, 0], 1)", "s.repeat_interleave(2, 0)",
    "F.smooth_l1_loss(t, f)", "F.mse_loss(t, f)", "F.l1_loss(t, f)", "F.l1_loss(u, i[0, 0], reduction='sum')", "F.prelu(i, i[0, :1])",
    "F.pad(f, (-2, -2), mode='replicate')", "f.diff(0, 5)", "torch.copysign(f, t)", "torch.atan2(i, f)", "torch.xlogy(h, d)")
# --- pools
add("F.max_pool2d(x3, 2, 1, 1)", "F.max_pool2d(x3, (3, 2), (2, 1), (1, 0))", "F.max_pool2d(x3, 2, dilation=2)",
    "F.max_pool2d(x3, 2, dilation=(1, 2), padding=1)", "F.max_pool2d(x3, 2, ceil_mode=True)",
    "F.max_pool2d(x3, 2, 3, 1, ceil_mode=True)",
    "F.max_pool2d(x3, (2, 3), stride=(3, 2), padding=(1, 1), ceil_mode=True)",
    "F.max_pool2d(x3, 2, return_indices=True)", "F.max_pool2d(x3[None], 2, 1, 1, return_indices=True)",
    "F.max_pool2d(-x3, 2, 1, 1, 2, True, True)", "F.max_pool2d(i3, 2)", "F.max_pool2d(i3, 2, padding=1)",
    "F.max_pool2d(i3.int(), 2, 1, 1)", "F.max_pool2d(u[None], 2)", "F.max_pool2d(t[None], 2)", "F.max_pool2d(f, 2)",
    "F.max_pool2d(x3, 2, padding=2)", "F.max_pool2d(x3, 2, 0)", "F.max_pool2d(x3, 0)", "F.max_pool2d(x3[:, :0], 2)",
    "F.max_pool2d(n.reshape(1, 1, 5), (1, 2), 1)", "F.max_pool2d(x3, (3, 4))", "F.max_pool2d(x3, 3, stride=[])",
    "F.max_pool2d(b[None], 2, 1)", "F.max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5)",
    "F.max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5, 2, 2)",
    "F.max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5, 2, 2, ceil_mode=True)",
    "F.max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), (5, 4), (5, 3), (0, 1))",
    "F.max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5, 2, 2, return_indices=True)",
    "F.max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), (10, 12))",
    "F.max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5, 1, 2, 2)", "F.max_pool1d(x3, 2, padding=1)",
    "F.max_pool1d(x3, 2, 2, 1, ceil_mode=True)", "F.max_pool1d(x3, 2, dilation=3)",
    "F.max_pool1d(x3, 3, 2, return_indices=True)", "F.max_pool1d(i3, 2)", "F.max_pool1d(v, 2)",
    "F.max_pool1d(torch.arange(60.).cos().reshape(2, 30), 20, 3, 5)",
    "F.max_pool1d(torch.arange(60.).cos().reshape(2, 30), 28)", "F.max_pool3d(x3[None], 2)",
    "F.max_pool3d(x3[None], 2, 1, 1)", "F.max_pool3d(x3[None, None], (2, 3, 2), return_indices=True)",
    "F.max_pool3d(torch.arange(120.).cos().reshape(1, 5, 4, 6), 3, 2, 1)", "F.avg_pool2d(x3, 2, 1, 1)",
    "F.avg_pool2d(x3, 2, 3, 1, True)", "F.avg_pool2d(x3, 2, 3, 1, True, False)", "F.avg_pool2d(x3, 2, ceil_mode=True)",
    "F.avg_pool2d(x3, 2, ceil_mode=True, count_include_pad=False)",
    "F.avg_pool2d(x3, (2, 3), 1, (1, 0), count_include_pad=False)",
    "F.avg_pool2d(x3, (2, 3), (2, 2), 1, True, divisor_override=5)", "F.avg_pool2d(x3, 2, divisor_override=0)",
    "F.avg_pool2d(i3, 2)", "F.avg_pool2d(i3 - 9, 2, 1, 1)", "F.avg_pool2d(i3.int(), 2)", "F.avg_pool2d(f, 2)",
    "F.avg_pool2d(h[None], 2)", "F.avg_pool2d(d[None], 3, 2, 1)", "F.avg_pool2d(x3[None][:0], 2)",
    "F.avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5)",
    "F.avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5, 2, 2)",
    "F.avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5, 3, 2, True)",
    "F.avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 5, 3, 2, True, False)",
    "F.avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), (5, 4), (5, 3), (0, 1), False, False)",
    "F.avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), (10, 12))",
    "F.avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12).half(), (7, 5), 1)", "F.avg_pool1d(x3, 2, 2, 1)",
    "F.avg_pool1d(x3, 3, 2, 1, True, False)", "F.avg_pool1d(v, 2)",
    "F.avg_pool1d(torch.arange(60.).cos().reshape(2, 30), 20, 3, 5)",
    "F.avg_pool1d(torch.arange(60.).cos().reshape(2, 30), 20, 3, 5, True, False)", "F.avg_pool3d(x3[None], 2)",
    "F.avg_pool3d(x3[None], 2, 1, 1, False, False)",
    "F.avg_pool3d(torch.arange(120.).cos().reshape(1, 5, 4, 6), 3, 2, 1, True)", "F.lp_pool2d(x3, 2, 2)",
    "F.lp_pool2d(x3, 3.0, 2)", "F.lp_pool2d(x3, inf, 2)", "F.lp_pool2d(x3, 1, 2, 1)",
    "F.lp_pool2d(x3, 2, (2, 3), ceil_mode=True)", "F.lp_pool2d(h[None], 2, 2)", "F.lp_pool1d(x3, 2, 2)",
    "F.lp_pool1d(x3.abs(), 4.0, 3, 1)", "F.adaptive_avg_pool2d(x3, 1)", "F.adaptive_avg_pool2d(x3, 2)",
    "F.adaptive_avg_pool2d(x3, (2, 3))", "F.adaptive_avg_pool2d(x3, (5, 7))", "F.adaptive_avg_pool2d(x3, (None, 2))",
    "F.adaptive_avg_pool2d(x3, (0, 2))", "F.adaptive_avg_pool2d(x3, (3, 3))", "F.adaptive_avg_pool2d(x3[None], 3)",
    "F.adaptive_avg_pool2d(h[None], (2, 1))", "F.adaptive_avg_pool2d(i3, 2)", "F.adaptive_avg_pool2d(f, 2)",
    "F.adaptive_avg_pool2d(x3, -1)", "F.adaptive_avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 7)",
    "F.adaptive_avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), (3, 4))",
    "F.adaptive_avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), (5, 5))",
    "F.adaptive_avg_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), (1, 5))", "F.adaptive_avg_pool1d(x3, 3)",
    "F.adaptive_avg_pool1d(f, 1)", "F.adaptive_avg_pool1d(v, 2)", "F.adaptive_avg_pool3d(x3[None], 2)",
    "F.adaptive_avg_pool3d(x3[None], (1, 2, 3))", "F.adaptive_max_pool2d(x3, 1)", "F.adaptive_max_pool2d(x3, 2)",
    "F.adaptive_max_pool2d(x3, (2, 3), True)", "F.adaptive_max_pool2d(x3[None], (5, 3))",
    "F.adaptive_max_pool2d(-x3, (None, 3), return_indices=True)", "F.adaptive_max_pool2d(i3, 2)",
    "F.adaptive_max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), 7, True)",
    "F.adaptive_max_pool2d(torch.arange(120.).cos().reshape(1, 10, 12), (5, 4))", "F.adaptive_max_pool1d(x3, 3, True)",
    "F.adaptive_max_pool1d(f, 2)", "F.adaptive_max_pool3d(x3[None], (2, 2, 3), True)",
    "nn.AdaptiveAvgPool2d((2, 3))(x3)", "nn.AdaptiveMaxPool2d(2)(x3)", "nn.MaxPool1d(2)(x3)", "nn.AvgPool1d(2, 1)(x3)",
    "nn.MaxPool2d(2, 1, 1)(x3)", "nn.MaxPool3d(2)(x3[None])", "nn.AvgPool3d(2)(x3[None])",
    "nn.AdaptiveAvgPool1d(3)(x3)", "nn.AdaptiveAvgPool3d(2)(x3[None])", "nn.LPPool2d(2, 2)(x3)")
