"""Fields of format(), bytes as formats, encodings with their error handlers, and methods of bytes with bounds."""


def show(f):
    try:
        print(repr(f()))
    except Exception as e:
        print(type(e).__name__)


show(lambda: "{} {1}".format(1, 2))
show(lambda: "{0} {}".format(1, 2))
show(lambda: "{:{}} {}".format("a", 5, "b"))
show(lambda: "{0:{1}} {0}".format("a", 5))
show(lambda: "{0:{}}".format("a", 5))
show(lambda: "{a} {}".format(1, a=2))
show(lambda: "{!x}".format(1))
show(lambda: "{!s} {!r} {!a}".format("é", "é", "é"))
show(lambda: "{a} {b[k]}".format_map({"a": 1, "b": {"k": 2}}))
show(lambda: "{c}".format_map({"a": 1}))


class Default(dict):
    def __missing__(self, key):
        return "<" + key + ">"


show(lambda: "{a} {c}".format_map(Default(a=1)))

show(lambda: str(b"abc", "utf-8"))
show(lambda: str(b"\xe9", "latin-1"))
show(lambda: str(b"\xff", "utf-8"))
show(lambda: str(b"a\xff", "utf-8", "replace"))
show(lambda: str(b"a\xff", errors="ignore"))
show(lambda: str("a", "utf-8"))
show(lambda: str(5, "utf-8"))
show(lambda: str(bytearray(b"ab"), encoding="ascii"))
show(lambda: "aé€\U0001f600".encode("ascii", "backslashreplace"))
show(lambda: "aé€".encode("latin-1", "xmlcharrefreplace"))
show(lambda: "é".encode("ascii", "replace"))
show(lambda: "é".encode("ascii", "nothing"))
show(lambda: b"a\xff\x80".decode("utf-8", "backslashreplace"))
show(lambda: b"\xff".decode("utf-8", "nothing"))

show(lambda: b"%d %s %r %5.1f|%-4d|%x %c %%" % (1, b"x", "é", 2.25, 3, 255, 65))
show(lambda: b"%b" % b"raw")
show(lambda: b"%a" % "é")
show(lambda: b"%(k)s" % {b"k": b"v"})
show(lambda: b"%s" % "text")
show(lambda: b"%d" % "text")
show(lambda: bytearray(b"<%04d>") % 7)

show(lambda: (b"abcabc".count(b"b", 2), b"abcabc".count(b"", 2), b"abcabc".find(b"c", 3, 5), b"abcabc".find(b"c", -1)))
show(lambda: (b"abcabc".rfind(b"b", 0, 4), b"abcabc".rindex(b"b"), b"abcabc".index(b"c", 3)))
show(lambda: b"abc".rindex(b"z"))
show(lambda: (b"abc".startswith(b"b", 1), b"abc".endswith(b"b", 0, 2), b"abc".startswith((b"x", b"a"))))
show(lambda: (b"aaa".replace(b"a", b"b", 2), b"ab".replace(b"", b"-"), b"ab".replace(b"", b"-", 1)))
show(lambda: (b"a,b,c".split(b",", 1), b"a,b,c".rsplit(b",", 1)))
show(lambda: (b" a  b c ".split(None, 1), b" a b  c ".rsplit(None, 1)))
show(lambda: (b"a-b-c".partition(b"-"), b"a-b-c".rpartition(b"-"), b"abc".partition(b"-"), b"abc".rpartition(b"-")))
show(lambda: (b"a\nb\r\nc".splitlines(), b"a\nb\r\nc\n".splitlines(True), b"".splitlines()))
show(lambda: (b"ab".ljust(4) + b"|", b"ab".rjust(4, b"."), b"ab".center(5, b"*"), b"-5".zfill(4)))
show(lambda: (b"12".isdigit(), b"ab".isalpha(), b"a1".isalnum(), b" ".isspace(), b"AB".isupper(), b"ab".islower()))
show(lambda: (b"abc".removeprefix(b"a"), b"abc".removesuffix(b"c"), b"aB".swapcase()))
show(lambda: (b"ab cd".title(), b"aB".capitalize()))
show(lambda: (b"abc".translate(bytes.maketrans(b"ab", b"xy")), b"abc".translate(None, b"b")))
