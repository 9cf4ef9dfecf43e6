"""What commands give: tables, which show themselves in notebooks, and plots of them."""
from __future__ import annotations

import html
import json
import os
import tempfile
from typing import Any, Iterator, Sequence


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _as_numbers(values: list[Any]) -> list[float] | None:
    """Values of an axis, which are texts where others of it could be dtypes; None: some are no numbers."""
    try:
        return [float(v) for v in values]
    except (TypeError, ValueError):
        return None


class Plot:
    """A plot as SVG; notebooks show it. `svg` is its text, save(path) writes it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike) -> None:
        """Writes the SVG into a file."""
        with open(path, "w", encoding="utf-8") as file: file.write(self.svg)

    def __repr__(self) -> str:
        return f"<kiln.Plot of {len(self.svg)} bytes of SVG; save(path) writes it>"


class Table:
    """A command's table. It does not change: what sorts it gives another.

    Attributes: columns (keys), rows (a dict for each; None: no such figure), units (by key), title, notes, and
    `tables`, the command's other tables by name. A figure of the whole table, as `best` of %tune, is an attribute too.
    t["time"] is a column, t[0] a row. One that was pickled is without its session: it is shown, written and drawn with
    ax=, and not sorted or compared.
    """

    def __init__(self, session: Any, value: Any, form: dict | None = None) -> None:
        forms = value.tables
        self._session, self._value, self._form = session, value, form or forms[0]
        data = json.loads(self._form["json"])
        self.rows: list[dict[str, Any]] = data["rows"]
        self.units: dict[str, str] = data.get("units", {})
        self.notes: list[str] = data.get("notes", [])
        self.title: str = data.get("title", "")
        self.text_before = ""  # what the command said besides
        self.columns: list[str] = self._form["columns"]
        self.tables = {} if form else {f["name"]: Table(session, value, f) for f in forms[1:]}
        self._path = f"_kiln_table.tables[{self._form['name']!r}]" if form else "_kiln_table"

    def __copy__(self) -> Table:
        return self

    def __deepcopy__(self, memo: dict) -> Table:
        return self

    def __reduce__(self) -> tuple:
        return _of_forms, ([self._form, *(t._form for t in self.tables.values())], self.text_before)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, which: int | slice | str) -> Any:
        if not isinstance(which, str): return self.rows[which]
        if which not in self.columns:
            raise KeyError(f"no column '{which}'; there are {', '.join(self.columns)}")
        return [row[which] for row in self.rows]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not name.isidentifier(): raise AttributeError(name)
        from kiln import _kiln
        if self._session is None: raise AttributeError(f"the table has no '{name}'")
        try:
            return self._session._python(self._ask(f"{self._path}.{name}"))
        except _kiln.Error as e:
            raise AttributeError(f"the table has no '{name}': {e.message}") from None

    def __repr__(self) -> str:
        return (self.text_before + self._form["text"]).rstrip("\n")

    def _repr_html_(self) -> str:
        said = f"<pre>{html.escape(self.text_before)}</pre>" if self.text_before else ""
        others = "".join(f"<details><summary>{html.escape(name)}</summary>{t._form['html']}</details>"
                         for name, t in self.tables.items() if name)
        return said + self._form["html"] + others

    def sort(self, by: str, reverse: bool = False) -> "Table":
        """The same table with its rows in the order of a column."""
        self._needs_session()
        return self._session._python(self._ask(f"{self._path}.sort({by!r}, reverse={bool(reverse)})"))

    def compare(self, earlier: "Table") -> "Table":
        """The numbers that differ from an earlier table's."""
        if not isinstance(earlier, Table): raise TypeError(f"a table is compared with a table, not {earlier!r}")
        self._needs_session()
        earlier._needs_session()
        return self._session._python(
            self._session._with({"_kiln_table": self._value, "_kiln_earlier": earlier._value},
                                f"{self._path}.compare(_kiln_earlier)"))

    def __sub__(self, earlier: "Table") -> "Table":
        return self.compare(earlier) if isinstance(earlier, Table) else NotImplemented

    def plot(self, y: str | Sequence[str] | None = None, x: str | None = None, *, ax: Any = None) -> Any:
        """Columns over x (the first column), as a Plot; y: the column of microseconds, else the first of numbers.

        ax: Axes of matplotlib's, which are drawn into and returned. Each variant has a line of its own there.
        """
        if ax is not None: return self._draw(ax, y, x)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plot.svg")
            y = str(y) if isinstance(y, str) else [str(name) for name in y] if y is not None else None
            x = str(x) if x is not None else None
            self._ask(f"{self._path}.plot(y={y!r}, x={x!r}, svg={path!r})")
            with open(path, encoding="utf-8") as file: return Plot(file.read())

    def _draw(self, ax: Any, y: str | Sequence[str] | None, x: str | None) -> Any:
        across = self.columns[0] if x is None else str(x)
        numbers = [c for c in self.columns if c != across and any(_is_number(v) for v in self[c])]
        if y is None and not numbers: raise ValueError("the table has no column of numbers to plot")
        if y is None: y = next((c for c in numbers if self.units.get(c) == "us"), numbers[0])
        places, names = _as_numbers(self[across]), list(dict.fromkeys(self[across]))
        for column in [y] if isinstance(y, str) else y:
            lines: dict[str, list[tuple[float, float]]] = {}
            for i, (row, value) in enumerate(zip(self.rows, self[column])):
                if not _is_number(value): continue
                at = places[i] if places else names.index(row[across])
                variant = row.get("variant")
                of = column if variant is None or across == "variant" else f"{variant}, {column}"
                lines.setdefault(of, []).append((at, value))
            for label, points in lines.items(): ax.plot(*zip(*sorted(points)), marker="o", label=label)
        if not places: ax.set_xticks(range(len(names)), [str(n) for n in names])
        first = y if isinstance(y, str) else y[0]
        ax.set_xlabel(across)
        ax.set_ylabel(f"{first} ({self.units[first]})" if self.units.get(first) else first)
        if self.title: ax.set_title(self.title)
        ax.legend()
        return ax

    def to_pandas(self) -> Any:
        """A DataFrame with the columns' keys; its attrs have the units."""
        import pandas
        frame = pandas.DataFrame(self.rows, columns=self.columns)
        frame.attrs["units"] = dict(self.units)
        return frame

    def to_text(self, path: str | os.PathLike | None = None) -> str | None:
        """As the prompt prints it. path: a file to write it into; None gives the text."""
        return self._write("text", path)

    def to_csv(self, path: str | os.PathLike | None = None) -> str | None:
        """As CSV, with the units in the names of the columns. path: a file to write it into; None gives the text."""
        return self._write("csv", path)

    def to_json(self, path: str | os.PathLike | None = None) -> str | None:
        """As JSON: rows, columns, units and notes. path: a file to write it into; None gives the text."""
        return self._write("json", path)

    def to_markdown(self, path: str | os.PathLike | None = None) -> str | None:
        """As a table of Markdown. path: a file to write it into; None gives the text."""
        return self._write("markdown", path)

    def to_html(self, path: str | os.PathLike | None = None) -> str | None:
        """As a table of HTML. path: a file to write it into; None gives the text."""
        return self._write("html", path)

    def _write(self, form: str, path: str | os.PathLike | None) -> str | None:
        if path is None: return self._form[form]
        with open(path, "w", encoding="utf-8") as file: file.write(self._form[form])
        return None

    def _needs_session(self) -> None:
        if self._session is None: raise ValueError("a table that was pickled has no session to do that")

    def _ask(self, expression: str) -> Any:
        self._needs_session()
        return self._session._with({"_kiln_table": self._value}, expression)


class _Forms:
    """What a pickled table has in place of the session's value."""

    def __init__(self, tables: list[dict]) -> None:
        self.tables = tables


def _of_forms(forms: list[dict], text_before: str) -> Table:
    table = Table(None, _Forms(forms))
    table.text_before = text_before
    return table
