"""kiln.expr: lazy expressions over tensors of torch, arrays of numpy and what else has DLPack."""
from __future__ import annotations

import math
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from kiln import _kiln, _memory

_Node = _kiln.Expr
_KINDS = {name: (arity, kind) for name, arity, kind in _kiln.expr_ops()}


class Plan:
    """The kernels of an expression. str() of it is the table that `%plan` shows.

    kernels: (name, source) of each, sources being complete files in the Triton language. script: all of it as a Python
    program. svg: a drawing.
    """

    def __init__(self, text: str, script: str, svg: str, kernels: list[tuple[str, str]]) -> None:
        self.text, self.script, self.svg, self.kernels = text, script, svg, kernels

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<kiln.Plan of {len(self.kernels)} kernel{'s' * (len(self.kernels) != 1)}>\n{self.text}"

    def _repr_svg_(self) -> str:
        return self.svg


class Expr:
    """Operations on tensors that are not computed yet; `kiln.expr(tensor)` makes one. eval() computes it.

    Dtypes, shapes and values are torch's (docs/expressions.md). Operands are expressions, tensors and numbers. The
    memory of its tensors is read by eval(): what changes in it until then counts. Gradients do not pass through.
    """
    __slots__ = ("_node", "_operands", "_tensor")
    __array_ufunc__ = None  # array + e is e's

    def __init__(self, node: Any, operands: tuple = (), tensor: Any = None) -> None:
        if not isinstance(node, _Node): raise TypeError("kiln.expr(tensor) makes an expression")
        self._node, self._operands, self._tensor = node, operands, tensor

    # --- what it is

    @property
    def dtype(self) -> str:
        """As torch names it: 'float32'."""
        return self._node.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._node.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device(self) -> str:
        """'cpu', 'cuda:0'."""
        return self._node.device

    @property
    def operations(self) -> int:
        """How many operations it has."""
        return self._node.operations

    def numel(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        return self.shape if dim is None else self.shape[self._axis(dim)]

    def dim(self) -> int:
        """How many dimensions it has."""
        return self.ndim

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        what = "a tensor" if self._tensor is not None else f"{(n := self.operations)} operation{'s' * (n != 1)}"
        return f"kiln.Expr({self.dtype}[{sizes}] {self.device}, {what})"

    def __len__(self) -> int:
        if not self.shape: raise TypeError("len() of an expression without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Expr]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value before it is computed: eval() gives a tensor, which may")

    def __array__(self, *args: Any, **keywords: Any) -> Any:  # else numpy would take it for a list of expressions
        raise TypeError("an expression is no array before it is computed: eval() gives one")

    # --- what it gives

    def eval(self, out: Any = None, *, variant: str = "fused") -> Any:
        """Computes it, and gives a tensor of torch where one of its tensors is torch's, else an array of numpy.

        Runs on the device of its tensors, on torch's current stream, without waiting for a GPU. out: a tensor to write
        instead, of the dtype and shape, which may be one that the expression reads. variant: 'fused' or 'unfused'.
        """
        leaves = self._leaves()
        if out is not None: self._check_out(out)
        memory = _memory.of([e._tensor for e in leaves] if out is None else [out])
        node = self._node
        # A view moves nothing: its elements get memory of their own as an operation's would.
        if self._tensor is not None or _is_view(self): node = _Node.apply("cast", [node], {"dtype": self.dtype})
        if 0 in self.shape or any(0 in e.shape for e in leaves): return self._eval_empty(memory, out, leaves)
        program = _kiln.ExprProgram([e._node for e in leaves], [node], variant)
        tensors = [e._tensor for e in leaves]
        (_, dtype, shape, strides, offset, _), = program.outputs
        elements = program.buffers[0] // _ITEM_BYTES[dtype]
        row_major = offset == 0 and strides == _memory.row_major(shape) and elements == self.numel()
        if out is not None and row_major and _may_write(out, tensors):
            result = buffer = out
        elif row_major:
            buffer = result = _call(memory.empty(shape, strides, dtype, self.device))
        else:
            buffer = _call(memory.empty((elements, ), (1, ), dtype, self.device))
            result = memory.view(buffer, shape, strides, offset)
        workspace = None
        if program.workspace: workspace = _call(memory.empty((program.workspace, ), (1, ), "uint8", self.device))
        program.launch(tensors, [buffer], workspace)
        if out is None: return result
        if result is not out: memory.copy(out, result)
        return out

    def plan(self, variant: str = "fused") -> Plan:
        """The kernels that compute it: what `%plan` shows at the prompt."""
        return Plan(*self._node.plan(variant))

    def _leaves(self) -> list[Expr]:
        found, seen, left = [], set(), [self]
        while left:
            e = left.pop()
            if id(e) in seen: continue
            seen.add(id(e))
            if e._tensor is not None: found.append(e)
            left.extend(e._operands)
        return found

    def _check_out(self, out: Any) -> None:
        given = _Node.leaf(out)
        if (given.dtype, given.shape, given.device) != (self.dtype, self.shape, self.device):
            raise ValueError(f"eval(out=…) of {self.dtype}{list(self.shape)} on {self.device} got "
                             f"{given.dtype}{list(given.shape)} on {given.device}")
        if getattr(getattr(out, "flags", None), "writeable", True) is False:
            raise ValueError("eval(out=…) got an array that may not be written to")

    def _eval_empty(self, memory: Any, out: Any, leaves: list[Expr]) -> Any:
        if 0 not in self.shape:
            raise _kiln.Error(f"{self!r} reads a tensor without elements, of which there is no kernel")
        if out is not None: return out
        return _call(memory.empty(self.shape, _memory.row_major(self.shape), self.dtype, self.device))

    # --- operations that say more than their operands

    def to(self, dtype: Any) -> Expr:
        """Converted to a dtype: a name, or torch's or numpy's object."""
        return self if (name := _dtype_name(dtype)) == self.dtype else _apply("cast", (self, ), dtype=name)

    def float(self) -> Expr:
        """In float32."""
        return self.to("float32")

    def matmul(self, other: Any, *, tf32: bool = False) -> Expr:
        """The matrix product, batched and broadcast as torch's. tf32: float32 may be rounded to 10 bits of mantissa."""
        return _apply("matmul", (self, other), tf32=tf32)

    def layer_norm(self, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, dims: int = 1) -> Expr:
        """Normalised along the last `dims` dimensions, whose shape weight and bias have."""
        if bias is not None and weight is None: raise ValueError("layer_norm with a bias needs a weight")
        return _apply("layer_norm", [t for t in (self, weight, bias) if t is not None], axes=list(range(-dims, 0)),
                      eps=eps)

    def rms_norm(self, weight: Any = None, *, eps: float = 1e-5, dims: int = 1) -> Expr:
        """Divided by the root mean square along the last `dims` dimensions, whose shape weight has."""
        return _apply("rms_norm", [t for t in (self, weight) if t is not None], axes=list(range(-dims, 0)), eps=eps)

    def clamp(self, min: Any = None, max: Any = None) -> Expr:
        """Each element between two bounds, of which one may be None."""
        if min is None and max is None: raise TypeError("clamp takes min, max or both")
        if min is None: return self.minimum(max)
        if max is None: return self.maximum(min)
        return _apply("clamp", (self, min, max))

    def amax(self, dim: Any = None, keepdim: bool = False) -> Expr:
        """The largest element along dim: an int, several, or None for all."""
        return self.max(dim, keepdim)

    def amin(self, dim: Any = None, keepdim: bool = False) -> Expr:
        """The smallest element along dim: an int, several, or None for all."""
        return self.min(dim, keepdim)

    def var(self, dim: Any = None, keepdim: bool = False, *, correction: float = 1) -> Expr:
        """The variance along dimensions (None: all), over n - correction."""
        return _apply("var", (self, ), axes=_dims(dim), keepdim=keepdim, correction=correction)

    def std(self, dim: Any = None, keepdim: bool = False, *, correction: float = 1) -> Expr:
        """The root of var()."""
        return self.var(dim, keepdim, correction=correction).sqrt()

    def reshape(self, *shape: Any) -> Expr:
        """The same elements in another shape, of which one size may be -1."""
        return _apply("reshape", (self, ), shape=_ints(shape))

    view = reshape

    def expand(self, *shape: Any) -> Expr:
        """Dimensions of size 1 repeated to these sizes; -1 keeps one."""
        return _apply("expand", (self, ), shape=_ints(shape))

    def permute(self, *dims: Any) -> Expr:
        """The dimensions in another order."""
        return _apply("permute", (self, ), axes=_ints(dims))

    def transpose(self, a: int, b: int) -> Expr:
        """Two dimensions exchanged."""
        order = list(range(self.ndim))
        a, b = self._axis(a), self._axis(b)
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    @property
    def T(self) -> Expr:
        return self.permute(*reversed(range(self.ndim)))

    @property
    def mT(self) -> Expr:
        return self.transpose(-2, -1)

    def unsqueeze(self, dim: int) -> Expr:
        """With a dimension of size 1 more, which is the given one of the result."""
        at = dim + self.ndim + 1 if dim < 0 else dim
        if not 0 <= at <= self.ndim:
            raise IndexError(f"unsqueeze: dimension {dim} of a result that has {self.ndim + 1}")
        return self.reshape(*self.shape[:at], 1, *self.shape[at:])

    def squeeze(self, dim: int | None = None) -> Expr:
        """Without a dimension if its size is 1; None: without all such."""
        dims = range(self.ndim) if dim is None else [self._axis(dim)]
        return self.reshape([n for d, n in enumerate(self.shape) if d not in dims or n != 1])

    def flatten(self, start: int = 0, end: int = -1) -> Expr:
        """Dimensions from start to end as one."""
        if not self.shape: return self.reshape(1)
        a, b = self._axis(start), self._axis(end)
        return self.reshape(*self.shape[:a], math.prod(self.shape[a:b + 1]), *self.shape[b + 1:])

    def gather(self, dim: int, index: Any) -> Expr:
        """Element [i][j]… of the result is that at index[i][j]… along `dim`, as torch.gather's."""
        at, axis = as_expr(index), self._axis(dim)
        if at.ndim != self.ndim: raise ValueError(f"gather: an index of {list(at.shape)} for {list(self.shape)}")
        places, axes = [], []
        for d in range(self.ndim):
            if d == axis:
                places.append(at)
            elif at.shape[d] == self.shape[d]:
                continue
            else:
                places.append(_arange(at.shape[d], self.ndim, d, self))
            axes.append(d)
        return _apply("take", (self, *places), axes=axes)

    def index_select(self, dim: int, index: Any) -> Expr:
        """The slices along `dim` that a tensor of integers names."""
        at, axis = as_expr(index), self._axis(dim)
        if at.ndim > 1: raise ValueError(f"index_select: an index of {list(at.shape)} has more than one dimension")
        sizes = [1] * self.ndim
        sizes[axis] = at.numel()
        return _apply("take", (self, at.reshape(sizes)), axes=[axis])

    def flip(self, *dims: Any) -> Expr:
        """The elements of these dimensions in reverse."""
        out = self
        for d in _ints(dims):
            axis = self._axis(d)
            places = _arange(self.shape[axis], self.ndim, axis, self)
            out = _apply("take", (out, self.shape[axis] - 1 - places), axes=[axis], any_outside=True)
        return out

    @staticmethod
    def cat(parts: Sequence[Any], dim: int = 0) -> Expr:
        """Tensors one after the other along a dimension."""
        return _cat([as_expr(p) for p in parts], dim)

    @staticmethod
    def stack(parts: Sequence[Any], dim: int = 0) -> Expr:
        """Tensors of one shape along a new dimension."""
        return _cat([as_expr(p).unsqueeze(dim) for p in parts], dim)

    def __getitem__(self, index: Any) -> Expr:
        return _index(self, index if isinstance(index, tuple) else (index, ))

    def __matmul__(self, other: Any) -> Expr:
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> Expr:
        return as_expr(other).matmul(self)

    def __pos__(self) -> Expr:
        return self

    if TYPE_CHECKING:  # what the table of operations gives below
        def add(self, other: Any) -> Expr: ...
        def sub(self, other: Any) -> Expr: ...
        def mul(self, other: Any) -> Expr: ...
        def div(self, other: Any) -> Expr: ...
        def floor_div(self, other: Any) -> Expr: ...
        def mod(self, other: Any) -> Expr: ...
        def pow(self, other: Any) -> Expr: ...
        def neg(self) -> Expr: ...
        def abs(self) -> Expr: ...
        def reciprocal(self) -> Expr: ...
        def maximum(self, other: Any) -> Expr: ...
        def minimum(self, other: Any) -> Expr: ...
        def eq(self, other: Any) -> Expr: ...
        def ne(self, other: Any) -> Expr: ...
        def lt(self, other: Any) -> Expr: ...
        def le(self, other: Any) -> Expr: ...
        def gt(self, other: Any) -> Expr: ...
        def ge(self, other: Any) -> Expr: ...
        def logical_and(self, other: Any) -> Expr: ...
        def logical_or(self, other: Any) -> Expr: ...
        def logical_not(self) -> Expr: ...
        def bitwise_and(self, other: Any) -> Expr: ...
        def bitwise_or(self, other: Any) -> Expr: ...
        def bitwise_xor(self, other: Any) -> Expr: ...
        def bitwise_not(self) -> Expr: ...
        def shift_left(self, other: Any) -> Expr: ...
        def shift_right(self, other: Any) -> Expr: ...
        def where(self, yes: Any, no: Any) -> Expr: ...
        def isnan(self) -> Expr: ...
        def exp(self) -> Expr: ...
        def exp2(self) -> Expr: ...
        def expm1(self) -> Expr: ...
        def log(self) -> Expr: ...
        def log2(self) -> Expr: ...
        def log1p(self) -> Expr: ...
        def sqrt(self) -> Expr: ...
        def rsqrt(self) -> Expr: ...
        def sin(self) -> Expr: ...
        def cos(self) -> Expr: ...
        def tanh(self) -> Expr: ...
        def erf(self) -> Expr: ...
        def sigmoid(self) -> Expr: ...
        def relu(self) -> Expr: ...
        def silu(self) -> Expr: ...
        def gelu(self) -> Expr: ...
        def gelu_tanh(self) -> Expr: ...
        def floor(self) -> Expr: ...
        def ceil(self) -> Expr: ...
        def round(self) -> Expr: ...
        def trunc(self) -> Expr: ...
        def sum(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr: ...
        def max(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr: ...
        def min(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr: ...
        def mean(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr: ...
        def argmax(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr: ...
        def argmin(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr: ...
        def cumsum(self, dim: int = -1, *, dtype: Any = None) -> Expr: ...
        def cumprod(self, dim: int = -1, *, dtype: Any = None) -> Expr: ...
        def cummax(self, dim: int = -1, *, dtype: Any = None) -> Expr: ...
        def cummin(self, dim: int = -1, *, dtype: Any = None) -> Expr: ...
        def softmax(self, dim: int = -1, *, dtype: Any = None) -> Expr: ...
        def log_softmax(self, dim: int = -1, *, dtype: Any = None) -> Expr: ...
        def __add__(self, other: Any) -> Expr: ...
        def __radd__(self, other: Any) -> Expr: ...
        def __sub__(self, other: Any) -> Expr: ...
        def __rsub__(self, other: Any) -> Expr: ...
        def __mul__(self, other: Any) -> Expr: ...
        def __rmul__(self, other: Any) -> Expr: ...
        def __truediv__(self, other: Any) -> Expr: ...
        def __rtruediv__(self, other: Any) -> Expr: ...
        def __floordiv__(self, other: Any) -> Expr: ...
        def __rfloordiv__(self, other: Any) -> Expr: ...
        def __mod__(self, other: Any) -> Expr: ...
        def __rmod__(self, other: Any) -> Expr: ...
        def __pow__(self, other: Any) -> Expr: ...
        def __rpow__(self, other: Any) -> Expr: ...
        def __and__(self, other: Any) -> Expr: ...
        def __rand__(self, other: Any) -> Expr: ...
        def __or__(self, other: Any) -> Expr: ...
        def __ror__(self, other: Any) -> Expr: ...
        def __xor__(self, other: Any) -> Expr: ...
        def __rxor__(self, other: Any) -> Expr: ...
        def __lshift__(self, other: Any) -> Expr: ...
        def __rlshift__(self, other: Any) -> Expr: ...
        def __rshift__(self, other: Any) -> Expr: ...
        def __rrshift__(self, other: Any) -> Expr: ...
        def __lt__(self, other: Any) -> Expr: ...
        def __le__(self, other: Any) -> Expr: ...
        def __gt__(self, other: Any) -> Expr: ...
        def __ge__(self, other: Any) -> Expr: ...
        def __neg__(self) -> Expr: ...
        def __abs__(self) -> Expr: ...
        def __invert__(self) -> Expr: ...

    def _axis(self, dim: int) -> int:
        if not -self.ndim <= dim < self.ndim: raise IndexError(f"dimension {dim} of an expression that has {self.ndim}")
        return dim % self.ndim


def expr(tensor: Any) -> Expr:
    """A lazy expression of a tensor's memory, which is neither copied nor converted, and is kept alive.

    tensor: of torch or numpy, or with `__dlpack__` or `__cuda_array_interface__`. Strides are respected. See Expr.
    """
    if isinstance(tensor, Expr): return tensor
    if (is_neg := getattr(tensor, "is_neg", None)) and is_neg(): tensor = tensor.resolve_neg()
    return Expr(_Node.leaf(tensor), (), tensor)


def as_expr(value: Any) -> Expr:
    """An operand: an expression, a number or a tensor."""
    if isinstance(value, Expr): return value
    if isinstance(value, (bool, int, float)): return Expr(_Node.number(value))
    if type(value).__module__ == "numpy" and not hasattr(value, "__dlpack__") and hasattr(value, "item"):
        return as_expr(value.item())  # a scalar of numpy's, which torch takes for a number too
    return expr(value)


def _apply(op: str, operands: Sequence[Any], **attributes: Any) -> Expr:
    parts = tuple([as_expr(o) for o in operands])
    return Expr(_Node.apply(op, [p._node for p in parts], attributes), parts)


_ITEM_BYTES = {"bool": 1, "int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "int16": 2, "uint16": 2,
               "float16": 2, "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8,
               "float64": 8}


def _dtype_name(dtype: Any) -> str:
    if isinstance(dtype, str): return dtype
    name = getattr(dtype, "__name__", None) or str(dtype)
    return name.rpartition(".")[2].rstrip("_")


def _ints(given: Sequence[Any]) -> list[int]:
    return list(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else list(given)


def _dims(dim: Any) -> list[int]:
    if dim is None: return []
    return list(dim) if isinstance(dim, (tuple, list)) else [dim]


def _call(allocation: _memory.Allocation) -> Any:
    return allocation[0](*allocation[1])


def _is_view(e: Expr) -> bool:
    return bool(e._operands) and e.operations > 0 and e._node.is_view


def _may_write(out: Any, tensors: list[Any]) -> bool:
    """Row-major, aligned as kernels want results, and apart from what is read."""
    return _kiln.is_apart(out, tensors)


def _arange(n: int, rank: int, dim: int, beside: Expr) -> Expr:
    """0, 1, … n - 1 along a dimension."""
    sizes = [1] * rank
    sizes[dim] = n
    number = -1 if beside.device == "cpu" else int(beside.device.partition(":")[2] or 0)
    return Expr(_Node.iota(n, "int32" if n < 2**30 else "int64", number)).reshape(sizes)


def _cat(parts: list[Expr], dim: int) -> Expr:
    if not parts: raise ValueError("cat of no tensors")
    parts = [p for p in parts if p.shape != (0, )] or parts[:1]  # as in torch, which goes with any
    axis, rank = parts[0]._axis(dim), parts[0].ndim
    for p in parts:
        if [n for d, n in enumerate(p.shape) if d != axis] != [n for d, n in enumerate(parts[0].shape) if d != axis]:
            raise ValueError(f"cat along {dim} of {list(parts[0].shape)} and {list(p.shape)}")
    if len(parts) == 1: return parts[0]
    total = sum(p.shape[axis] for p in parts)
    places, out, end = _arange(total, rank, axis, parts[0]), None, total
    for p in reversed(parts):
        start = end - p.shape[axis]
        here = _apply("take", (p, places - start if start else places), axes=[axis], any_outside=True)
        out = here if out is None else _apply("where", (places < end, here, out))
        end = start
    return out


def _index(e: Expr, index: tuple) -> Expr:
    """Integers, slices with positive steps, None and ...; and tensors of integers, in neighbouring dimensions."""
    if sum(1 for i in index if i is Ellipsis) > 1: raise IndexError("an index has one ... at most")
    for i in index:
        # Not 0 and 1, which they are equal to: they choose all or nothing elsewhere.
        if isinstance(i, (bool, float)) or type(i).__name__ in ("bool_", "bool") and not getattr(i, "shape", ()):
            raise IndexError(f"{i!r} is no index of an expression")
    given = sum(1 for i in index if i is not None and i is not Ellipsis)
    if given > e.ndim: raise IndexError(f"{given} indices of an expression that has {e.ndim} dimensions")
    full: list[Any] = []
    for i in index:
        if isinstance(i, EllipsisType):
            full += [slice(None)] * (e.ndim - given)
        else:
            full.append(i)
    full += [slice(None)] * (e.ndim - sum(1 for i in full if i is not None))
    starts, sizes, steps, shape, looked_up = [], [], [], [], []
    dim = 0
    for i in full:
        if i is None:
            shape.append(1)
            continue
        n = e.shape[dim]
        if isinstance(i, slice):
            start, stop, step = i.indices(n)
            if step < 0: raise ValueError("a slice with a negative step; flip() turns a dimension around")
            count = max(0, -(-(stop - start) // step))
            starts.append(start if count else 0), steps.append(step), sizes.append(count), shape.append(count)
        elif hasattr(i, "__index__") and not hasattr(i, "__len__"):  # tensors have both, numpy's integers a shape
            at = i.__index__()
            if not -n <= at < n: raise IndexError(f"index {at} of a dimension that has {n}")
            starts.append(at % n), steps.append(1), sizes.append(1)
        else:
            looked_up.append((len(shape), as_expr(i)))
            starts.append(0), steps.append(1), sizes.append(n), shape.append(n)
        dim += 1
    out = e
    if sizes != list(e.shape) or any(starts) or any(s != 1 for s in steps):
        out = _apply("slice", (e, ), starts=starts, steps=steps, shape=sizes)
    if tuple(shape) != out.shape: out = out.reshape(shape)
    if not looked_up: return out
    axes = [axis for axis, _ in looked_up]
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise IndexError("tensors that index dimensions with others in between")
    # The tensors' own dimensions come where they stand, behind as many ones as the dimensions in front.
    rank = max(t.ndim for _, t in looked_up)
    lead, rest = shape[:axes[0]], shape[axes[-1] + 1:]
    extra = rank - len(axes)
    if extra > 0: out = out.reshape(*lead, *[1] * extra, *shape[axes[0]:])
    places = [t.reshape(*[1] * max(0, len(axes) - rank), *t.shape, *[1] * len(rest)) for _, t in looked_up]
    taken = _apply("take", (out, *places), axes=[a + max(0, extra) for a in axes])
    if extra >= 0: return taken
    return taken.reshape(*lead, *taken.shape[len(lead) - extra:])


def _elementwise(op: str, arity: int) -> Callable[..., Expr]:

    def method(self: Expr, *others: Any) -> Expr:
        if len(others) != arity - 1:
            raise TypeError(f"{op} takes {arity} operand{'s' * (arity != 1)}, got {len(others) + 1}")
        return _apply(op, (self, *others))

    method.__name__, method.__qualname__ = op, f"Expr.{op}"
    method.__doc__ = f"{op} of {'each element' if arity == 1 else 'elements, broadcast'}, with torch's promotion."
    return method


def _reduction(op: str) -> Callable[..., Expr]:

    def method(self: Expr, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
        more = {} if dtype is None else {"dtype": _dtype_name(dtype)}
        return _apply(op, (self, ), axes=_dims(dim), keepdim=keepdim, **more)

    method.__name__, method.__qualname__ = op, f"Expr.{op}"
    method.__doc__ = f"{op} along dim: an int, several, or None for all."
    return method


def _along(op: str) -> Callable[..., Expr]:

    def method(self: Expr, dim: int = -1, *, dtype: Any = None) -> Expr:
        more = {} if dtype is None else {"dtype": _dtype_name(dtype)}
        return _apply(op, (self, ), axes=[dim], **more)

    method.__name__, method.__qualname__ = op, f"Expr.{op}"
    method.__doc__ = f"{op} along one dimension."
    return method


# The table of operations (expr_op.def) makes the methods that need nothing but their operands or a dimension.
for _name, (_arity, _kind) in _KINDS.items():
    if hasattr(Expr, _name): continue
    if _kind == "pointwise" and _name not in ("cast", "random_word"): setattr(Expr, _name, _elementwise(_name, _arity))
    if _kind == "reduce": setattr(Expr, _name, _reduction(_name))
    if _kind == "row": setattr(Expr, _name, _along(_name))


def _operator(op: str, reflected: bool) -> Callable[[Expr, Any], Expr]:

    def method(self: Expr, other: Any) -> Expr:
        try:
            there = as_expr(other)
        except TypeError:
            # What is an array has no better answer: the error says what is wrong with it.
            if hasattr(type(other), "__dlpack__") or hasattr(type(other), "__array_interface__"): raise
            return NotImplemented
        return _apply(op, (there, self) if reflected else (self, there))

    return method


_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_div", "mod": "mod",
           "pow": "pow", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "shift_left",
           "rshift": "shift_right"}
for _name, _op in _BINARY.items():
    setattr(Expr, f"__{_name}__", _operator(_op, False))
    setattr(Expr, f"__r{_name}__", _operator(_op, True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"): setattr(Expr, f"__{_name}__", _operator(_name, False))
Expr.__hash__ = object.__hash__  # type: ignore[method-assign]
for _name, _op in {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}.items():
    setattr(Expr, f"__{_name}__", _elementwise(_op, 1))
