x=3.14159; n="ab"; d={"a":1}; w=10
print(f"{x:.2f} {x:>{w}.3f} {n!r:>6} {d['a']} {x=} {x:e} {1000000:,} {255:#x} {5:03d} {n:<5}| {n:^7}| {0.256:.1%} {{}} {x:10.4f}|")
print("%s %d %.2f %5s %-5s| %x %%" % ("a", 3, 2.5, "r", "l", 255))
print("{} {1} {a:.1f}".format(1,2,a=3.0) if False else "{0} {1} {a:.1f} {0!r}".format("q",2,a=3.0), "{:>10}|{:<4}|".format("a", 1))
print(f"{'nested ' + f'{n}'}", f"{x:{w}.{2}f}", f"{n*2:*^10}", rf"\d{n}", "a" "b" f"{n}")
print(f"{[i for i in range(3)]} {(lambda v: v+1)(2)} {d!s}")
print(f"{1e10} {1e-7} {123456789.123:g} {True} {None} {1_000_000:_} {-5:+d} {5: d}")
import textwrap
# Long words: begun on the line that there is, cut, or left whole; an indent that leaves no room.
print(textwrap.wrap("a abcdefghijk bc", 4, subsequent_indent="    "), textwrap.wrap("aa abcdefghijkl bc", 6, subsequent_indent="  "))
print(textwrap.wrap("abcd efghijklmnop", 5), textwrap.wrap("abcd efghijklmnop q", 8, break_long_words=False), textwrap.wrap("", 3), textwrap.wrap("ab", 4, initial_indent="> "))
print(textwrap.fill("the quick brown fox jumps over the lazy dog", 12, initial_indent="* ", subsequent_indent="  "))
try: textwrap.wrap("a", 0)
except ValueError as e: print(e)
# Columns are characters.
print(["é\tb".expandtabs(4), "ab\rc\td".expandtabs(4), "日本\tx".expandtabs(), "a\nb\tc".expandtabs(3), "\t".expandtabs(0)])
