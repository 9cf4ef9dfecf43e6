"""Methods of tensors that store their result in the tensor. Results that are expressions wait to be stored."""
import math

import torch
from torch import _kiln, _tensor
from torch._methods import _into


def clamp_(self, min=None, max=None):
    return _into(self, self.clamp(min, max))


def clamp_min_(self, min):
    return _into(self, self.clamp(min=min))


def clamp_max_(self, max):
    return _into(self, self.clamp(max=max))


def pow_(self, exponent):
    return _into(self, self ** exponent)


def lerp_(self, end, weight):
    return _into(self, self.lerp(end, weight))


def addcmul_(self, tensor1, tensor2, *, value=1):
    return _into(self, self.addcmul(tensor1, tensor2, value=value))


def addcdiv_(self, tensor1, tensor2, *, value=1):
    return _into(self, self.addcdiv(tensor1, tensor2, value=value))


def addmm_(self, mat1, mat2, *, beta=1, alpha=1):
    return _into(self, self.addmm(mat1, mat2, beta=beta, alpha=alpha))


def tril_(self, diagonal=0):
    return _into(self, self.tril(diagonal))


def triu_(self, diagonal=0):
    return _into(self, self.triu(diagonal))


def abs_(self):
    return _into(self, self.abs())


def ceil_(self):
    return _into(self, self.ceil())


def cos_(self):
    return _into(self, self.cos())


def exp_(self):
    return _into(self, self.exp())


def floor_(self):
    return _into(self, self.floor())


def log_(self):
    return _into(self, self.log())


def neg_(self):
    return _into(self, -self)


def reciprocal_(self):
    return _into(self, self.reciprocal())


def relu_(self):
    return _into(self, self.relu())


def round_(self, *, decimals=0):
    return _into(self, self.round(decimals=decimals))


def rsqrt_(self):
    return _into(self, self.rsqrt())


def sigmoid_(self):
    return _into(self, self.sigmoid())


def sin_(self):
    return _into(self, self.sin())


def sqrt_(self):
    return _into(self, self.sqrt())


def square_(self):
    return _into(self, self.square())


def tanh_(self):
    return _into(self, self.tanh())


def trunc_(self):
    return _into(self, self.trunc())


def acos_(self):
    return _into(self, self.acos())


def acosh_(self):
    return _into(self, self.acosh())


def asin_(self):
    return _into(self, self.asin())


def asinh_(self):
    return _into(self, self.asinh())


def atan_(self):
    return _into(self, self.atan())


def atanh_(self):
    return _into(self, self.atanh())


def bitwise_not_(self):
    return _into(self, self.bitwise_not())


def cosh_(self):
    return _into(self, self.cosh())


def erf_(self):
    return _into(self, self.erf())


def erfc_(self):
    return _into(self, self.erfc())


def exp2_(self):
    return _into(self, self.exp2())


def expm1_(self):
    return _into(self, self.expm1())


def frac_(self):
    return _into(self, self.frac())


def log10_(self):
    return _into(self, self.log10())


def log1p_(self):
    return _into(self, self.log1p())


def log2_(self):
    return _into(self, self.log2())


def logical_not_(self):
    return _into(self, self.logical_not())


def sgn_(self):
    return _into(self, self.sgn())


def sign_(self):
    return _into(self, self.sign())


def sinh_(self):
    return _into(self, self.sinh())


def tan_(self):
    return _into(self, self.tan())


def atan2_(self, other):
    return _into(self, self.atan2(other))


def bitwise_and_(self, other):
    return _into(self, self.bitwise_and(other))


def bitwise_left_shift_(self, other):
    return _into(self, self.bitwise_left_shift(other))


def bitwise_or_(self, other):
    return _into(self, self.bitwise_or(other))


def bitwise_right_shift_(self, other):
    return _into(self, self.bitwise_right_shift(other))


def bitwise_xor_(self, other):
    return _into(self, self.bitwise_xor(other))


def copysign_(self, other):
    return _into(self, self.copysign(other))


def eq_(self, other):
    return _into(self, self.eq(other))


def floor_divide_(self, other):
    return _into(self, self.floor_divide(other))


def fmod_(self, other):
    return _into(self, self.fmod(other))


