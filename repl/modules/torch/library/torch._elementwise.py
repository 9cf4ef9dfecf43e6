"""Functions of tensors that are methods too, element by element, made of torch's others. What stays one expression is
marked `lazily`."""
import torch
from torch import _kiln, _tape
from torch._tensor import _common, _factor, _floats, _needs_tensor, _needs_tensors, _of_floats, _wide

lazily = _kiln.lazily


@lazily
def lerp(input, end, weight):
    if input.dtype != end.dtype or (isinstance(weight, torch.Tensor) and weight.dtype != input.dtype):
        raise RuntimeError("lerp() takes tensors of one dtype")
    _of_floats(input, "lerp")
    a, b = _wide(input), _wide(end)
    if isinstance(weight, torch.Tensor):
        w = _wide(weight)
        out = torch.where(w.abs() < 0.5, a + w * (b - a), b - (b - a) * (1 - w))  # meets both ends exactly
    else:
        out = a + weight * (b - a) if abs(weight) < 0.5 else b - (b - a) * (1 - weight)
    return out.to(input.dtype)


@lazily
def addcmul(input, tensor1, tensor2, *, value=1):
    dtype = _common(input, tensor1, tensor2)
    value = _factor(value, dtype)
    product = _wide(tensor1) * _wide(tensor2)
    return (_wide(input) + (product if value == 1 else product * value)).to(dtype)


@lazily
def addcdiv(input, tensor1, tensor2, *, value=1):
    if not tensor1.is_floating_point() and not tensor2.is_floating_point():
        raise RuntimeError("addcdiv() of integers is not supported: convert one to floats")
    dtype = _common(input, tensor1, tensor2)
    quotient = _wide(tensor1) / _wide(tensor2)
    return (_wide(input) + (quotient if value == 1 else quotient * value)).to(dtype)


def _operand(input, other):
    """The first of two operands: a tensor where neither is one."""
    both = not isinstance(input, torch.Tensor) and not isinstance(other, torch.Tensor)
    return torch.tensor(input) if both else input


def _needs_one(input, other, function):
    if not isinstance(other, torch.Tensor):
        _needs_tensor(input, function)


def logical_xor(input, other):
    _needs_tensors("logical_xor", input, other)
    return (input != 0) != (other != 0)


def bitwise_and(input, other):
    _needs_one(input, other, "bitwise_and")
    return input & other


def bitwise_or(input, other):
    _needs_one(input, other, "bitwise_or")
    return input | other


def bitwise_xor(input, other):
    _needs_one(input, other, "bitwise_xor")
    return input ^ other


def bitwise_not(input):
    return ~input


def bitwise_left_shift(input, other):
    _needs_one(input, other, "bitwise_left_shift")
    return input << other


def bitwise_right_shift(input, other):
    _needs_one(input, other, "bitwise_right_shift")
    return input >> other


def floor_divide(input, other):
    return _operand(input, other) // other


def remainder(input, other):
    _needs_one(input, other, "remainder")
    return input % other


def fmod(input, other):
    _needs_tensor(input, "fmod")
    dtype = torch.result_type(input, other)
    if dtype is torch.bool:
        raise NotImplementedError("fmod() does not apply to tensors of bool")
    input, other = [x.to(dtype) if isinstance(x, torch.Tensor) else x for x in (input, other)]
    if not isinstance(input, torch.Tensor):
        input = other.new_full((), input)
    if not isinstance(other, torch.Tensor):
        return _tape.with_rule(lambda x: _fmod(x, other), (input,), lambda g, x: (g,))
    return _tape.with_rule(_fmod, (input, other),
                           lambda g, x, y: (g.sum_to_size(x.shape), (-g * (x / y).trunc()).sum_to_size(y.shape)))


@lazily
def _fmod(input, other):
    r = torch.abs(input) % torch.abs(other) if isinstance(other, torch.Tensor) else torch.abs(input) % abs(other)
    return torch.where(input < 0, -r, r) if r.dtype != torch.uint8 else r


def true_divide(input, other):
    return _operand(input, other) / other


