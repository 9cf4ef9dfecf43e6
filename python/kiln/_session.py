"""Kiln's prompt inside of Python: its % commands on the kernels, functions and tensors of a program or a notebook."""
from __future__ import annotations

import ast
import atexit
import json
import os
import re
import site
import sys
import sysconfig
import threading
import time
import weakref
from typing import Any, Callable, Mapping

from kiln import _kiln
from kiln._results import Plot, Table
from kiln._sources import Conflict, Unsendable, names_in, plan_of

__all__ = ["CommandError", "Interrupted", "Opaque", "Plot", "Session", "Table", "session"]
_DEEPEST = 50  # lists in lists


class CommandError(_kiln.Error):
    """What a command or a text of a session ended with. `value` is what a command had found before it, or None.

    IPython shows its text alone: the calls that led here are Kiln's own.
    """
    value: Any = None

    def _render_traceback_(self) -> list:
        return str(self).splitlines()


class Interrupted(KeyboardInterrupt):
    """A KeyboardInterrupt of a session. `value` is what a command had found before it, or None."""
    value: Any = None

    def _render_traceback_(self) -> list:
        return ["KeyboardInterrupt"]


class Opaque:
    """A value of a session that Python has no counterpart for: its type and its text."""

    def __init__(self, type: str, text: str) -> None:
        self.type, self.text = type, text

    def __repr__(self) -> str:
        return f"<{self.type} of a Kiln session: {self.text}>"


class _Told:
    """Who hears how far a command is: no part of the session, which could not be let go then."""
    by: Callable[[str], Any] | None = None


