x=3.14159; n="ab"; d={"a":1}; w=10
print(f"{x:.2f} {x:>{w}.3f} {n!r:>6} {d['a']} {x=} {x:e} {1000000:,} {255:#x} {5:03d} {n:<5}| {n:^7}| {0.256:.1%} {{}} {x:10.4f}|")
print("%s %d %.2f %5s %-5s| %x %%" % ("a", 3, 2.5, "r", "l", 255))
print("{} {1} {a:.1f}".format(1,2,a=3.0) if False else "{0} {1} {a:.1f} {0!r}".format("q",2,a=3.0), "{:>10}|{:<4}|".format("a", 1))
print(f"{'nested ' + f'{n}'}", f"{x:{w}.{2}f}", f"{n*2:*^10}", rf"\d{n}", "a" "b" f"{n}")
print(f"{[i for i in range(3)]} {(lambda v: v+1)(2)} {d!s}")
print(f"{1e10} {1e-7} {123456789.123:g} {True} {None} {1_000_000:_} {-5:+d} {5: d}")
