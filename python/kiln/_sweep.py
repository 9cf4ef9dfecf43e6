"""kiln.sweep: the points of a sweep as tasks, in this process or on the workers of an executor."""
from __future__ import annotations

import itertools
from typing import Any, Callable, Iterable, Mapping

from kiln._sources import names_in, plan_of

_KEYS = ("variant", "us", "spread", "speedup", "verdict", "problem")


def sweep(what: str | Callable, axes: Mapping[str, Iterable], executor: Any, options: Mapping[str, Any],
          caller: Mapping[str, Any]) -> list[dict[str, Any]]:
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"kiln.sweep takes an executor with submit(), got {type(executor).__name__}")
    for name, of in axes.items():
        if not isinstance(of, Iterable): raise TypeError(f"kiln.sweep: the axis '{name}' is a list of values, got {of!r}")
    values = {name: list(of) for name, of in axes.items()}
    if not values or not all(values.values()): raise ValueError("kiln.sweep needs axes with values: {'n': [256, 1024]}")
    for name in values:
        if not name.isidentifier(): raise ValueError(f"an axis is a variable of the expression, not {name!r}")
    if callable(what):
        function = getattr(what, "__name__", "")
        if not function.isidentifier():
            raise TypeError("kiln.sweep takes the text of an expression or a function with a name: it goes to the "
                            "session by its source")
        text, names = f"{function}({', '.join(f'{name}={name}' for name in values)})", {function: what}
    elif isinstance(what, str):
        used = " ".join([what, *(str(v) for v in options.values())])
        text, names = what, {name: caller[name] for name in names_in(used) if name in caller and name not in values}
    else:
        raise TypeError(f"kiln.sweep takes the text of an expression or a function, got {type(what).__name__}")
    points = [dict(zip(values, point)) for point in itertools.product(*values.values())]
    lines = [_line(text, point, options) for point in points]
    # Texts, not functions: those of a program cannot be found by a worker's pickle, nor their source behind it.
    texts, tensors = _sendable(names, strict=callable(what))
    if executor is None: found = [_measure(line, texts, tensors) for line in lines]
    else: found = _results([executor.submit(_measure, line, texts, tensors) for line in lines])
    return [{**point, **row} for point, rows in zip(points, found) for row in rows]


def _line(text: str, point: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    words = ["sweep", text, *(f"{name}=[{value!r}]" for name, value in point.items())]
    # A setup is code in a string; what else is a text is a word, as cache="hot".
    words += [f"{name}={value!r}" if name == "setup" else f"{name}={value}" for name, value in options.items()]
    if "lock" not in options: words.append("lock=on")  # workers that share a device take turns
    return " ".join(words)


def _sendable(names: Mapping[str, Any], strict: bool) -> tuple[list[tuple[str, str, int]], dict[str, Any]]:
    """Texts that define the names and what they refer to, and those that are tensors."""
    texts, tensors = [], {}
    for step in plan_of(names, strict):
        if step.is_absent or step.problem: continue
        if step.tensor is None: texts.append((step.text, step.file, step.line))
        elif step.name in names: tensors[step.name] = names[step.name]
        else: raise TypeError(f"a function refers to the tensor '{step.name}': the function makes it in a sweep, or the "
                              "text of an expression names it")
    return texts, tensors


def _results(futures: list) -> list:
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures: future.cancel()
        raise


def _measure(line: str, texts: list[tuple[str, str, int]], tensors: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of one point. Runs on a worker, whose session it is that measures."""
    from kiln import _session
    session = _session.session()
    with session._lock:
        for text, file, number in texts: session._told(session._session.define, text, file, number)
        for name, tensor in tensors.items(): session[name] = tensor
        table = session.command(line)
        rows = session._python(table._ask(f"[[row[key] for key in {_KEYS!r}] for row in _kiln_table]"))
    return [dict(zip(_KEYS, row)) for row in rows]
