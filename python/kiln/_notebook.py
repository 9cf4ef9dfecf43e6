"""Kiln's % commands in IPython and Jupyter: `%load_ext kiln`."""
from __future__ import annotations

import argparse
import ast
import linecache
import shlex
import sys
from typing import Any, Callable, Mapping

from kiln import _kiln
from kiln._results import Table
from kiln._session import CommandError, Opaque, session


def load(shell: Any) -> None:
    """Registers each command of the prompt as a line magic, but for names that IPython has (`%kiln NAME` runs those),
    `%kiln` for any of them, and the cell magic `%%kiln`."""
    session().progress = _Progress(shell)
    taken = shell.magics_manager.magics["line"]
    for name, synopsis, help, description in _kiln.Session.commands():
        if name in taken and not _is_ours(taken[name]): continue
        shell.register_magic_function(_line_magic(shell, name, description), "line", name)
        _complete(shell, "%" + name, lambda line: line)
    shell.register_magic_function(_any_command(shell), "line", "kiln")
    shell.register_magic_function(_cell(shell), "cell", "kiln")
    _complete(shell, "%kiln", lambda line: "%" + line.partition("%kiln")[2].lstrip())


def unload(shell: Any) -> None:
    session().progress = None
    for kind in ("line", "cell"):
        magics = shell.magics_manager.magics[kind]
        for name in [n for n, magic in magics.items() if _is_ours(magic)]: del magics[name]


class _Progress:
    """Shows how far a command is: in a notebook as an output that changes, else on the terminal."""

    def __init__(self, shell: Any) -> None:
        self._is_notebook, self._shown = hasattr(shell, "kernel"), None

    def __call__(self, line: str) -> None:
        if not self._is_notebook:
            if sys.stderr.isatty(): sys.stderr.write("\r\033[K" + line)
            return
        from IPython.display import display
        data = {"text/plain": line}
        if self._shown is not None: self._shown.update(data, raw=True)
        elif line: self._shown = display(data, raw=True, display_id=True)
        if not line: self._shown = None


def _ours(magic: Callable) -> Callable:
    from IPython.core.magic import no_var_expand
    magic.is_kiln = True
    return no_var_expand(magic)  # braces and dollars are the line's own


def _is_ours(magic: Any) -> bool:
    return getattr(magic, "is_kiln", False)


def _show(value: Any) -> None:
    from IPython.display import display
    display(value)


def _caller(shell: Any) -> Any:
    """The frame of the notebook's code that runs the magic: a cell, or a function that a cell defined."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals is not shell.user_ns: frame = frame.f_back
    return frame


def _run(shell: Any, line: str) -> Any:
    caller = _caller(shell)
    # As IPython has it: nothing is shown.
    is_quiet = line.rstrip().endswith(";")
    line = line.rstrip().removesuffix(";")
    namespace: Mapping[str, Any] = shell.user_ns
    if caller is not None and caller.f_locals is not shell.user_ns: namespace = {**namespace, **caller.f_locals}
    try:
        value = session().command(line, namespace)
    except (CommandError, KeyboardInterrupt) as e:
        if getattr(e, "value", None) is not None: _show(e.value)
        raise
    if is_quiet: return None
    if isinstance(value, str):
        sys.stdout.write(value if value.endswith("\n") else value + "\n")
        return None
    # IPython shows what the last line of a cell gives, and nothing of the lines before it.
    if isinstance(value, Table) and caller is not None and not _is_shown_by_ipython(shell, caller):
        text = linecache.getline(caller.f_code.co_filename, caller.f_lineno).strip()
        if text.startswith("get_ipython().run_line_magic("): _show(value)
    return value


def _is_shown_by_ipython(shell: Any, frame: Any) -> bool:
    """Whether the line of a cell that runs is an expression whose value IPython shows."""
    if frame.f_code.co_name != "<module>": return False
    try:
        lines = ast.parse("".join(linecache.getlines(frame.f_code.co_filename))).body
    except SyntaxError:
        return False
    shown = {"all": lines, "none": []}.get(shell.ast_node_interactivity, lines[-1:])
    return any(isinstance(n, ast.Expr) and n.lineno <= frame.f_lineno <= n.end_lineno for n in shown)


def _line_magic(shell: Any, name: str, description: str) -> Callable:

    def magic(line: str) -> Any:
        return _run(shell, f"{name} {line}")

    magic.__name__, magic.__doc__ = name, description
    return _ours(magic)


def _any_command(shell: Any) -> Callable:

    def kiln(line: str) -> Any:
        """%kiln NAME ARGUMENTS: any command of Kiln, also those whose names IPython has (%kiln time f(x))."""
        return _run(shell, line.strip() or "help")

    return _ours(kiln)


def _cell(shell: Any) -> Callable:
    parser = argparse.ArgumentParser(prog="%%kiln", add_help=False, exit_on_error=False)
    parser.add_argument("-o", "--output", action="append", default=[])

    def kiln(line: str, cell: str) -> None:
        """%%kiln [-o NAME,…]: runs the cell as Kiln's prompt would, kernels and % commands included.

        Names that the notebook has are the notebook's; those behind -o are set in the notebook afterwards.
        """
        try:
            options, rest = parser.parse_known_args(shlex.split(line))
        except (argparse.ArgumentError, ValueError) as e:
            raise CommandError(f"%%kiln: {e}") from None
        if rest: raise CommandError(f"%%kiln takes -o NAME,…, not {' '.join(rest)}")
        names = [name for text in options.output for name in text.split(",") if name]
        session().run(cell, shell.user_ns)
        values = {name: session()[name] for name in names}
        for name, value in values.items():
            if isinstance(value, Opaque):
                raise CommandError(f"%%kiln -o {name}: Python has no counterpart of {value!r}")
        shell.user_ns.update(values)

    return _ours(kiln)


def _complete(shell: Any, command: str, as_prompt: Callable[[str], str]) -> None:
    """Tab behind a command gives what it gives at the prompt."""

    def completer(_: Any, event: Any) -> list[str]:
        before = as_prompt(event.line)
        found, replaced = session().complete(before)
        # IPython takes what begins with the symbol at the cursor, which its own delimiters bound.
        cut = replaced - len(event.symbol)
        symbol = event.symbol[:max(-cut, 0)]
        texts = [symbol + candidate.strip()[max(cut, 0):] for candidate in found]
        if not event.symbol.startswith("-"): texts += [n for n in shell.user_ns if n.startswith(event.symbol) and
                                                       event.symbol and not n.startswith("_")]
        return list(dict.fromkeys(texts))

    shell.set_hook("complete_command", completer, str_key=command)