def gcd_(self, other):
    return _into(self, self.gcd(other))


def ge_(self, other):
    return _into(self, self.ge(other))


def gt_(self, other):
    return _into(self, self.gt(other))


def hypot_(self, other):
    return _into(self, self.hypot(other))


def lcm_(self, other):
    return _into(self, self.lcm(other))


def le_(self, other):
    return _into(self, self.le(other))


def logical_and_(self, other):
    return _into(self, self.logical_and(other))


def logical_or_(self, other):
    return _into(self, self.logical_or(other))


def logical_xor_(self, other):
    return _into(self, self.logical_xor(other))


def lt_(self, other):
    return _into(self, self.lt(other))


def multiply_(self, other):
    return _into(self, self.multiply(other))


def ne_(self, other):
    return _into(self, self.ne(other))


def remainder_(self, other):
    return _into(self, self.remainder(other))


def true_divide_(self, other):
    return _into(self, self.true_divide(other))


def xlogy_(self, other):
    return _into(self, self.xlogy(other))


def divide_(self, other, *, rounding_mode=None):
    return _into(self, self.divide(other, rounding_mode=rounding_mode))


def nan_to_num_(self, nan=None, posinf=None, neginf=None):
    return _into(self, self.nan_to_num(nan, posinf, neginf))


def cumsum_(self, dim, *, dtype=None):
    return _into(self, self.cumsum(dim, dtype=dtype))


def cumprod_(self, dim, *, dtype=None):
    return _into(self, self.cumprod(dim, dtype=dtype))


def addmv_(self, mat, vec, *, beta=1, alpha=1):
    return _into(self, self.addmv(mat, vec, beta=beta, alpha=alpha))


def baddbmm_(self, batch1, batch2, *, beta=1, alpha=1):
    return _into(self, self.baddbmm(batch1, batch2, beta=beta, alpha=alpha))


def absolute_(self):
    return _into(self, self.absolute())


def arccos_(self):
    return _into(self, self.arccos())


def arccosh_(self):
    return _into(self, self.arccosh())


def arcsin_(self):
    return _into(self, self.arcsin())


def arcsinh_(self):
    return _into(self, self.arcsinh())


def arctan_(self):
    return _into(self, self.arctan())


def arctanh_(self):
    return _into(self, self.arctanh())


def conj_physical_(self):
    return _into(self, self.conj_physical())


def deg2rad_(self):
    return _into(self, self.deg2rad())


def digamma_(self):
    return _into(self, self.digamma())


def erfinv_(self):
    return _into(self, self.erfinv())


def fix_(self):
    return _into(self, self.fix())


def i0_(self):
    return _into(self, self.i0())


def lgamma_(self):
    return _into(self, self.lgamma())


def negative_(self):
    return _into(self, self.negative())


def rad2deg_(self):
    return _into(self, self.rad2deg())


def sinc_(self):
    return _into(self, self.sinc())


def arctan2_(self, other):
    return _into(self, self.arctan2(other))


def float_power_(self, exponent):
    if self.dtype is not torch.float64:
        raise RuntimeError(f"the base given to float_power_ has dtype {self.dtype} but the operation's result requires "
                           "dtype torch.float64")
    return _into(self, self.float_power(exponent))


def greater_(self, other):
    return _into(self, self.greater(other))


def greater_equal_(self, other):
    return _into(self, self.greater_equal(other))


def heaviside_(self, other):
    return _into(self, self.heaviside(other))


def igamma_(self, other):
    return _into(self, self.igamma(other))


def igammac_(self, other):
    return _into(self, self.igammac(other))


def ldexp_(self, other):
    return _into(self, self.ldexp(other))


def less_(self, other):
    return _into(self, self.less(other))


def less_equal_(self, other):
    return _into(self, self.less_equal(other))


def nextafter_(self, other):
    return _into(self, self.nextafter(other))


def not_equal_(self, other):
    return _into(self, self.not_equal(other))


def logit_(self, eps=None):
    return _into(self, self.logit(eps))


def mvlgamma_(self, p):
    return _into(self, self.mvlgamma(p))


def polygamma_(self, n):
    return _into(self, self.polygamma(n))


