"""textwrap: indentation and line breaks of texts."""


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


def wrap(text, width=70, *, initial_indent="", subsequent_indent="", break_long_words=True, **kwargs):
    if width <= 0:
        raise ValueError(f"invalid width {width!r} (must be > 0)")
    lines, line = [], ""
    for word in text.split():
        while word:
            indent = subsequent_indent if lines else initial_indent
            room = width - len(indent)
            longer = line + " " + word if line else word
            if len(longer) <= room:
                line, word = longer, ""
            elif len(word) > room and break_long_words:
                # A word longer than a line begins on this one. Alone on a line it has a character there even where the
                # indent leaves no room; where just the blank before it fits, Python too leaves that at the end.
                cut = room - len(longer) + len(word) if line else max(room, 1)
                if cut >= 0:
                    line, word = longer[:len(longer) - len(word) + cut], word[cut:]
                lines.append(indent + line)
                line = ""
            else:
                # A longer word that stays whole has a line of its own.
                lines.append(indent + (line or word))
                line, word = "", word if line else ""
    if line:
        lines.append((subsequent_indent if lines else initial_indent) + line)
    return lines


def fill(text, width=70, **kwargs):
    return "\n".join(wrap(text, width, **kwargs))


def shorten(text, width, placeholder=" [...]"):
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    out = ""
    for word in text.split():
        longer = word if not out else out + " " + word
        if len(longer) + len(placeholder) > width:
            break
        out = longer
    return out + placeholder if out else placeholder.strip()
