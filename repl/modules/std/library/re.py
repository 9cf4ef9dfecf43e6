"""re: regular expressions, matched by PCRE2."""
import _re

# Python's numbers: a script may have stored flags as an int.
I = IGNORECASE = 2
L = LOCALE = 4
M = MULTILINE = 8
S = DOTALL = 16
U = UNICODE = 32
X = VERBOSE = 64
A = ASCII = 256
NOFLAG = 0


class error(Exception):
    def __init__(self, msg, pattern=None, pos=None):
        self.msg, self.pattern, self.pos = msg, pattern, pos
        super().__init__(msg)


PatternError = error
_special = "()[]{}?*+-|^$\\.&~# \t\n\r\v\f"
_escapes = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}


class Match:
    def __init__(self, pattern, string, pos, endpos, spans, texts):
        self.re, self.string, self.pos, self.endpos = pattern, string, pos, endpos
        self._spans, self._texts = spans, texts

    def _number(self, group):
        number = self.re.groupindex.get(group, -1) if isinstance(group, str) else group
        if not isinstance(number, int) or not 0 <= number <= self.re.groups:
            # IndexError and not KeyError for a name too, as in Python.
            raise IndexError("no such group")
        return number

    def group(self, *groups):
        if len(groups) < 2:
            return self._texts[self._number(groups[0] if groups else 0)]
        return tuple(self._texts[self._number(g)] for g in groups)

    def __getitem__(self, group):
        return self._texts[self._number(group)]

    def groups(self, default=None):
        return tuple(default if t is None else t for t in self._texts[1:])

    def groupdict(self, default=None):
        return {n: default if self._texts[i] is None else self._texts[i] for n, i in self.re.groupindex.items()}

    def start(self, group=0):
        return self._spans[2 * self._number(group)]

    def end(self, group=0):
        return self._spans[2 * self._number(group) + 1]

    def span(self, group=0):
        return self.start(group), self.end(group)

    def expand(self, template):
        return _filled(_template(template, self.re), self._texts)

    @property
    def lastindex(self):
        # The group that closed last: of those that end furthest, the one that begins first.
        last = None
        for g in range(1, self.re.groups + 1):
            if self._texts[g] is not None and (last is None or self.end(g) > self.end(last)):
                last = g
        return last

    @property
    def lastgroup(self):
        last = self.lastindex
        return next((n for n, i in self.re.groupindex.items() if i == last), None)

    def __bool__(self):
        return True

    def __copy__(self):
        return self

    def __repr__(self):
        return f"<re.Match object; span={self.span()!r}, match={self._texts[0]!r}>"


def _template(text, pattern):
    # Read once for all matches of sub().
    """A replacement as a list of texts and numbers of groups."""
    out, at = [], 0

    def checked(number):
        if number > pattern.groups:
            raise error(f"invalid group reference {number}")
        return number

    while at < len(text):
        slash = text.find("\\", at)
        if slash < 0:
            break
        out.append(text[at:slash])
        if slash + 1 == len(text):
            raise error("bad escape (end of pattern)")
        c, at = text[slash + 1], slash + 2
        if c == "g":
            end = text.find(">", at)
            if text[at:at + 1] != "<" or end < 0:
                raise error("missing <")
            name, at = text[at + 1:end], end + 1
            if name.isdigit():
                out.append(checked(int(name)))
            elif name in pattern.groupindex:
                out.append(pattern.groupindex[name])
            else:
                raise IndexError(f"unknown group name {name!r}")
        elif c.isdigit():
            digits = c
            while len(digits) < 3 and text[at:at + 1].isdigit():
                digits, at = digits + text[at], at + 1
            octal = all(d in "01234567" for d in digits) and (digits[0] == "0" or len(digits) == 3)
            # Python's rule: octal with a leading zero or with three octal digits, else a group of at most two.
            if octal:
                out.append(chr(int(digits, 8) & 255))
            else:
                # The digits that are no part of the number go back to the text.
                at -= max(0, len(digits) - 2)
                out.append(checked(int(digits[:2])))
        elif c in _escapes:
            out.append(_escapes[c])
        # Letters of ASCII are kept for escapes to come; any other character stands for itself with its backslash.
        elif c.isascii() and c.isalpha():
            raise error(f"bad escape \\{c}")
        else:
            out.append("\\" + c)
    out.append(text[at:])
    return out


def _filled(parts, texts):
    # A group that took no part is empty text in a replacement.
    return "".join(p if isinstance(p, str) else texts[p] or "" for p in parts)