def renorm_(self, p, dim, maxnorm):
    return _into(self, self.renorm(p, dim, maxnorm))


def addr_(self, vec1, vec2, *, beta=1, alpha=1):
    return _into(self, self.addr(vec1, vec2, beta=beta, alpha=alpha))


def addbmm_(self, batch1, batch2, *, beta=1, alpha=1):
    return _into(self, self.addbmm(batch1, batch2, beta=beta, alpha=alpha))


def index_reduce_(self, dim, index, source, reduce, *, include_self=True):
    return _into(self, torch.index_reduce(self, dim, index, source, reduce, include_self=include_self))


# --- random elements, by the inverse of a distribution's function: 1 - u is above 0, as u is from 0 to below 1


def _drawn(self, what):
    if not self.is_floating_point():
        raise RuntimeError(f"{what}_() does not apply to tensors of {self.dtype}")
    return _kiln.uniform(self.shape, self)


def cauchy_(self, median=0, sigma=1):
    return self.copy_(median + sigma * torch.tan(math.pi * (_drawn(self, "cauchy") - 0.5)))


def log_normal_(self, mean=1, std=2):
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    _drawn(self, "log_normal")
    return self.copy_((torch.randn(self.shape, device=self.device) * std + mean).exp())


def geometric_(self, p):
    """How many trials until the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    u = _kiln.uniform(self.shape, self)
    return self.copy_((torch.log(1 - u) / math.log1p(-p)).floor() + 1)


# --- on the host, element by element


def _on_host(self, others, what):
    if self.is_cuda:
        raise TypeError(f"{what}() calls a function for each element and is only implemented on CPU tensors; write the "
                        f"function as operations of tensors")
    return [x.expand(self.shape).reshape(-1).tolist() for x in (self,) + others]


def apply_(self, callable):
    elements, = _on_host(self, (), "apply_")
    return self.copy_(torch.tensor([callable(x) for x in elements], dtype=self.dtype).reshape(self.shape))


def map_(self, tensor, callable):
    pairs = _on_host(self, (tensor,), "map_")
    return self.copy_(torch.tensor([callable(x, y) for x, y in zip(*pairs)], dtype=self.dtype).reshape(self.shape))


def map2_(self, x, y, callable):
    triples = _on_host(self, (x, y), "map2_")
    return self.copy_(torch.tensor([callable(a, b, c) for a, b, c in zip(*triples)],
                                   dtype=self.dtype).reshape(self.shape))


# --- other memory


def swapdims_(self, dim0, dim1):
    return _kiln.become(self, self.transpose(dim0, dim1))


def as_strided_(self, size, stride, storage_offset=None):
    return _kiln.become(self, self.as_strided(size, stride, storage_offset))


def resize_(self, *size, memory_format=None):
    """The elements that lie in memory from the tensor's first one on, in another shape: a view of that memory where it
    has as many, else a copy whose other elements are not initialised."""
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    shape = torch.Size(_tensor._rest(size))
    if shape == self.shape:
        return self
    n = math.prod(shape)
    have = _elements_from(self, n)
    if have == n and n > 0:
        return _kiln.become(self, self.as_strided((n,), (1,)).view(shape))
    made = self.new_empty(n)
    if have > 0:
        made[:have] = self.as_strided((have,), (1,))
    return _kiln.become(self, made.view(shape))


def _elements_from(x, most):
    """How many elements its memory has from its first one on, up to `most`."""
    def has(n):
        try:
            x.as_strided((n,), (1,))
        except RuntimeError:
            return False
        return True

    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if has(middle) else (low, middle - 1)
    return low


def resize_as_(self, the_template, *, memory_format=None):
    return resize_(self, the_template.shape)


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """The memory of another tensor."""
    if source is None:
        return _kiln.become(self, self.new_empty(0))
    if not isinstance(source, torch.Tensor):
        raise TypeError(f"set_() takes a tensor, got '{type(source).__name__}': storages are not values of their own")
    if source.dtype != self.dtype:
        raise RuntimeError(f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}")
    if size is not None:
        if stride is None:
            stride = [math.prod(size[d + 1:]) for d in range(len(size))]
        source = source.as_strided(size, stride, storage_offset)
    return _kiln.become(self, source)


def share_memory_(self):
    return self
