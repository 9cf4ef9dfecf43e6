"""Texts of functions: of those that stand inside of others, and of those whose file changes."""
from __future__ import annotations

import inspect
import linecache
import sys
import textwrap
import tokenize
import types
import weakref
from typing import Any, NamedTuple, Sequence

# Of which code, lines, where the function begins among them, and the number of that line in the file.
_Kept = tuple[types.CodeType, list[str], int, int]
_kept: weakref.WeakKeyDictionary[types.FunctionType, _Kept] = weakref.WeakKeyDictionary()

_STRINGS = {getattr(tokenize, kind, None): change for kind, change in
            (("FSTRING_START", 1), ("TSTRING_START", 1), ("FSTRING_END", -1), ("TSTRING_END", -1))}


def keep_lines(function: types.FunctionType, kernel: Any = None) -> None:
    """Keeps the text of a function as it is defined: what is at its place in the file later may be another function.

    kernel: of Triton's, around the function, which has kept it too.
    """
    function = inspect.unwrap(function)
    code = function.__code__  # %autoreload gives a function that of the new text
    if function in _kept and _kept[function][0] is code: return
    text, first = getattr(kernel, "raw_src", None), getattr(kernel, "starting_line_number", None)
    if isinstance(text, list) and first:
        _kept[function] = code, text, 0, first
        return
    # The list of all functions of the file. inspect would look for the end of this one, which takes milliseconds.
    linecache.checkcache(code.co_filename)
    text, first = linecache.getlines(code.co_filename, function.__globals__), code.co_firstlineno
    if len(text) >= first: _kept[function] = code, text, first - 1, first


def lines_of(function: types.FunctionType) -> tuple[list[str], int]:
    """The text of a function from its decorators on, and the number of its first line. OSError: there is none."""
    code, text, start, first = _kept.get(function, (None, [], 0, 0))
    if code is not function.__code__:
        # What the prompt of Python 3.13 keeps is found by the function; a wrapper would be what it wraps.
        return inspect.getsourcelines(function.__code__ if hasattr(function, "__wrapped__") else function)
    return inspect.getblock(text[start:]), first


def dedented(lines: Sequence[str]) -> str:
    """Lines of code without the indentation of the first; lines that begin within a string keep theirs."""
    indent = lines[0][:len(lines[0]) - len(lines[0].lstrip(" \t"))] if lines else ""
    try:
        kept = _rows_in_strings(lines) if indent else set()
    except (tokenize.TokenError, SyntaxError):
        return textwrap.dedent("".join(lines))  # whoever parses it says what is wrong
    return "".join(line if row in kept else line.removeprefix(indent) for row, line in enumerate(lines, 1))


class AggregateSource(NamedTuple):
    """A class under Triton's _aggregate as it is written, and what its functions see."""
    text: str
    file: str
    line: int
    nonlocals: dict[str, Any]
    variables: dict[str, Any]


def is_aggregate(value: Any) -> bool:
    return isinstance(value, type) and getattr(value, "__triton_aggregate__", False)


def aggregate_source(cls: Any) -> AggregateSource:
    inner = inspect.getclosurevars(cls.__setattr__).nonlocals["cls"]  # the class under Triton's own
    lines, line = inspect.getsourcelines(inner)
    nonlocals: dict[str, Any] = {}
    for member in vars(inner).values():
        fn = inspect.unwrap(getattr(member, "fn", getattr(member, "__func__", member)))
        if inspect.isfunction(fn): nonlocals.update(inspect.getclosurevars(fn).nonlocals)
    return AggregateSource(dedented(lines), inspect.getsourcefile(inner) or "<string>", line, nonlocals,
                           vars(sys.modules[inner.__module__]))


def _rows_in_strings(lines: Sequence[str]) -> set[int]:
    rows: set[int] = set()
    starts: list[int] = []  # of f-strings that are open, one within the other
    for token in tokenize.generate_tokens(iter(lines).__next__):
        change = _STRINGS.get(token.type, 0)
        if change > 0: starts.append(token.start[0])
        first = starts.pop() if change < 0 else token.start[0]
        if change < 0 or token.type == tokenize.STRING: rows.update(range(first + 1, token.end[0] + 1))
    return rows
