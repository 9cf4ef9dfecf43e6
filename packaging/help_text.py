"""What `kiln --help` says, as data: the man page and the completions of shells follow from it."""
from __future__ import annotations

import dataclasses
import re
import subprocess


@dataclasses.dataclass
class Row:
    """An option, a positional or a command: `names` as they are typed, what they take, and one sentence."""
    names: list[str]
    takes: str
    help: str


@dataclasses.dataclass
class Help:
    usage: str
    summary: str
    options: list[Row]
    positionals: list[Row]
    commands: list[Row]
    closing: list[str]  # paragraphs behind the tables


_ROW = re.compile(r"  (\S+)(?: (\S.*?))?(?:\s{2,}(\S.*))?$")


def read(program: str, command: str = "") -> Help:
    """The help of the program, or of one of its commands."""
    words = [program, *([command] if command else []), "--help"]
    said = subprocess.run(words, check=True, capture_output=True, text=True, env={"COLUMNS": "10000"}).stdout
    tables: dict[str, list[Row]] = {}
    rows, head, closing = None, [], []
    before = ""
    for line in said.splitlines():
        if (title := re.fullmatch(r"(\w+):", line)):
            rows = tables.setdefault(title[1], [])
        elif rows is not None and (row := _ROW.fullmatch(line)):
            names, takes = row[1].replace("{.}", ""), row[2] or ""
            rows.append(Row(names.split(","), takes.replace(" REQUIRED", ""), row[3] or ""))
        elif rows and not rows[-1].help and before and line.startswith(" " * 10):
            rows[-1].help = line.strip()  # behind names that are too long for their column
        elif line.strip() and closing and before.strip():
            closing[-1] += " " + line.strip()
        elif line.strip():
            (closing if tables else head).append(line.strip())
        before = line
    usage = next(line for line in head if line.startswith("Usage: "))
    summary = next(line for line in head if line is not usage)
    return Help(usage.removeprefix("Usage: "), summary, tables.get("Options", []), tables.get("Positionals", []),
                tables.get("Subcommands", []), closing)


def read_all(program: str) -> tuple[Help, dict[str, Help]]:
    top = read(program)
    return top, {c.names[0]: read(program, c.names[0]) for c in top.commands}
