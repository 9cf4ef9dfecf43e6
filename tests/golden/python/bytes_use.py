"""bytes and bytearray."""
import os

b = b"ab\x00\xff'\n"
print(b, len(b), b[0], b[-1], b[1:3], b[::-1], list(b), bytes(3), bytes([1, 2]), bytes("é", "utf-8"), bytes(b"x"))
print(b'it"s', b"it's", rb"\x41", br"\n", b"a" b"b", b"""x
y""", b"", bool(b""), repr(b"\\"), str(b"q"), f"{b'z'}", b"\t\r\x7f")
print(b"abc".hex(), b"abcde".hex(":"), b"abcde".hex("-", 2), bytes.fromhex("61 62ff"), b"abc".decode(), "é日".encode(), "é".encode("latin-1"))
print(b"\xc3\xa9".decode("utf8"), b"\xe9".decode("latin-1"), b"a\xffb".decode(errors="replace"), b"a\xffb".decode("ascii", "ignore"), "aéb".encode("ascii", "replace"))
print(b"a" + b"b", b"ab" * 2, 2 * b"x", b"a" in b"ba", 97 in b"ba", b"a" == b"a", b"a" != "a", b"a" == "a", b"a" < b"b", b"a" == bytearray(b"a"))
print(b"a,b,,c".split(b","), b" a  b ".split(), b",".join([b"x", bytearray(b"y")]), b"aXa".replace(b"a", b"bb"), b"abcb".find(b"b"), b"abcb".rfind(b"b"), b"abc".find(b"z"), b"abcb".find(98, 2), b"abab".count(b"ab"), b"abc".index(b"c"))
print(b"abc".startswith(b"ab"), b"abc".endswith((b"x", b"bc")), b"  x ".strip(), b"xxaxx".strip(b"x"), b"xa".lstrip(b"x"), b"a\n".rstrip(), b"aB".upper(), b"aB".lower())
print({b"k": 1}[b"k"], hash(b"a") == hash(b"a"), isinstance(b"", bytes), type(b"").__name__, type(bytearray()), isinstance(bytearray(), bytes), len({b"a", b"a"}))
print((1024).to_bytes(2, "big"), (1024).to_bytes(4, "little"), (-2).to_bytes(2, "big", signed=True), int.from_bytes(b"\x04\x00", "big"), int.from_bytes(b"\xfe\xff", "little", signed=True), int.from_bytes([1, 2], "big"), (5).to_bytes(), (0).to_bytes(0, "big"), (255).to_bytes(20, "big"))
for bad in (lambda: (256).to_bytes(1, "big"), lambda: (-1).to_bytes(1, "big"), lambda: (128).to_bytes(1, "big", signed=True)):
    try:
        bad()
    except OverflowError as e:
        print(e)
for bad in (lambda: b"a" + "b", lambda: b"\xff".decode(), lambda: "é".encode("ascii"), lambda: bytes([256]), lambda: b"abc"[9], lambda: bytes("x"), lambda: b"a".join(["x"]), lambda: "a" in b"a"):
    try:
        print(bad())
    except Exception as e:
        print(type(e).__name__)
a = bytearray(b"abc")
a[0] = 65
a.append(100)
a += b"ef"
a.extend([103])
print(a, a[1], a[1:3], a.pop(), a.pop(0), len(a), a.decode(), bytes(a), a.hex())
a[1:3] = b"ZZZ"
del a[0]
print(a, list(a), a == b"ZZZef", bytearray(2), bytearray(b"x") * 2)
a[::2] = b"123"
del a[::2]
print(a, bytearray.fromhex("00"))
for x in b"hi":
    print(x, end=" ")
print(*map(chr, b"hi"), sum(b"abc"), max(b"abc"), sorted(b"cab"), bytes(reversed(b"abc")))
name = "/tmp/kiln_bytes_use.bin"
with open(name, "wb") as f:
    print(f.write(b"\x00\x01\xff\nline\n"))
with open(name, "rb") as f:
    print(f.read(2), f.readline(), f.read(), f.read())
with open(name, "rb") as f:
    print(f.readlines(), f.mode)
print([line for line in open(name, "rb")], open(name, "rb").read()[:4])
os.remove(name)
print(len(b"%200000s" % b"x"), len(b"%-200000b" % b"x"), len(b"%.200000d" % 1), len("%0200000.3d" % 1))
print(b"%*s|%.*s|" % (-4, b"a", 2, b"abc"), "%*d|%-*d|" % (-4, 1, 4, 2))
for f in (lambda: sum([b"a"], b""), lambda: sum([], bytearray()), lambda: b",".join([b"a", "b"])):
    try: print(f())
    except TypeError: print("TypeError")
