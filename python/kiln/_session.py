"""Kiln's prompt inside of Python: its % commands on the kernels, functions and tensors of a program or a notebook."""
from __future__ import annotations

import inspect
import json
import re
import sys
import threading
from typing import Any, Mapping

from kiln import _kiln
from kiln._sources import Unsendable, names_in, plan_of
from kiln._results import Plot, Table

__all__ = ["CommandError", "Plot", "Session", "Table", "session"]


class CommandError(_kiln.Error):
    """What a command or a text of a session ended with. `value` is what a command had found before it, or None.

    IPython shows its text alone: the calls that led here are Kiln's own.
    """
    value: Any = None

    def _render_traceback_(self) -> list:
        return str(self).splitlines()


class Session:
    """Variables, kernels and % commands, as the prompt of the program kiln has them (docs/prompt.md).

    device: "cpu", "cuda", "cuda:1"; None: the first GPU, else the CPU. shell: whether `!` and `%sh` may run commands of
    the system. For one thread at a time. What is printed goes to sys.stdout.
    """

    def __init__(self, device: str | None = None, shell: bool = False) -> None:
        # SIGINT is Python's own where another thread than the main one would take it.
        is_main = threading.current_thread() is threading.main_thread()
        self._session = _kiln.Session(lambda text: sys.stdout.write(text), device or "", shell, is_main)
        self._sent: dict[str, Any] = {}    # by name: the text or the object that it stands for there
        self._unsent: dict[str, str] = {}  # by name: why it is not there

    def run(self, text: str, namespace: Mapping[str, Any] | None = None) -> None:
        """Runs code and % commands as at the prompt: the values of expressions are printed.

        namespace: names in the text that it has are set first, as command() does.
        """
        self._send_names(text, namespace)
        self._told(self._session.run, text)

    def evaluate(self, expression: str, namespace: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression: numbers, texts, lists, tuples (as lists) and dicts as such, a tensor as one of
        torch where torch is imported, else as an array of numpy, a table as Table, and what else there is as its text.
        """
        self._send_names(expression, namespace)
        return self._python(self._told(self._session.evaluate, expression))

    def command(self, line: str, namespace: Mapping[str, Any] | None = None) -> Any:
        """Runs a % command ("bench f(x) budget=2") and gives its tables as a Table, else its text, else None.

        namespace: where the names of the line are looked up. Functions and kernels go by their source, with what they
        refer to; tensors share their memory; numbers, texts, lists and dicts are copied; modules are imported by Kiln.
        Raises CommandError, and KeyboardInterrupt where it was interrupted; their `value` is what was found before.
        """
        self._send_names(line, namespace)
        text, value, problem = self._told(self._session.command, line)
        found = self._python(value)
        if problem is not None:
            if text: sys.stdout.write(text)
            problem = self._explained(problem) if isinstance(problem, _kiln.Error) else problem
            problem.value = found
            raise problem
        if isinstance(found, Table): found.text_before = text
        return found if found is not None else text or None

    def complete(self, before_cursor: str) -> tuple[list[str], int]:
        """Candidates for the end of a text, and how many of its characters they replace."""
        return self._session.complete(before_cursor)

    def interrupt(self) -> None:
        """What runs in another thread ends with KeyboardInterrupt."""
        self._session.interrupt()

    def __getitem__(self, name: str) -> Any:
        return self.evaluate(_checked(name))

    def __setitem__(self, name: str, value: Any) -> None:
        try:
            self._send({_checked(name): value}, strict=True)
        except Unsendable as e:
            raise TypeError(f"'{name}': {e}") from None

    def __delitem__(self, name: str) -> None:
        self._sent.pop(name, None)
        self._session.remove(_checked(name))

    # --- values ------------------------------------------------------------------------------------------------------

    def _python(self, value: Any) -> Any:
        if value.kind == "none": return None
        if value.kind == "plain": return json.loads(value.json)
        if value.kind == "table": return Table(self, value)
        if value.kind == "tensor": return _tensor(value)
        return value.repr

    def _with(self, values: Mapping[str, Any], expression: str) -> Any:
        """The value of an expression over values of this session, which have names for that long."""
        for name, value in values.items(): self._session.set(name, value)
        try:
            return self._told(self._session.evaluate, expression)
        finally:
            for name in values: self._session.remove(name)

    # --- names -------------------------------------------------------------------------------------------------------

    def _send_names(self, text: str, namespace: Mapping[str, Any] | None) -> None:
        if namespace is None: return
        self._send({name: namespace[name] for name in names_in(text) if name in namespace}, strict=False)

    def _send(self, values: Mapping[str, Any], strict: bool) -> None:
        for step in plan_of(values, strict):
            if step.problem:
                self._unsent[step.name] = step.problem
                continue
            if step.key is not None and self._sent.get(step.name) == step.key: continue
            try:
                if step.tensor is not None: self._session.set(step.name, step.tensor())
                else: self._session.define(step.text, step.file, step.line)
            except (_kiln.Error, Unsendable) as e:
                if strict: raise
                self._unsent[step.name] = str(e)
                continue
            self._unsent.pop(step.name, None)
            self._sent[step.name] = step.key

    def _told(self, call: Any, *args: Any) -> Any:
        try:
            return call(*args)
        except _kiln.Error as e:
            raise self._explained(e) from None

    def _explained(self, error: _kiln.Error) -> CommandError:
        text = str(error)
        for name in re.findall(r"'([^']+)'", error.message) if error.kind == "name" else ():
            if name in self._unsent: text += f"\n  note: '{name}' of Python is not in the session: {self._unsent[name]}"
        out = CommandError(text)
        for part in ("kind", "message", "file", "line", "column"): setattr(out, part, getattr(error, part))
        return out


_default: Session | None = None


def session() -> Session:
    """The session that functions and notebooks share; made when it is first asked for."""
    global _default
    if _default is None: _default = Session()
    return _default


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name.isidentifier(): raise KeyError(f"{name!r} is no variable's name")
    return name


def _tensor(value: Any) -> Any:
    if (torch := sys.modules.get("torch")) is not None: return torch.from_dlpack(value)
    try:
        import numpy
    except ImportError:
        return value
    return numpy.from_dlpack(value)


def run_command(name: str, expression: str, options: Mapping[str, Any], depth: int = 2) -> Any:
    """Runs `%name expression option=value …` with the names of the caller `depth` frames up."""
    if not isinstance(expression, str):
        raise TypeError(f"kiln.{name} takes the text of an expression, got {type(expression).__name__}: it is run "
                        f"again and again, as in kiln.{name}(\"f(x)\")")
    frame = inspect.currentframe()
    for _ in range(depth): frame = frame.f_back
    words = [name, expression, *(f"{key}={value}" for key, value in options.items() if value is not None)]
    return session().command(" ".join(words), {**frame.f_globals, **frame.f_locals})
