"""What Inductor does around triton.compile, where Kiln is the compiler.

Inductor starts a pool of processes for Triton's compiler, which holds Python's lock: each imports torch, kernels are
pickled to and fro, and until the pool is there its first kernels are compiled one after another in this process. Kiln
compiles without the lock, so threads of this process compile all of them, from the moment that their code is written.
"""
from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable

import triton

from kiln import _kiln

_MODULE = "torch._inductor.async_compile"


# ---- threads in place of processes ----------------------------------------------------------------------------------
class _Threads:
    """In place of Inductor's pool of processes."""

    def __init__(self, inductor: Any, processes: Callable[[], Any]) -> None:
        self._inductor, self._processes = inductor, processes
        self._threads = ThreadPoolExecutor(inductor.get_compile_threads(), thread_name_prefix="kiln")

    def submit(self, job: Callable, *arguments: Any) -> Future:
        if job is self._inductor._worker_compile_triton:
            return self._threads.submit(_compile_kernel, self._inductor, _device(), *arguments)
        if job is not self._inductor.AsyncCompile._get_ready: return self._processes().submit(job, *arguments)
        done: Future = Future()
        done.set_result(job())
        return done

    def shutdown(self, wait: bool = True) -> None:
        self._threads.shutdown(wait=wait, cancel_futures=True)


def _device() -> Any:
    """The GPU that is current here, which is so for each thread."""
    torch = sys.modules["torch"]
    return torch.cuda.current_device() if torch.cuda.is_initialized() else None


def _compile_kernel(inductor: Any, device: Any, load: Callable[[], Any], *_: Any) -> tuple[Any, int]:
    """As Inductor's worker does it, in the process that will launch the kernel: it keeps its function, and takes the
    environment and the configuration as they are here."""
    began, failed = time.perf_counter_ns(), None
    _here.compiles = True
    inductor._set_triton_ptxas_path()
    if device is not None: sys.modules["torch"].cuda.set_device(device)
    try:
        kernel = load()
        kernel.precompile(warm_cache_only=True)
        return kernel, (time.perf_counter_ns() - began) // 1000
    except Exception as e:
        failed = str(e)
        raise
    finally:
        inductor.log_triton_builds(fail=failed)


_here = threading.local()
_NEEDED = ("_worker_compile_triton", "_set_triton_ptxas_path", "log_triton_builds", "get_compile_threads", "_pool_set")


def _take_pool(inductor: Any, bundler: Any) -> None:
    pools = inductor.AsyncCompile
    # An Inductor of another kind keeps its processes.
    if not all(hasattr(inductor, n) for n in _NEEDED) or not hasattr(pools, "_get_ready"): return
    if "tuple" not in str(inductor._worker_compile_triton.__annotations__.get("return")): return
    processes, put = pools.process_pool, bundler.put

    @functools.lru_cache(1)
    def process_pool() -> _Threads:
        pool = _Threads(inductor, processes)
        inductor._pool_set.add(pool)
        return pool

    def put_once(_: Any, *arguments: Any) -> None:
        """Inductor notes a kernel when it is compiled, which is for its process, and when the kernel is taken."""
        if not getattr(_here, "compiles", False): put(*arguments)

    _swap(pools, "process_pool", staticmethod(process_pool))
    _swap(bundler, "put", classmethod(put_once))


# ---- the compiler's key ---------------------------------------------------------------------------------------------
def _take_key(compat: Any) -> None:
    """Inductor's caches have compiled kernels: those of Kiln are not those of Triton."""
    if not getattr(compat, "HAS_TRITON", False): return

    @functools.lru_cache(1)
    def triton_key() -> str:
        return f"{_kiln.fingerprint('').split(';')[0]}, triton {triton.__version__} {_files(triton)}"

    _swap(compat, "triton_key", triton_key)


def _files(package: Any) -> str:
    """A hash of what files a package has: the list that its wheel brought, and the size and time of those that are not
    in it or changed since. Triton reads and hashes all of its own, which takes 0.4 s."""
    folder = os.path.dirname(package.__file__)
    told, listed, written = hashlib.sha256(), set(), 0
    try:
        wheel = importlib.metadata.distribution(package.__name__)
        root, text = str(wheel.locate_file("")), wheel.read_text("RECORD") or ""
        listed = {os.path.join(root, row.split(",")[0]) for row in text.splitlines()}
        written = os.stat(next(path for path in listed if path.endswith(".dist-info/RECORD"))).st_mtime_ns
        told.update(text.encode())
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        listed = set()  # no wheel brought it
    for base, folders, files in os.walk(folder):
        if os.path.basename(base) == "__pycache__": continue
        folders.sort()
        for path in (os.path.join(base, name) for name in sorted(files)):
            stat = os.stat(path)
            if path not in listed or stat.st_mtime_ns > written:
                told.update(f"{path} {stat.st_size} {stat.st_mtime_ns}".encode())
    return told.hexdigest()


# ---- when torch._inductor is imported -------------------------------------------------------------------------------
_replaced: list[tuple[Any, str, Any]] = []


def _swap(holder: Any, name: str, value: Any) -> None:
    _replaced.append((holder, name, vars(holder)[name]))
    setattr(holder, name, value)


class _Waiting:
    """Finds Inductor's module as the others do, and takes its places when it has been imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _MODULE: return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None: return spec
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            _take(module)

        spec.loader.exec_module = exec_module
        return spec


_waiting = _Waiting()


def _take(inductor: Any) -> None:
    _take_pool(inductor, importlib.import_module("torch._inductor.triton_bundler").TritonBundler)
    _take_key(importlib.import_module("torch._inductor.runtime.triton_compat"))


def take() -> None:
    """For what torch.compile compiles from now on. A pool of processes that there is, Kiln's too, is kept."""
    if _replaced or _waiting in sys.meta_path: return
    module = sys.modules.get(_MODULE)
    if module is None: sys.meta_path.insert(0, _waiting)
    else: _take(module)


def give_back() -> None:
    if _waiting in sys.meta_path: sys.meta_path.remove(_waiting)
    while _replaced: setattr(*_replaced.pop())
