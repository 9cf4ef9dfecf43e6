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


def wrap(text, width=70, initial_indent="", subsequent_indent="", **kwargs):
    lines, line = [], initial_indent
    empty = True
    for word in text.split():
        if not empty and len(line) + 1 + len(word) > width:
            lines.append(line)
            line, empty = subsequent_indent, True
        line = line + word if empty else line + " " + word
        empty = False
        # A word longer than a line is cut, as Python does by default.
        while len(line) > width:
            lines.append(line[:width])
            line = subsequent_indent + line[width:]
    if not empty:
        lines.append(line)
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