def divide(input, other, *, rounding_mode=None):
    if rounding_mode is None:
        return input / other
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"div(rounding_mode={rounding_mode!r}): it is None, 'trunc' or 'floor'")
    tensors = [x for x in (input, other) if isinstance(x, torch.Tensor)]
    if _kiln.records(*tensors):  # a step: its gradient is zero
        steps = divide(*[x.detach() if isinstance(x, torch.Tensor) else x for x in (input, other)],
                       rounding_mode=rounding_mode)
        return _tape.with_rule(lambda *_: steps, tensors, lambda g, *xs: [torch.zeros_like(x) for x in xs])
    if rounding_mode == "floor":
        return input // other
    if isinstance(other, torch.Tensor) or isinstance(input, torch.Tensor):
        down = input // other
        exact = input - down * other == 0  # else one more, toward zero
        return torch.where((down < 0) & ~exact, down + 1, down) if not (input / other).dtype == (input + other).dtype else (
            (input / other).trunc())
    return input


def subtract(input, other):
    return _operand(input, other) - other


def multiply(input, other):
    return _operand(input, other) * other


def negative(input):
    return -input


def positive(input):
    if input.dtype is torch.bool:
        raise NotImplementedError("positive() does not apply to tensors of bool")
    return input


def absolute(input):
    return input.abs()


def greater(input, other):
    return input > other


def greater_equal(input, other):
    return input >= other


def less(input, other):
    return input < other


def less_equal(input, other):
    return input <= other


def not_equal(input, other):
    return input != other


def clamp_min(input, min):
    return input.clamp(min=min)


def clamp_max(input, max):
    return input.clamp(max=max)


@lazily
def tan(input):
    x = _wide(_floats(input))
    return (x.sin() / x.cos()).to(_floats(input).dtype)


def _odd(x, y):
    """y of |x| with the sign of x, and zeros as they are."""
    return torch.where(x < 0, -y, torch.where(x == 0, x, y))


@lazily
def sinh(input):
    x = _wide(_floats(input))
    e = x.abs().expm1()
    y = torch.where(x.abs() > 80, ((x.abs() * 0.5).exp() * 0.5) * (x.abs() * 0.5).exp(), 0.5 * (e + e / (e + 1)))
    return _odd(x, y).to(_floats(input).dtype)


@lazily
def cosh(input):
    x = _wide(_floats(input)).abs()
    e = (x * 0.5).exp()  # by halves: exp(x) would overflow before cosh does
    return (0.5 * e * e + 0.5 / e / e).to(_floats(input).dtype)


def _arc_to_1(a):
    """The arc tangent from 0 to 1: a rational approximation up to 0.66 (Cephes), and what is above brought there."""
    near = a <= 0.66
    t = torch.where(near, a, (a - 1) / (a + 1))
    z = t * t
    p = (((-0.8750608600031904 * z - 16.15753718733365) * z - 75.00855792314705) * z - 122.88666844901361) * z
    q = ((((z + 24.858464901423062) * z + 165.02700983169885) * z + 432.88106049129027) * z + 485.3903996359137) * z
    y = t + t * (z * (p - 64.85021904942025) / (q + 194.5506571482614))
    return torch.where(near, y, y + 0.7853981633974483)


def _arc(a):
    """From 0 on."""
    r = _arc_to_1(torch.where(a > 1, 1 / a, a))
    return torch.where(a > 1, 1.5707963267948966 - r, r)


@lazily
def atan(input):
    x = _wide(_floats(input))
    return _odd(x, _arc(x.abs())).to(_floats(input).dtype)


@lazily
def asin(input):
    x = _wide(_floats(input))
    a = x.abs()
    return _odd(x, _arc(a / ((1 - a) * (1 + a)).sqrt())).to(_floats(input).dtype)  # 1 - a * a would lose digits near 1


@lazily
def acos(input):
    x = _wide(_floats(input))
    return (2 * _arc(((1 - x) / (1 + x)).sqrt())).to(_floats(input).dtype)


@lazily
def asinh(input):
    x = _wide(_floats(input))
    a = x.abs()
    y = (a + a * a / (1 + (1 + a * a).sqrt())).log1p()  # log1p() keeps the digits of small numbers
    return _odd(x, torch.where(a > 2.0 ** 28, a.log() + 0.6931471805599453, y)).to(_floats(input).dtype)


@lazily
def acosh(input):
    x = _wide(_floats(input))
    y = (x - 1 + ((x - 1) * (x + 1)).sqrt()).log1p()
    return torch.where(x > 2.0 ** 28, x.log() + 0.6931471805599453, y).to(_floats(input).dtype)


