print(1j, -1j, 2.5j, 1 + 2j, 1 - 2j, -1.5 - 0.25j, 0j, 1e20j, 3J, 1_0j)
a, b = 1 + 2j, 3 - 4j
print(a + b, a - b, a * b, a / b, a + 1, 1 - a, 2 * a, a / 2, 1 / b, 2.5 + a, True + a)
print(a ** 2, a ** -2, b ** 0, (1j) ** 2, 0j ** 2, a ** 3)
print(abs(3 + 4j), a.real, a.imag, a.conjugate(), -a, +a, bool(0j), bool(1j))
print(a == 1 + 2j, a != b, 2 + 0j == 2, 2.0 == 2 + 0j, a == "x", a in [1 + 2j], {1 + 0j: 1}[1], hash(2 + 0j) == hash(2), hash(1.5 - 2j))
print(complex(1, 2), complex(3), complex(), complex(1j, 1j), type(a), isinstance(a, complex), isinstance(1.0, complex))
print(repr(complex(-0.0, 1)), repr(complex(0.0, -0.0)), complex(1, float("inf")), complex(float("nan"), -1))
print(f"{a}", f"{a:.2f}", f"{b:.1e}", "%s" % a, str(a), [a, b], sum([1j, 2, 3.5]))
for text in ("a < b", "a // 2", "a % 2", "int(a)", "float(a)", "1j / 0", "a > 1", "divmod(a, 2)", "0j ** -1"):
    try:
        {"a < b": lambda: a < b, "a // 2": lambda: a // 2, "a % 2": lambda: a % 2, "int(a)": lambda: int(a),
         "float(a)": lambda: float(a), "1j / 0": lambda: 1j / 0, "a > 1": lambda: a > 1,
         "divmod(a, 2)": lambda: divmod(a, 2), "0j ** -1": lambda: 0j ** -1}[text]()
        print(text, "no error")
    except (TypeError, ZeroDivisionError) as e:
        print(text, type(e).__name__)
a += 1
a *= 2j
print(a)
