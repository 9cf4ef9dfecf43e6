"""Texts of functions that stand inside of others."""
from __future__ import annotations

import textwrap
import tokenize
from typing import Sequence

_STRINGS = {getattr(tokenize, kind, None): change for kind, change in
            (("FSTRING_START", 1), ("TSTRING_START", 1), ("FSTRING_END", -1), ("TSTRING_END", -1))}


def dedented(lines: Sequence[str]) -> str:
    """Lines of code without the indentation of the first; lines that begin within a string keep theirs."""
    indent = lines[0][:len(lines[0]) - len(lines[0].lstrip(" \t"))] if lines else ""
    try:
        kept = _rows_in_strings(lines) if indent else set()
    except (tokenize.TokenError, SyntaxError):
        return textwrap.dedent("".join(lines))  # whoever parses it says what is wrong
    return "".join(line if row in kept else line.removeprefix(indent) for row, line in enumerate(lines, 1))


def _rows_in_strings(lines: Sequence[str]) -> set[int]:
    rows: set[int] = set()
    starts: list[int] = []  # of f-strings that are open, one within the other
    for token in tokenize.generate_tokens(iter(lines).__next__):
        change = _STRINGS.get(token.type, 0)
        if change > 0: starts.append(token.start[0])
        first = starts.pop() if change < 0 else token.start[0]
        if change < 0 or token.type == tokenize.STRING: rows.update(range(first + 1, token.end[0] + 1))
    return rows
