import random
random.seed(1234)
print([random.random() for _ in range(3)], random.getrandbits(16), random.getrandbits(100), random.randrange(10), random.randrange(3, 100, 7), random.randint(-5, 5))
print(random.choice("abcdef"), random.sample(range(1000), 8), random.sample(list("abcdefgh"), 4), random.choices([1,2,3], weights=[1,2,3], k=6), random.choices("ab", k=4))
x = list(range(10)); random.shuffle(x); print(x)
print(random.gauss(0, 1), random.gauss(1, 2), random.normalvariate(0, 1), random.uniform(2, 3), random.triangular(0, 1, 0.3), random.expovariate(2.0))
print(random.gammavariate(2.0, 1.0), random.gammavariate(1.0, 2.0), random.betavariate(2.0, 3.0), random.paretovariate(3.0), random.weibullvariate(1.0, 2.0), random.lognormvariate(0, 1))
r = random.Random(2**70 + 3); print(r.random(), r.randint(0, 10**20), r.randbytes(7))
s = r.getstate(); a = r.random(); r.setstate(s); print(a == r.random(), len(s), len(s[1]))
random.seed(-7); print(random.random())
random.seed(0); print(random.random(), random.getrandbits(0))
class Mine(random.Random):
    def random(self): return 0.25
print(Mine().uniform(0, 8), Mine(3).getrandbits(8))
for f in (lambda: random.choice([]), lambda: random.randrange(0), lambda: random.sample([1], 2), lambda: random.sample({1}, 1)):
    try: f()
    except Exception as e: print(type(e).__name__)
print(random.sample("ab", counts=[2, 3], k=3))
