"""re."""
import re

m = re.match(r"(\w+) (\w+)", "hello world foo")
print(m, m.group(), m.group(1, 2), m[2], m.groups(), m.start(2), m.end(), m.span(1), m.lastindex, bool(m), m.string, m.pos, m.endpos)
print(re.match("b", "abc"), re.search("b", "abc").span(), re.fullmatch("ab", "abc"), re.fullmatch("a.c", "abc"), re.search("z", "abc"))
m = re.search(r"(?P<kernel>[a-z_]+)_(?P<size>\d+)(?P<tail>x)?", "time of matmul_4096: 3 ms")
print(m.groupdict(), m["kernel"], m.group("size"), m.groupdict("none"), m.groups("-"), m.re.groupindex, m.lastgroup, m.start("tail"), m.expand(r"\g<size>-\1"))
print(re.findall(r"\d+", "a1b22c333"), re.findall(r"(\w)=(\d)", "a=1, b=2"), re.findall(r"(a)|b", "ab"), re.findall("x*", "axb"), re.findall("é.", "éaéb日"))
print([x.span() for x in re.finditer("a*", "baac")], [x.group() for x in re.finditer(r"[^,]+", "a,b,,c")])
print(re.sub(r"\s+", " ", "a  b \n c"), re.sub("x*", "-", "abxd"), re.sub(r"(\w+) (\w+)", r"\2 \1", "ab cd"), re.sub("(?P<a>b)", r"[\g<a>\g<0>\\]", "abc"), re.sub("a", r"\n\t", "xay"), re.sub("a", "b", "aaa", 2), re.subn("a", "b", "aaa"))
print(re.sub(r"\d+", lambda m: str(int(m.group()) * 2), "1 a 20"), re.sub("é", "e", "été"), re.sub(r"(x)?b", r"<\1>", "abxb"))
print(re.split(r",\s*", "a, b,c"), re.split(r"(,)", "a,b"), re.split(",", "a,b,c", 1), re.split("x*", "axbc"), re.split(r"\W+", "Words, words."))
p = re.compile(r"^(\w+):\s*(.*)$", re.M | re.I)
print(p.findall("A: 1\nb: 2"), p.pattern, p.groups, p.groupindex, p.flags, re.compile("a") == re.compile("a"), p)
print(re.findall("a.b", "a\nb a-b"), re.findall("a.b", "a\nb", re.S), re.match("ABC", "abc", re.I).group(), re.findall("^b", "a\nb"), re.findall("(?m)^b", "a\nb"))
x = re.compile(r"""
    (\d+)   # digits
    \s* x \s*
    (\d+)   # more
    """, re.VERBOSE)
print(x.match("128 x 256").groups(), re.escape("a.b*c[d]_e-é"), re.match(re.escape("a.b"), "axb"))
print(re.search(r"a$", "a\n").span(), re.search(r"a\Z", "a\n"), re.search(r"\bfoo\b", "a foo b").start(), re.findall(r"(?<=\$)\d+", "$1 $22"), re.findall(r"a(?!b)", "abac"), re.findall(r"(?:ab)+", "ababxab"), re.findall(r"a{,2}", "aaa"), re.findall(r"a{2}", "aaaa"))
print(re.findall(r"\w+", "é日_1 x"), re.findall(r"\w+", "é日_1 x", re.A), re.findall("[]a]", "]a"), re.findall(r"[^]]", "]a"), re.findall("\\u00e9", "é"), re.findall(r"[\w.]+@[\w.]+", "a.b@c.d e@f"), re.match(r"(a)\1", "aa").group(), re.match(r"(?P<q>['\"]).*?(?P=q)", "'x' y").group())
print(p.search("zz\nk: v", 2).span(), re.compile("b").match("abc", 1).span(), re.compile("^b").search("ab", 1), re.compile("c").search("abc", 0, 2), re.compile("日").search("é日").span())
for bad in ("(", "[a", "*a", "a**", "(?P<1>a)", r"\1", "(?P=x)"):
    try:
        re.compile(bad)
    except re.error:
        print("error", end=" ")
for bad in (lambda: re.sub("a", r"\2", "a"), lambda: re.sub("a", r"\q", "a"), lambda: re.match("a", "a").group(1), lambda: re.sub("a", r"\g<zz>", "a"), lambda: re.match("a", 5), lambda: re.compile(5)):
    try:
        print(bad())
    except (re.error, IndexError, TypeError) as e:
        print(type(e).__name__, end=" ")
print()
log = """matmul 128x256 fp16: 1.25 ms
softmax 64x64 fp32: 0.5 ms"""
for line in log.splitlines():
    if m := re.match(r"(?P<name>\w+) (?P<m>\d+)x(?P<n>\d+) (?P<t>\w+): (?P<ms>[\d.]+) ms", line):
        d = m.groupdict()
        print(f"{d['name']:>8} {int(d['m']) * int(d['n'])} {float(d['ms']):.2f}")
print({k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", "BLOCK_M=64 BLOCK_N=128, num_warps=4")})
