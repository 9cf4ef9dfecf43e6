"""Triton's interpreter made what the compiler is, where it is known to differ."""
import ast

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter as I

TORCH = {tl.float16: torch.float16, tl.bfloat16: torch.bfloat16, tl.float32: torch.float32, tl.float64: torch.float64,
         tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2}
MOST = {tl.float8e4nv: 448.0, tl.float8e5: 57344.0}


def _view(data, dtype):
    data = np.ascontiguousarray(data)
    if dtype in (tl.float16, tl.float32, tl.float64): return torch.from_numpy(data)
    return torch.from_numpy(data.view(np.int16 if dtype.primitive_bitwidth == 16 else np.uint8)).view(TORCH[dtype])


def convert(data, source, target, rounding=None):
    if source not in TORCH or target not in TORCH: return original_convert(data, source, target, rounding)
    shape = data.shape
    x = _view(data.reshape(-1), source)
    if target in MOST:
        x = x.to(torch.float32)
        x = x.clamp(-MOST[target], MOST[target])
    x = x.to(TORCH[target])
    if target in (tl.float16, tl.float32, tl.float64): return x.numpy().reshape(shape)
    bits = x.view(torch.int16 if target.primitive_bitwidth == 16 else torch.uint8).numpy()
    return bits.view(np.uint16 if target.primitive_bitwidth == 16 else np.uint8).reshape(shape)


# Sums and products of one bit.
BITS = {np.add: np.logical_xor, np.subtract: np.logical_xor, np.multiply: np.logical_and}
original_convert = I._convert_float


def float_of(handle):
    d = handle.dtype.scalar
    if d == tl.bfloat16 or d in MOST: return convert(handle.data, d, tl.float32)
    return handle.data


def logical(is_and, *values):
    """`and` and `or`: of tensors element by element, of constants as Python's."""
    result = values[0]()
    for value in values[1:]:
        if isinstance(result, tl.tensor):
            s, other = I.interpreter_semantic, value()
            other = s.to_tensor(other)
            result = s.logical_and(result, other) if is_and else s.logical_or(result, other)
        elif bool(result) == is_and: result = value()
    return result


def logical_not(value):
    return I.interpreter_semantic.not_(value) if isinstance(value, tl.tensor) else not value


def apply():
    I._convert_float = convert
    B = I.InterpreterBuilder
    binary, cast = B.binary_op, B.cast_impl

    def binary_op(self, lhs, rhs, op):
        d = lhs.dtype.scalar
        if d == tl.bfloat16:
            out = op(float_of(lhs), float_of(rhs))
            if out.dtype == np.bool_: return I.TensorHandle(out, d)
            return I.TensorHandle(convert(out.astype(np.float32), tl.float32, d), d)
        if lhs.data.dtype == np.bool_ and rhs.data.dtype == np.bool_: op = BITS.get(op, op)
        return binary(self, lhs, rhs, op)

    def cast_impl(self, src, dst):
        s, d = src.dtype.scalar, dst.scalar
        if s in TORCH and d in TORCH: return I.TensorHandle(convert(src.data, s, d), d)
        if s == tl.bfloat16: return cast(self, I.TensorHandle(float_of(src), tl.float32), dst)
        if d == tl.bfloat16:
            return I.TensorHandle(convert(src.data.astype(np.float32), tl.float32, d), d)
        return cast(self, src, dst)

    def dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        x, y, z = float_of(a), float_of(b), float_of(d)
        out = np.matmul(x, y, dtype=z.dtype if z.dtype != np.float16 else np.float32) + z
        if d.dtype.scalar == tl.bfloat16: return I.TensorHandle(convert(out, tl.float32, tl.bfloat16), tl.bfloat16)
        return I.TensorHandle(out.astype(z.dtype), d.dtype.scalar)

    def unary_op(self, arg, op):
        d = arg.dtype.scalar
        if d == tl.bfloat16: return I.TensorHandle(convert(op(float_of(arg)), tl.float32, d), d)
        return I.TensorHandle(op(arg.data), d)

    def fp_to_fp(self, src, dst, rounding):
        return I.TensorHandle(convert(src.data, src.dtype.scalar, dst.scalar, rounding), dst.scalar)

    B.binary_op, B.unary_op, B.cast_impl = binary_op, unary_op, cast_impl
    B.create_fp_to_fp, B.create_dot = fp_to_fp, dot
    B.get_bf16 = lambda self, value: I.TensorHandle(convert(np.array([value], np.float32), tl.float32, tl.bfloat16),
                                                    tl.bfloat16)
    B.create_minnumf = lambda self, l, r: self.binary_op(l, r, np.fmin)
    B.create_maxnumf = lambda self, l, r: self.binary_op(l, r, np.fmax)
    B.create_clampf = lambda self, x, lo, hi, nans: self.binary_op(self.binary_op(x, lo, np.fmax), hi, np.fmin)
    B.create_fma = lambda self, x, y, z: self.binary_op(self.binary_op(x, y, np.multiply), z, np.add)

    cvt = I._implicit_cvt

    def implicit_cvt(arg):
        if isinstance(arg, bool): return tl.tensor(I.TensorHandle(np.array([arg], np.bool_), tl.int1), tl.int1)
        if isinstance(arg, float):
            return tl.tensor(I.TensorHandle(np.array([arg], np.float32), tl.float32), tl.float32)
        return cvt(arg)

    I._implicit_cvt = implicit_cvt

    class Transformer(I.ASTTransformer):
        """The variable of a range is an int32."""

        def visit_For(self, node):
            node = self.generic_visit(node)
            text = ast.unparse(node.iter)
            if isinstance(node.target, ast.Name) and "static_range" not in text and "range" in text:
                name = node.target.id
                node.body.insert(0, ast.parse(f"{name} = interpreter_semantic.to_tensor({name}, False)").body[0])
            return node

        def visit_Assign(self, node):
            node.value = self.visit(node.value)
            return super().visit_Assign(node)

        def visit_BoolOp(self, node):
            node = self.generic_visit(node)
            values = [ast.Lambda(ast.arguments([], [], None, [], [], None, []), v) for v in node.values]
            is_and = ast.Constant(isinstance(node.op, ast.And))
            return ast.Call(ast.Name("kiln_logical", ast.Load()), [is_and, *values], [])

        def visit_UnaryOp(self, node):
            node = self.generic_visit(node)
            if not isinstance(node.op, ast.Not): return node
            return ast.Call(ast.Name("kiln_not", ast.Load()), [node.operand], [])

    I.kiln_logical, I.kiln_not = logical, logical_not
    I.FunctionRewriter.ast_transformer = Transformer()

    def call(self, *args_dev, **kwargs):
        """GridExecutor.__call__ with programs in the order of their numbers."""
        import inspect
        argspec = inspect.getfullargspec(self.fn)
        kwargs = {k: v for k, v in kwargs.items() if k in argspec.args}
        args, kwargs = self._init_args_hst(args_dev, kwargs)
        scope = I._patch_lang(self.fn)
        try:
            args = inspect.getcallargs(self.fn, *args, **kwargs)
            args = {n: a if n in self.constexprs else I._implicit_cvt(a) for n, a in args.items()}
            grid = self.grid + (1, ) * (3 - len(self.grid))
            I.interpreter_builder.set_grid_dim(*grid)
            for z in range(grid[2]):
                for y in range(grid[1]):
                    for x in range(grid[0]):
                        I.interpreter_builder.set_grid_idx(x, y, z)
                        self.fn(**args)
        finally:
            scope.restore()

    I.GridExecutor.__call__ = call
    libdevice()


