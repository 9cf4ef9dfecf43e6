#!/usr/bin/env python3
"""A terminal session as an SVG: drives a program through a pseudo-terminal and draws what its screen shows.

    docs/pictures/terminal_svg.py OUT.svg ENTRIES [--columns N] [--program FILE]

ENTRIES is a file of what is typed: entries separated by lines of three dashes. An entry is typed once the prompt of the
one before has come back. The picture has a light and a dark form (prefers-color-scheme). Python's library suffices.
"""

import argparse
import codecs
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import fcntl
import time
import unicodedata
from xml.sax.saxutils import escape

ROWS = 400  # the screen is this high, so that nothing scrolls away; the picture ends below the last line
CELL_WIDTH, LINE_HEIGHT, FONT_SIZE, MARGIN = 7.8, 18, 13, 14
SECONDS_PER_ENTRY = 180

# The eight colours of terminals as (light, dark), then their bright forms.
COLOURS = [
    ("#1d2430", "#9aa5b4"), ("#b3261e", "#ff8f85"), ("#1b7a34", "#7bd88f"), ("#8a6100", "#e5c07b"),
    ("#1d5fc4", "#82b1ff"), ("#8b35b5", "#d7a1f7"), ("#0b7285", "#66d9e8"), ("#3b4552", "#e4e8ee"),
    ("#7a8694", "#7a8694"), ("#d13c32", "#ffaba3"), ("#2c9a4b", "#a3e6b1"), ("#a87900", "#f2d58f"),
    ("#3b7ae0", "#a8c9ff"), ("#a44fd0", "#e5c2fa"), ("#1a93a8", "#99e9f2"), ("#1d2430", "#ffffff"),
]


def width_of(char):
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Screen:
    """The part of a terminal that Kiln's editor and tables use."""

    def __init__(self, columns):
        self.columns = columns
        self.cells = [[(" ", "")] * columns for _ in range(ROWS)]
        self.row = self.column = 0
        self.style = {}
        self.pending = ""

    def feed(self, text):
        text = self.pending + text
        self.pending = ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = re.match(r"\x1b(\[[?>=]?[0-9;]*[ -/]*[@-~]|\][^\x07]*\x07|[^\[\]])", text[at:])
                if not match:
                    self.pending = text[at:]
                    return
                self.escape(match.group(1))
                at += match.end()
                continue
            self.put(text[at])
            at += 1

    def put(self, char):
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row = min(self.row + 1, ROWS - 1)
        elif char == "\b":
            self.column = max(self.column - 1, 0)
        elif char == "\t":
            self.column = min((self.column // 8 + 1) * 8, self.columns - 1)
        elif char >= " ":
            wide = width_of(char)
            if wide == 0:
                before = self.cells[self.row][max(self.column - 1, 0)]
                self.cells[self.row][max(self.column - 1, 0)] = (before[0] + char, before[1])
                return
            if self.column + wide > self.columns:
                self.column, self.row = 0, min(self.row + 1, ROWS - 1)
            self.cells[self.row][self.column] = (char, self.classes())
            if wide == 2 and self.column + 1 < self.columns:
                self.cells[self.row][self.column + 1] = ("", "")
            self.column += wide

    def escape(self, code):
        if not code.startswith("[") or code[1:2] in "?>=":
            return
        kind = code[-1]
        numbers = [int(n) if n else 0 for n in code[1:-1].split(";")]
        many = max(numbers[0], 1)
        if kind == "m":
            self.set_style(numbers)
        elif kind == "A":
            self.row = max(self.row - many, 0)
        elif kind == "B":
            self.row = min(self.row + many, ROWS - 1)
        elif kind == "C":
            self.column = min(self.column + many, self.columns - 1)
        elif kind == "D":
            self.column = max(self.column - many, 0)
        elif kind == "G":
            self.column = min(many, self.columns) - 1
        elif kind == "H":
            self.row = many - 1
            self.column = max(numbers[1], 1) - 1 if len(numbers) > 1 else 0
        elif kind == "K":
            first = self.column if numbers[0] == 0 else 0
            last = self.columns if numbers[0] != 1 else self.column + 1
            self.cells[self.row][first:last] = [(" ", "")] * (last - first)
        elif kind == "J" and numbers[0] == 0:
            self.cells[self.row][self.column:] = [(" ", "")] * (self.columns - self.column)
            for row in range(self.row + 1, ROWS):
                self.cells[row] = [(" ", "")] * self.columns

    def set_style(self, numbers):
        at = 0
        while at < len(numbers):
            n = numbers[at]
            if n == 0:
                self.style = {}
            elif n in (1, 2, 3, 4, 7):
                self.style[{1: "bold", 2: "dim", 3: "italic", 4: "under", 7: "inverse"}[n]] = True
            elif n in (22, 23, 24, 27):
                for name in {22: ("bold", "dim"), 23: ("italic",), 24: ("under",), 27: ("inverse",)}[n]:
                    self.style.pop(name, None)
            elif 30 <= n <= 37:
                self.style["colour"] = n - 30
            elif 90 <= n <= 97:
                self.style["colour"] = n - 90 + 8
            elif n == 39:
                self.style.pop("colour", None)
            elif n in (38, 48) and at + 2 < len(numbers) and numbers[at + 1] == 5:
                if n == 38 and numbers[at + 2] < 16:
                    self.style["colour"] = numbers[at + 2]
                at += 2
            at += 1

    def classes(self):
        names = [name for name in ("bold", "dim", "italic", "under", "inverse") if name in self.style]
        if "colour" in self.style:
            names.append(f"c{self.style['colour']}")
        return " ".join(names)

    def text(self):
        return "\n".join("".join(c for c, _ in row).rstrip() for row in self.cells).rstrip()

    def last_line(self):
        return "".join(c for c, _ in self.cells[self.row])


def svg_of(screen, title):
    rows = screen.text().split("\n")
    width = 2 * MARGIN + screen.columns * CELL_WIDTH
    height = 2 * MARGIN + 26 + len(rows) * LINE_HEIGHT
    light = "".join(f".c{i} {{ fill: {c[0]} }}\n" for i, c in enumerate(COLOURS))
    dark = "".join(f".c{i} {{ fill: {c[1]} }}\n" for i, c in enumerate(COLOURS))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}">\n<style>\n'
        f"text {{ font: {FONT_SIZE}px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; "
        "fill: #1d2430; white-space: pre }\n"
        ".page { fill: #fbfcfd; stroke: #d3d9e0 } .dot { fill: #cfd6de } .mark { fill: #1d2430; opacity: .12 }\n"
        ".bold { font-weight: 600 } .dim { opacity: .62 } .italic { font-style: italic } "
        f".under {{ text-decoration: underline }}\n{light}"
        "@media (prefers-color-scheme: dark) {\ntext { fill: #d5dbe3 } .page { fill: #14181f; stroke: #333c49 }\n"
        f".dot {{ fill: #3a4350 }} .mark {{ fill: #ffffff; opacity: .16 }}\n{dark}}}\n</style>\n"
        f'<rect class="page" x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8"/>\n'
    ]
    out += [f'<circle class="dot" cx="{MARGIN + 6 + 18 * i}" cy="{MARGIN + 3}" r="5.5"/>\n' for i in range(3)]
    for number, _ in enumerate(rows):
        y = MARGIN + 26 + number * LINE_HEIGHT + FONT_SIZE
        cells = screen.cells[number]
        at = 0
        while at < len(cells):
            end = at + 1
            while end < len(cells) and cells[end][1] == cells[at][1]:
                end += 1
            text, style = "".join(c for c, _ in cells[at:end]), cells[at][1]
            shown = text.rstrip() if "inverse" not in style and "under" not in style else text
            lead = len(shown) - len(shown.lstrip())
            if "inverse" in style:
                out.append(f'<rect class="mark" x="{MARGIN + at * CELL_WIDTH:.1f}" y="{y - FONT_SIZE}" '
                           f'width="{(end - at) * CELL_WIDTH:.1f}" height="{LINE_HEIGHT}"/>\n')
            if shown.strip():
                shown = shown.lstrip()
                x = MARGIN + (at + lead) * CELL_WIDTH
                length = sum(width_of(c[0]) for c in shown) * CELL_WIDTH
                classes = " ".join(c for c in style.split() if c != "inverse")
                classes = f' class="{classes}"' if classes else ""
                # Whatever the font, columns stand where they stood.
                out.append(f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}"{classes}>{escape(shown)}</text>\n')
            at = end
    return "".join(out) + "</svg>\n"