class Pattern:
    def __init__(self, pattern, flags):
        self.pattern = pattern
        try:
            self._regex = _re.compile(pattern, flags)
        except ValueError as e:
            raise error(str(e), pattern) from None
        # Of a str the flag is set unless ASCII is, and it shows in `flags`.
        self.flags = flags if flags & ASCII else flags | UNICODE
        self.groups, self.groupindex = self._regex.groups, self._regex.names

    def _one(self, string, pos, endpos, mode):
        # 1: the first match is enough.
        found, _ = _re.scan(self._regex, string, pos, endpos, mode, 1)
        if not found:
            return None
        _, spans, texts = found[0]
        return Match(self, string, pos, len(string) if endpos is None else endpos, spans, texts)

    def match(self, string, pos=0, endpos=None):
        return self._one(string, pos, endpos, "match")

    def search(self, string, pos=0, endpos=None):
        return self._one(string, pos, endpos, "search")

    def fullmatch(self, string, pos=0, endpos=None):
        return self._one(string, pos, endpos, "fullmatch")

    def finditer(self, string, pos=0, endpos=None):
        found, _ = _re.scan(self._regex, string, pos, endpos, "search", 0)
        end = len(string) if endpos is None else endpos
        # All at once: a str cannot change between two matches.
        return iter([Match(self, string, pos, end, spans, texts) for _, spans, texts in found])

    def findall(self, string, pos=0, endpos=None):
        found, _ = _re.scan(self._regex, string, pos, endpos, "search", 0)
        if self.groups == 0:
            return [texts[0] for _, _, texts in found]
        if self.groups == 1:
            # A group that took no part is "" here and None in groups(), as Python has it.
            return [texts[1] or "" for _, _, texts in found]
        return [tuple(t or "" for t in texts[1:]) for _, _, texts in found]

    def split(self, string, maxsplit=0):
        found, tail = _re.scan(self._regex, string, 0, None, "search", max(0, maxsplit))
        if maxsplit < 0:
            # Below 0 there is no split at all, while 0 means all.
            return [string]
        out = []
        for before, _, texts in found:
            out.append(before)
            out.extend(texts[1:])
        return out + [tail]

    def subn(self, repl, string, count=0):
        parts = None if callable(repl) else _template(repl, self)
        found, tail = _re.scan(self._regex, string, 0, None, "search", count)
        out = []
        for before, spans, texts in found:
            out.append(before)
            out.append(repl(Match(self, string, 0, len(string), spans, texts)) if parts is None
                       else _filled(parts, texts))
        return "".join(out) + tail, len(found)

    def sub(self, repl, string, count=0):
        return self.subn(repl, string, count)[0]

    def __eq__(self, other):
        return isinstance(other, Pattern) and (self.pattern, self.flags) == (other.pattern, other.flags)

    def __hash__(self):
        return hash((self.pattern, self.flags))

    def __repr__(self):
        names = [n for f, n in ((I, "IGNORECASE"), (M, "MULTILINE"), (S, "DOTALL"), (X, "VERBOSE"), (A, "ASCII"))
                 if self.flags & f]
        return f"re.compile({self.pattern!r}{''.join(', ' + '|'.join('re.' + n for n in names) if names else '')})"


_cache = {}


def compile(pattern, flags=0):
    if isinstance(pattern, Pattern):
        if flags:
            raise ValueError("cannot process flags argument with a compiled pattern")
        return pattern
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern must be a str, got {type(pattern).__name__!r}")
    flags = int(flags)
    made = _cache.get((pattern, flags))
    if made is None:
        # Emptied rather than aged: a script that makes patterns in a loop fills it with what it never asks for again.
        if len(_cache) >= 256:
            _cache.clear()
        made = _cache[pattern, flags] = Pattern(pattern, flags)
    return made


def match(pattern, string, flags=0):
    return compile(pattern, flags).match(string)


def search(pattern, string, flags=0):
    return compile(pattern, flags).search(string)


def fullmatch(pattern, string, flags=0):
    return compile(pattern, flags).fullmatch(string)


def findall(pattern, string, flags=0):
    return compile(pattern, flags).findall(string)


def finditer(pattern, string, flags=0):
    return compile(pattern, flags).finditer(string)


def split(pattern, string, maxsplit=0, flags=0):
    return compile(pattern, flags).split(string, maxsplit)


def sub(pattern, repl, string, count=0, flags=0):
    return compile(pattern, flags).sub(repl, string, count)


def subn(pattern, repl, string, count=0, flags=0):
    return compile(pattern, flags).subn(repl, string, count)


def escape(pattern):
    return "".join("\\" + c if c in _special else c for c in pattern)


def purge():
    _cache.clear()
