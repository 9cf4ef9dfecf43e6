"""textwrap: indentation and line breaks of texts."""
import re as _re


def dedent(text):
    # Lines of blanks alone do not count for the margin, and come out empty.
    lines = [line if line.strip() else "" for line in text.split("\n")]
    margin = None
    for line in lines:
        if not line:
            continue
        indent = line[:len(line) - len(line.lstrip())]
        if margin is None:
            margin = indent
        while not indent.startswith(margin):
            margin = margin[:-1]
    margin = margin or ""
    return "\n".join(line[len(margin):] if line else line for line in lines)


def indent(text, prefix, predicate=None):
    predicate = predicate or (lambda line: line.strip())
    return "".join(prefix + line if predicate(line) else line for line in text.splitlines(True))


# Where a word may be broken: behind a hyphen between letters, before and behind a dash of two hyphens.
_BREAKS = _re.compile(r"""(?<=[^\d\W]{2}-)(?=[^\d\W]-?[^\d\W])|(?<=[^\d\W]-[\w!"'&.,?]-)(?=[^\d\W]-?[^\d\W])"""
                      r"""|(?<=[\w!"'&.,?])(?=-{2,}\w)|(?<=[\w!"'&.,?]--)(?=\w)""")


class TextWrapper:
    def __init__(self, width=70, initial_indent="", subsequent_indent="", expand_tabs=True, replace_whitespace=True,
                 fix_sentence_endings=False, break_long_words=True, drop_whitespace=True, break_on_hyphens=True,
                 tabsize=8, *, max_lines=None, placeholder=" [...]"):
        if fix_sentence_endings:
            raise NotImplementedError("fix_sentence_endings= is not supported")
        self.width, self.initial_indent, self.subsequent_indent = width, initial_indent, subsequent_indent
        self.expand_tabs, self.replace_whitespace = expand_tabs, replace_whitespace
        self.drop_whitespace = drop_whitespace
        self.break_long_words, self.break_on_hyphens, self.tabsize = break_long_words, break_on_hyphens, tabsize
        self.max_lines, self.placeholder = max_lines, placeholder

    def _chunks(self, text):
        """Words, pieces of words and the blanks between them."""
        if self.expand_tabs:
            text = text.expandtabs(self.tabsize)
        if self.replace_whitespace:
            text = _re.sub(r"[\t\n\x0b\x0c\r ]", " ", text)
        out = []
        for chunk in _re.split(r"([\t\n\x0b\x0c\r ]+)", text):
            at = 0
            if self.break_on_hyphens and "-" in chunk:
                for place in _BREAKS.finditer(chunk):
                    out.append(chunk[at:place.start()])
                    at = place.start()
            out.append(chunk[at:])
        return [chunk for chunk in out if chunk]

    def wrap(self, text):
        if self.width <= 0:
            raise ValueError(f"invalid width {self.width!r} (must be > 0)")
        if self.max_lines is not None:
            indent = self.subsequent_indent if self.max_lines > 1 else self.initial_indent
            if len(indent) + len(self.placeholder.lstrip()) > self.width:
                raise ValueError("placeholder too large for max width")
        lines, chunks, at = [], self._chunks(text), 0
        while at < len(chunks):
            indent = self.subsequent_indent if lines else self.initial_indent
            room, line, length = self.width - len(indent), [], 0
            if self.drop_whitespace and lines and not chunks[at].strip():
                at += 1
            while at < len(chunks) and length + len(chunks[at]) <= room:
                line.append(chunks[at])
                length += len(chunks[at])
                at += 1
            if at < len(chunks) and len(chunks[at]) > room:
                # A word longer than a line begins on this one; alone on a line it has at least a character there.
                if self.break_long_words:
                    left = 1 if room < 1 else room - length
                    hyphen = chunks[at].rfind("-", 0, left) if self.break_on_hyphens else -1
                    cut = hyphen + 1 if hyphen > 0 and chunks[at][:hyphen].strip("-") else left
                    line.append(chunks[at][:cut])
                    chunks[at] = chunks[at][cut:]
                elif not line:
                    line.append(chunks[at])
                    at += 1
                length = sum(len(c) for c in line)
            if self.drop_whitespace and line and not line[-1].strip():
                length -= len(line.pop())
            if not line:
                continue
            rest = at < len(chunks) and not (self.drop_whitespace and at == len(chunks) - 1
                                             and not chunks[at].strip())
            if self.max_lines is None or len(lines) + 1 < self.max_lines or (not rest and length <= room):
                lines.append(indent + "".join(line))
                continue
            self._shortened(lines, line, length, room, indent)
            break
        return lines

    def _shortened(self, lines, line, length, room, indent):
        """Ends the last line that there may be with the placeholder."""
        while line:
            if line[-1].strip() and length + len(self.placeholder) <= room:
                lines.append(indent + "".join(line) + self.placeholder)
                return
            length -= len(line.pop())
        if lines and len(lines[-1].rstrip()) + len(self.placeholder) <= self.width:
            lines[-1] = lines[-1].rstrip() + self.placeholder
            return
        lines.append(indent + self.placeholder.lstrip())

    def fill(self, text):
        return "\n".join(self.wrap(text))


def wrap(text, width=70, **kwargs):
    return TextWrapper(width=width, **kwargs).wrap(text)


def fill(text, width=70, **kwargs):
    return TextWrapper(width=width, **kwargs).fill(text)


def shorten(text, width, **kwargs):
    return TextWrapper(width=width, max_lines=1, **kwargs).fill(" ".join(text.strip().split()))