@lazily
def atanh(input):
    x = _wide(_floats(input))
    a = x.abs()
    return _odd(x, 0.5 * (2 * a / (1 - a)).log1p()).to(_floats(input).dtype)


@lazily
def log10(input):
    x = _wide(_floats(input))
    return (x.log2() * 0.30102999566398120).to(_floats(input).dtype)


@lazily
def logit(input, eps=None):
    x = _wide(_floats(input))
    if eps is not None:
        x = torch.where(x < eps, eps, torch.where(x > 1 - eps, 1 - eps, x))  # the bounds themselves have a gradient
    return (x / (1 - x)).log().to(_floats(input).dtype)


# (x + 4) erfcx(x) as polynomials of (x - 4) / (x + 4), those of compiler/frontend/stdlib/special.py.
_ERFCX_32 = (
    0.00012761133, -0.00044553503, -0.00022818416, 0.006094855, -0.026396807, 0.07639189, -0.17400473, 0.330849,
    -0.54085433, 0.7732089, -0.97654873, 1.0959957,
)
_ERFCX_64 = (
    -1.8622649661323519e-10, -7.646540425353987e-11, 2.324814003244962e-09, 7.05121915912163e-10,
    -1.820876050143594e-08, -2.753681712173946e-10, 1.269526622134746e-07, -7.44026425622834e-08,
    -8.478822848394872e-07, 1.4235449438420768e-06, 4.695056181652002e-06, -1.8860655851585005e-05,
    -3.635329756552908e-06, 0.0001768127680715077, -0.00045505265938175656, -0.0002809588591883017,
    0.006112055653486391, -0.026370053340693672, 0.07638151490940508, -0.1740109372399329, 0.3308515878780107,
    -0.5408538313132345, 0.7732087022652371, -0.976548729080882, 1.095995661000491,
)


@lazily
def erfc(input):
    """1 - erf(x) near 0. Further out that is the rounding error of erf, so there it is exp(-x²) erfcx(x)."""
    own = _floats(input)
    x = own.double()
    a = x.abs().clamp(max=30)  # exp(-900) is 0
    t = (a - 4) / (a + 4)
    terms = _ERFCX_64 if own.dtype is torch.float64 else _ERFCX_32
    y = terms[0] * t + terms[1]
    for c in terms[2:]:
        y = y * t + c
    # The square of x loses digits, which its exponential would show; that of x in 64ths is exact.
    near = (a * 64).round() / 64
    y = (-near * near).exp() * ((near - a) * (near + a)).exp() * y / (a + 4)
    y = torch.where(a < 0.5, 1 - x.erf(), torch.where(x < 0, 2 - y, y))
    return y.to(own.dtype)


@lazily
def hypot(input, other):
    dtype = torch.result_type(input, other)
    if not dtype.is_floating_point:
        raise NotImplementedError(f"hypot() does not apply to tensors of {dtype}")
    a, b = _wide(input.to(dtype)).abs(), _wide(other.to(dtype)).abs()
    most, least = torch.maximum(a, b), torch.minimum(a, b)  # squares of the larger one could overflow
    r = torch.where(most == 0, most, least / most)
    y = most * (1 + r * r).sqrt()
    return torch.where(torch.isinf(a) | torch.isinf(b), float("inf"), y).to(dtype)


@lazily
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    if not input.is_floating_point():
        return input.clone()
    most = torch.finfo(input.dtype).max
    x = torch.where(input.isnan(), 0.0 if nan is None else nan, input)
    x = torch.where(input == float("inf"), most if posinf is None else posinf, x)
    return torch.where(input == float("-inf"), -most if neginf is None else neginf, x)


def isposinf(input):
    return input == float("inf")


def isneginf(input):
    return input == float("-inf")


@lazily
def frac(input):
    _of_floats(input, "frac")
    return input - input.trunc()


@lazily
def heaviside(input, values):
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside() takes tensors of one dtype")
    return torch.where(input == 0, values, (input > 0).to(input.dtype))  # of NaN it is 0


def sgn(input):
    return input.sign()


def _sign_of(input):
    """The sign of what records: its gradient is zero."""
    signs = input.detach().sign()
    return _tape.with_rule(lambda _: signs, (input,), lambda g, x: (torch.zeros_like(x),))


def signbit(input):
    return torch.where(input == 0, 1 / input, input) < 0 if input.is_floating_point() else input < 0
