import math
def attempt(f, *a):
    try: return f(*a)
    except (OverflowError, ValueError) as e: return type(e).__name__
inf, nan = math.inf, math.nan
print([attempt(math.pow, *a) for a in ((10., 400.), (0., -1.), (-0., -1.), (0, -1), (0., -2.5), (-8, 1 / 3), (0.5, -2000))])
print([attempt(math.pow, *a) for a in ((inf, 2), (2, inf), (0, -inf), (-0., -inf), (-1., inf), (nan, 0), (1, nan), (2, nan), (1e-300, 3), (-inf, -1))])
print([attempt(math.ldexp, *a) for a in ((1., 2000), (-1., 5000), (0., 10**30), (1., -10**30), (1., 10**30), (inf, 5), (-inf, 10**30), (nan, 99999), (1., -2000), (1.5, 10))])
print(math.gcd(-2**63), math.gcd(-2**63, 0), math.gcd(-2**63, -2**63), math.gcd(2**70, 2**69), math.gcd(), math.gcd(-4, 6), math.gcd(2**126, 6**40))
print(math.lcm(-2**63), math.lcm(-2**63, 1), math.lcm(2**40, 3**30), math.lcm(-4, 6), math.lcm(), math.lcm(0, 5))
print([attempt(lambda a, b: a ** b, *a) for a in ((2.0, 5000), (10, 400.0), (-1e200, 3), (1e200, -3), (inf, 2))])
