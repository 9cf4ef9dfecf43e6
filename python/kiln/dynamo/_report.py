"""What became of the graphs of this process."""
from __future__ import annotations

import threading
import warnings
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Piece:
    """Operations that Kiln computes together, for one layout of their tensors. `reason`: why PyTorch does instead."""
    operations: int
    kernels: int
    seconds: float
    reason: str = ""


@dataclass
class Report:
    """str() of it is a table. `left` counts the operations that PyTorch computes: (name, reason) → how many."""
    graphs: int = 0
    operations: int = 0
    covered: int = 0
    pieces: list[Piece] = field(default_factory=list)
    left: Counter = field(default_factory=Counter)

    @property
    def kernels(self) -> int:
        return sum(p.kernels for p in self.pieces)

    @property
    def seconds(self) -> float:
        """Spent in planning and compiling kernels."""
        return sum(p.seconds for p in self.pieces)

    @property
    def fallbacks(self) -> int:
        """Operations that have no expression, and pieces that no kernel was found for."""
        operations = sum(n for (_, reason), n in self.left.items() if reason != ALONE)
        return operations + sum(bool(p.reason) for p in self.pieces)

    def __str__(self) -> str:
        def counted(n: int, what: str) -> str: return f"{n} {what}{'s' * (n != 1)}"

        share = 100 * self.covered / self.operations if self.operations else 100
        lines = [f"Kiln computes {self.covered} of {counted(self.operations, 'operation')} ({share:.0f} %) of "
                 f"{counted(self.graphs, 'graph')}: {counted(len(self.pieces), 'piece')}, "
                 f"{counted(self.kernels, 'kernel')}, compiled in {self.seconds:.2f} s"]
        if len(self.left) or self.fallbacks: lines.append("PyTorch computes")
        lines += [f"  {n:4} x {name}: {reason}" for (name, reason), n in self.left.most_common()]
        lines += [f"     1 x a piece of {p.operations} operations: {p.reason}" for p in self.pieces if p.reason]
        return "\n".join(lines)


ALONE = "alone, with nothing to share a kernel"
_report = Report()
_lock = threading.Lock()
_warned: set[str] = set()


def add_graph(operations: int, covered: int, left: Counter) -> None:
    with _lock:
        _report.graphs += 1
        _report.operations += operations
        _report.covered += covered
        _report.left.update(left)


def add_piece(piece: Piece) -> None:
    with _lock:
        _report.pieces.append(piece)
        if not piece.reason or piece.reason in _warned: return
        _warned.add(piece.reason)
    warnings.warn(f"PyTorch computes {piece.operations} operations, since Kiln does not: {piece.reason}",
                  RuntimeWarning, stacklevel=2)


def snapshot() -> Report:
    with _lock:
        return Report(_report.graphs, _report.operations, _report.covered, list(_report.pieces), Counter(_report.left))


def clear() -> None:
    with _lock:
        _report.__init__()  # type: ignore[misc]
        _warned.clear()