def session(program, entries, columns):
    """What the screen shows after all entries."""
    screen = Screen(columns)
    folder = tempfile.mkdtemp()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8", XDG_STATE_HOME=folder, XDG_CONFIG_HOME=folder,
                          KILN_PAGER="", COLUMNS=str(columns))
        os.environ.pop("NO_COLOR", None)
        os.execv(program, [program])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))

    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may come in two reads

    def read_until(number):
        """Until the prompt of that number stands alone at the cursor, and nothing has come for a moment."""
        until = time.time() + SECONDS_PER_ENTRY
        while time.time() < until:
            ready, _, _ = select.select([terminal], [], [], 0.25)
            if ready:
                try:
                    screen.feed(decoder.decode(os.read(terminal, 65536)))
                except OSError:
                    raise SystemExit("the program ended:\n" + screen.text())
            elif re.match(rf"\[{number}\]\s*$", screen.last_line()):
                return
            elif re.match(r"\.\.\.\s*$", screen.last_line()):
                os.write(terminal, b"\r")  # a block ends with an empty line
        raise SystemExit(f"no prompt [{number}] within {SECONDS_PER_ENTRY} s:\n{screen.text()}")

    read_until(1)
    for number, entry in enumerate(entries, 2):
        # As a paste, so that the editor indents nothing on its own.
        os.write(terminal, b"\x1b[200~" + entry.encode() + b"\x1b[201~")
        time.sleep(0.3)
        os.write(terminal, b"\r")
        read_until(number)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    # The last prompt waits for nothing.
    screen.cells[screen.row] = [(" ", "")] * columns
    return screen


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out")
    arguments.add_argument("entries")
    arguments.add_argument("--columns", type=int, default=120)
    arguments.add_argument("--program", default="build/release/bin/kiln")
    given = arguments.parse_args()
    with open(given.entries, encoding="utf-8") as file:
        entries = [e.strip("\n") for e in file.read().split("\n---\n")]
    screen = session(given.program, entries, given.columns)
    with open(given.out, "w", encoding="utf-8") as file:
        file.write(svg_of(screen, "a session at Kiln's prompt"))
    print(screen.text())


if __name__ == "__main__":
    sys.exit(main())
