# Every test and form of characters, over ranges that hold all cases.
import itertools
CODES = list(itertools.chain(range(0x80, 0x2400), range(0x2C00, 0x3100), range(0xA640, 0xABC0),
    range(0xFB00, 0x10000, 3),
                             range(0x10400, 0x10600), range(0x1D400, 0x1D800, 5), range(0x1E900, 0x1E960)))
chars = [chr(c) for c in CODES]
tests = [str.isalpha, str.isdecimal, str.isdigit, str.isnumeric, str.isalnum, str.isspace, str.isupper, str.islower,
         str.istitle, str.isidentifier, str.isprintable]
for test in tests:
    found = [c for c, s in zip(CODES, chars) if test(s)]
    print(len(found), sum(found), sum(i * c for i, c in enumerate(found)) % 1000003)
for form in [str.upper, str.lower, str.title, str.casefold, str.capitalize, str.swapcase, repr]:
    made = [form(s) for s in chars]
    print(sum(map(len, made)), sum(i * ord(x) for i, s in enumerate(made) for x in s) % 1000003)
for s in ["ß", "ǅ", "ŉ", "ﬁ", "ΑΣ", "ΑΣ Β", "aΣ", "Σ", "Α'Σ.", "İ", "ı", "STRASSE straße", "o'neill mac-donald", "ª",
        "\u0345"]:
    print(ascii(s), [ascii(f(s)) for f in (str.upper, str.lower, str.title, str.casefold, str.capitalize,
        str.swapcase)])
print("STRASSE".casefold() == "straße".casefold(), "é" == "e\u0301", len("e\u0301"), "\xe9\u2028\U0001f600\x85\xad")
print(repr("\xa0\u2028\u200b\ufeff\U000e0001\x7f\x00é日"), ascii("é\u2028"))
print("a\u2028b\x1cc\x0bd\x0ce\x85f\r\ng\n\nh".splitlines(), "a\u2029b\n".splitlines(True))
print("\xa0 a\u3000".strip() == "a", "a\u2003b\x1fc".split(), "\u3000a b  c ".split(None, 1),
    "a b\u2003c ".rsplit(None, 1))
print("  a b  c ".rsplit(maxsplit=1), "x".rsplit(None, 0), " x y ".split(None, 0), " x y ".rsplit(None, 0), "".split())
print("éaé".strip("é"), "日本語".strip("本日"), "éÈ".lstrip("é"), "xéx".rstrip("xé"))
print("{!a} {!r:>6} {!s}".format("é", "é", "é"), f"{'é'!a}", "%a|%5a|%c" % ("é", "é", 300), f"{233:c}",
    "{:c}".format(0x1F600))
print("".isprintable(), "".isalpha(), "a1".isidentifier(), "1a".isidentifier(), "_é".isidentifier(), "²".isdigit(),
    "½".isnumeric())