def libdevice():
    """Functions of libdevice, which the interpreter has no code for, by numpy."""
    import importlib
    import math

    def erf(x): return np.vectorize(math.erf, otypes=[x.dtype])(x)

    unary = {"exp": np.exp, "fast_expf": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(x.dtype.type(10), x),
             "log": np.log, "fast_logf": np.log, "log2": np.log2, "fast_log2f": np.log2, "log1p": np.log1p,
             "log10": np.log10, "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
             "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
             "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf, "erfc": lambda x: 1 - erf(x),
             "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
             "rint": np.rint, "nearbyint": np.rint, "round": lambda x: np.trunc(x + np.copysign(x.dtype.type(0.5), x)),
             "abs": np.abs, "fabs": np.abs, "isnan": np.isnan, "isinf": np.isinf, "isfinited": np.isfinite,
             "finitef": np.isfinite, "signbit": np.signbit, "cbrt": np.cbrt}
    binary = {"pow": np.power, "fast_powf": np.power, "fmod": np.fmod, "atan2": np.arctan2, "copysign": np.copysign,
              "div_rn": np.divide, "fast_dividef": np.divide, "fdiv": np.divide, "hypot": np.hypot}
    logical = {"isnan", "isinf", "isfinited", "finitef", "signbit"}

    def one(f, name):

        def call(x, _semantic=None):
            x = I.interpreter_semantic.to_tensor(x)
            data = float_of(x.handle) if x.dtype.is_floating() else x.handle.data.astype(np.float32)
            with np.errstate(all="ignore"): out = f(data)
            if name in logical:
                return tl.tensor(I.TensorHandle(out.astype(np.int32), tl.int32), of(x, tl.int32))
            t = x.dtype if x.dtype in (tl.float32, tl.float64) else tl.float32
            return tl.tensor(I.TensorHandle(out.astype(np.float64 if t == tl.float64 else np.float32), t), of(x, t))

        return call

    def two(f):

        def call(x, y, _semantic=None):
            s = I.interpreter_semantic
            x, y = s.to_tensor(x), s.to_tensor(y)
            x, y = s.broadcast_impl_value(x, y)
            y = s.cast(y, x.dtype)
            with np.errstate(all="ignore"): out = f(x.handle.data, y.handle.data).astype(x.handle.data.dtype)
            return tl.tensor(I.TensorHandle(out, x.dtype), x.type)

        return call

    def of(x, t): return tl.block_type(t, list(x.shape)) if x.type.is_block() else t

    for place in ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice"):
        module = importlib.import_module(place)
        for name, f in unary.items():
            if hasattr(module, name): setattr(module, name, one(f, name))
        for name, f in binary.items():
            if hasattr(module, name): setattr(module, name, two(f))
