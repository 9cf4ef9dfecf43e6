"""What became of the kernels of this process."""
from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field


@dataclass
class Kernel:
    """One compilation. `reason`: why Triton compiled it; empty when Kiln did. `note`: what Kiln's code does without."""
    name: str
    file: str
    line: int
    seconds: float
    reason: str = ""
    cached: bool = False
    note: str = ""


@dataclass
class Report:
    """str() of it is a table; `kernels` has a row for each compilation, in order."""
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def compiled(self) -> int:
        """Compilations by Kiln."""
        return sum(not k.reason for k in self.kernels)

    @property
    def fallbacks(self) -> int:
        """Compilations by Triton, since Kiln refused."""
        return sum(bool(k.reason) for k in self.kernels)

    @property
    def seconds(self) -> float:
        """Spent in Kiln's compilations."""
        return sum(k.seconds for k in self.kernels if not k.reason)

    def __str__(self) -> str:
        cached = sum(k.cached for k in self.kernels)
        lines = [
            f"Kiln compiled {self.compiled} kernels in {self.seconds:.2f} s ({cached} from the cache); "
            f"{self.fallbacks} fell back to Triton"
        ]
        reasons: dict[tuple[str, str], int] = {}
        for k in self.kernels:
            said = k.reason or k.note
            if said: reasons[k.name, said] = reasons.get((k.name, said), 0) + 1
        lines += [f"  {n:4} x {name}: {reason}" for (name, reason), n in sorted(reasons.items(), key=lambda r: -r[1])]
        return "\n".join(lines)


_report = Report()
_lock = threading.Lock()
_warned: set[tuple[str, str, int]] = set()


def add(kernel: Kernel) -> None:
    with _lock:
        _report.kernels.append(kernel)


def warn(kernel: Kernel) -> None:
    """That Triton compiles it, once for each kernel."""
    with _lock:
        key = (kernel.name, kernel.file, kernel.line)
        if key in _warned: return
        _warned.add(key)
    warnings.warn(f"Triton compiles {kernel.name} ({kernel.file}:{kernel.line}), since Kiln does not: {kernel.reason}",
                  RuntimeWarning, stacklevel=4)


def snapshot() -> Report:
    with _lock:
        return Report(list(_report.kernels))


def clear() -> None:
    with _lock:
        _report.kernels.clear()
        _warned.clear()