class Session:
    """Variables, kernels and % commands, as the prompt of the program kiln has them (docs/prompt.md).

    device: "cpu", "cuda", "cuda:1"; None: the first GPU, else the CPU. shell: whether `!` and `%sh` may run commands of
    the system. Threads wait for one another. What is printed goes to sys.stdout. Modules of Python's own path beside
    installed packages can be imported.
    """

    def __init__(self, device: str | None = None, shell: bool = False) -> None:
        if device is not None and not (isinstance(device, str) and device):
            raise TypeError(f"kiln.Session: device is \"cpu\", \"cuda\" or \"cuda:N\", got {device!r}")
        # SIGINT is Python's own where another thread than the main one would take it.
        is_main = threading.current_thread() is threading.main_thread()
        told = self._told_progress = _Told()
        self._session = _kiln.Session(lambda text: sys.stdout.write(text), device or "", shell, is_main,
                                      lambda line: told.by(line) if told.by else None)
        self._lock: Any = threading.RLock()  # a line's names and the line itself are one step
        _sessions.add(self)
        self._sent: dict[str, tuple[Any, Any]] = {}  # by name: a key of what was sent, and what it became there
        self._unsent: dict[str, str] = {}            # by name: why it is not there
        self._session.define(f"import sys\nsys.path[:] = {_own_paths()!r}\ndel sys\n", "<kiln.Session>", 1)
        if device is not None: self._told(self._session.evaluate, "0")  # a device that is not there is told now

    def run(self, text: str, namespace: Mapping[str, Any] | None = None) -> None:
        """Runs code and % commands as at the prompt: the values of expressions are printed.

        namespace: names in the text that it has are set first, as command() does.
        """
        with self._lock:
            self._send_names(text, namespace)
            self._told(self._session.run, text)

    def evaluate(self, expression: str, namespace: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression: numbers, texts, lists, tuples, sets and dicts as such, a tensor as one of torch
        where torch is imported, else as an array of numpy that is not for writing, a table as Table, and what else
        there is as Opaque.
        """
        with self._lock:
            self._send_names(expression, namespace)
            return self._python(self._told(self._session.evaluate, expression))

    def command(self, line: str, namespace: Mapping[str, Any] | None = None) -> Any:
        """Runs a % command ("bench f(x) budget=2") and gives its tables as a Table, else its text, else None.

        namespace: where the names of the line are looked up. Functions and kernels go by their source, with what they
        refer to; tensors share their memory; numbers, texts, lists and dicts are copied; modules are imported by Kiln.
        Raises CommandError, and Interrupted (a KeyboardInterrupt) where it was interrupted; their `value` is what was
        found before.
        """
        with self._lock:
            self._send_names(line, namespace)
            text, value, problem, was_interrupted = self._told(self._session.command, line)
            found = self._python(value)
        text = text.lstrip("\n")
        if isinstance(found, Table): found.text_before = text
        if problem is None and was_interrupted: problem = Interrupted("interrupted")
        if problem is not None:
            if text and not isinstance(found, Table): sys.stdout.write(text)
            if isinstance(problem, _kiln.Error): problem = self._explained(problem)
            elif not isinstance(problem, Interrupted): problem = Interrupted(*problem.args)
            problem.value = found
            raise problem
        return found if found is not None else text or None

    def complete(self, before_cursor: str) -> tuple[list[str], int]:
        """Candidates for the end of a text, and how many of its characters they replace."""
        with self._lock: return self._session.complete(before_cursor)

    @property
    def progress(self) -> Callable[[str], Any] | None:
        """Called with a line that tells how far a command is, in place of the last, and with "" when it has ended."""
        return self._told_progress.by

    @progress.setter
    def progress(self, by: Callable[[str], Any] | None) -> None:
        self._told_progress.by = by

    def interrupt(self) -> None:
        """What runs in another thread ends with KeyboardInterrupt."""
        self._session.interrupt()

    def __getitem__(self, name: str) -> Any:
        return self.evaluate(_checked(name))

    def __setitem__(self, name: str, value: Any) -> None:
        with self._lock:
            self._sent.pop(_checked(name), None)
            try:
                self._send({name: value}, strict=True)
            except Unsendable as e:
                raise TypeError(f"'{name}': {e}") from None

    def __delitem__(self, name: str) -> None:
        with self._lock: self._remove(_checked(name))

    def __contains__(self, name: str) -> bool:
        with self._lock: return self._session.variable(_checked(name)).kind != "none"

    __iter__ = None

    # --- values ------------------------------------------------------------------------------------------------------

    def _python(self, value: Any, depth: int = 0) -> Any:
        if value.kind == "none": return None
        if value.kind == "table": return Table(self, value)
        if value.kind == "tensor": return _tensor(value)
        if value.type in ("torch.dtype", "torch.device") and (torch := sys.modules.get("torch")) is not None:
            return _of_torch(torch, value)
        is_container = value.type in ("tuple", "list", "dict", "set")
        if value.kind == "plain":
            if not is_container or "(" not in value.repr: return json.loads(value.json)
            try:
                return ast.literal_eval(value.repr)  # JSON has no tuples
            except (ValueError, SyntaxError):
                pass  # nan or inf among them
        if value.type == "Tensor":  # of complex numbers, which leave as pairs
            self._session.define("from torch import view_as_real as _kiln_view\n", "<kiln.Session>", 1)
            try:
                return _complex_tensor(self._with({"_kiln_z": value}, "_kiln_view(_kiln_z)"))
            finally:
                self._session.remove("_kiln_view")
        if value.type == "complex": return complex(value.repr)
        if value.type == "bytes": return ast.literal_eval(value.repr)
        if value.type == "range": return range(*(int(n) for n in re.findall(r"-?\d+", value.repr)))
        if depth > _DEEPEST or not is_container: return Opaque(value.type, value.repr)
        # Item by item, without builtins, which a program may have bound to something else.
        def items(of: str) -> list:
            listed = self._with({"_kiln_items": value}, f"[{of} for _kiln_item in _kiln_items]")
            count = len(json.loads(self._with({"_kiln_list": listed}, "[1 for _ in _kiln_list]").json))
            return [self._python(self._with({"_kiln_list": listed}, f"_kiln_list[{i}]"), depth + 1)
                    for i in range(count)]
        if value.type == "dict":
            return dict(zip(items("_kiln_item"), items("_kiln_items[_kiln_item]")))
        return {"tuple": tuple, "list": list, "set": set}[value.type](items("_kiln_item"))

    def _with(self, values: Mapping[str, Any], expression: str) -> Any:
        """The value of an expression over values of this session, which have names for that long."""
        with self._lock:
            for name, value in values.items(): self._session.set(name, value)
            try:
                return self._told(self._session.evaluate, expression)
            finally:
                for name in values: self._session.remove(name)

    # --- names -------------------------------------------------------------------------------------------------------

    def _send_names(self, text: str, namespace: Mapping[str, Any] | None) -> None:
        if namespace is None: return
        names = names_in(text)
        for name in names:
            if name not in namespace: self._forget(name)
        try:
            self._send({name: namespace[name] for name in names if name in namespace}, strict=False)
        except Conflict as e:
            raise CommandError(f"error: {e}") from None

    def _send(self, values: Mapping[str, Any], strict: bool) -> None:
        for step in plan_of(values, strict):
            if step.is_absent:
                self._forget(step.name)
                continue
            if step.problem:
                # What the name meant before is not what it means now.
                self._remove(step.name)
                self._unsent[step.name] = step.problem
                continue
            key, became = self._sent.get(step.name, (None, None))
            # A program may have bound the name again meanwhile.
            is_ours = became is not None and self._session.holds(step.name, became)
            is_own = not is_ours and self._session.variable(step.name).kind != "none"
            is_helper = step.is_function and step.name not in values
            if strict and is_own and is_helper:
                raise Unsendable(f"it refers to '{step.name}', and the session has one of its own; a session has one set "
                                 "of names, so give one of them another, or delete the session's")
            if step.key is not None and key == step.key and is_ours: continue
            try:
                if step.tensor is not None: self._session.set(step.name, step.tensor())
                else: self._session.define(step.text, step.file, step.line)
            except (_kiln.Error, Unsendable) as e:
                self._remove(step.name)
                if strict: raise e if isinstance(e, Unsendable) else Unsendable(str(e)) from None
                self._unsent[step.name] = str(e)
                continue
            self._unsent.pop(step.name, None)
            self._sent[step.name] = step.key, self._session.variable(step.name)

    def _forget(self, name: str) -> None:
        """A name that Python no longer has, if it still is what came from there."""
        _, became = self._sent.pop(name, (None, None))
        if became is not None and self._session.holds(name, became): self._session.remove(name)

    def _remove(self, name: str) -> None:
        self._sent.pop(name, None)
        self._session.remove(name)

    def _told(self, call: Any, *args: Any) -> Any:
        try:
            return call(*args)
        except _kiln.Error as e:
            raise self._explained(e) from None
        except KeyboardInterrupt as e:
            raise Interrupted(*e.args) from None

    def _explained(self, error: _kiln.Error) -> CommandError:
        text = str(error)
        for name in re.findall(r"'([^']+)'", error.message) if error.kind == "name" else ():
            if name in self._unsent: text += f"\n  note: '{name}' of Python is not in the session: {self._unsent[name]}"
        out = CommandError(text)
        for part in ("kind", "message", "file", "line", "column"): setattr(out, part, getattr(error, part))
        return out


class _Lost:
    """In place of the lock of a session that another thread was in as this process was forked: nobody will leave it."""

    def __enter__(self) -> None:
        raise CommandError("the session was at work in another thread when this process was forked; a new "
                           "kiln.Session() works here")

    def __exit__(self, *raised: Any) -> None:
        pass


def _after_fork() -> None:
    global _default
    for one in list(_sessions):
        if isinstance(one._lock, _Lost): continue
        if one._lock.acquire(blocking=False): one._lock.release()
        else: one._lock = _Lost()
        if one is _default and isinstance(one._lock, _Lost): _default = None


if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)
_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_default: Session | None = None


def session() -> Session:
    """The session that functions and notebooks share; made when it is first asked for."""
    global _default
    if _default is None: _default = Session()
    return _default


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name.isidentifier(): raise KeyError(f"{name!r} is no variable's name")
    return name


def _own_paths() -> list[str]:
    """Where Python finds the user's modules: not those of Python and of installed packages, which Kiln cannot run."""
    others = {*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values()}
    others |= {sysconfig.get_config_var("DESTSHARED")}
    found = [os.getcwd() if path == "" else path for path in sys.path]
    return [path for path in dict.fromkeys(found)
            if path not in others and os.path.basename(path) not in _INSTALLED and os.path.isdir(path)]


# Folders of installed packages wherever they are: PYTHONPATH and .pth files name those of other environments.
_INSTALLED = ("site-packages", "dist-packages")


def _end_output() -> None:
    _kiln.Session.end_output()
    time.sleep(0.01)  # whoever waits to print gets through


atexit.register(_end_output)


def _of_torch(torch: Any, value: Any) -> Any:
    if value.type == "torch.dtype": return getattr(torch, value.repr.rpartition(".")[2])
    index = re.findall(r"index=(\d+)", value.repr)
    return torch.device(re.search(r"type='(\w+)'", value.repr)[1], *(int(i) for i in index))


def _tensor(value: Any) -> Any:
    if (torch := sys.modules.get("torch")) is not None: return torch.from_dlpack(value)
    try:
        import numpy
    except ImportError:
        return value
    try:
        return numpy.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as e:
        raise CommandError(f"numpy cannot have this tensor ({e}); torch can, where it is imported") from None


def _complex_tensor(parts: Any) -> Any:
    found = _tensor(parts)
    if (torch := sys.modules.get("torch")) is not None: return torch.view_as_complex(found)
    return found.view(f"complex{16 * found.itemsize}")[..., 0]


def run_command(name: str, expression: str, options: Mapping[str, Any], depth: int) -> Any:
    """Runs `%name expression option=value …` with the names of the caller `depth` frames up."""
    if not isinstance(expression, str):
        raise TypeError(f"kiln.{name} takes the text of an expression, got {type(expression).__name__}: it is run "
                        f"again and again, as in kiln.{name}(\"f(x)\")")
    frame = sys._getframe(depth)
    words = [name, expression, *(f"{key}={value}" for key, value in options.items() if value is not None)]
    return session().command(" ".join(words), {**frame.f_globals, **frame.f_locals})
