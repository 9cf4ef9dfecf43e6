"""kiln(1), from the program's own help."""
from __future__ import annotations

from help_text import Help, Row, read_all


def page(program: str, version: str, date: str) -> str:
    top, commands = read_all(program)
    name, _, about = top.summary.partition(": ")
    lines = [f'.TH KILN 1 "{date}" "kiln {version}" "User Commands"', ".SH NAME", f"kiln \\- {_text(about)}"]
    usage = _text(top.usage.removeprefix("kiln "))
    lines += [".SH SYNOPSIS", ".B kiln", usage, ".br", ".B kiln", "FILE.py [ARGUMENTS]"]
    lines += [".SH DESCRIPTION", _text(top.closing[0])]
    lines += [".SH OPTIONS", *_rows(top.options), ".SH COMMANDS"]
    for row in top.commands: lines += _command(row, commands[row.names[0]])
    lines += [".SH ENVIRONMENT", ".B kiln env", "lists the variables that Kiln reads, with their values and meanings."]
    for paragraph in top.closing[1:]:
        title, _, rest = paragraph.partition(": ")
        if title == "exit codes": lines += [".SH EXIT STATUS", _text(rest)]
    return "\n".join(lines) + "\n"


def _command(row: Row, help: Help) -> list[str]:
    lines = [f".SS {_text(help.usage)}", _text(row.help) + "."]
    return lines + _rows(help.positionals) + _rows([o for o in help.options if "--help" not in o.names])


def _rows(rows: list[Row]) -> list[str]:
    lines = []
    for row in rows:
        names = ", ".join(f"\\fB{_text(n)}\\fR" for n in row.names)
        lines += [".TP", names + (f" \\fI{_text(row.takes)}\\fR" if row.takes else ""), _text(row.help)]
    return lines


def _text(s: str) -> str:
    """Of roff: nothing in it is a request, and hyphens are those that are typed."""
    s = s.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + s if s[:1] in (".", "'") else s
