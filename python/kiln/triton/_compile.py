"""triton.compile by Kiln: an ASTSource in, a CompiledKernel out."""
from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import sys
import time
import uuid
from typing import Any

import triton
from triton import knobs
from triton.backends.nvidia import driver as nvidia_driver
from triton.compiler import compiler as triton_compiler
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.cache import FileCacheManager, get_cache_manager
from triton.runtime.errors import OutOfResources, PTXASError

from kiln import _kiln
from kiln.triton import _driver, _report
from kiln.triton._arguments import arguments, is_flat, padded_of
from kiln.triton._functions import Functions, Refused, is_told_apart
from kiln.triton._options import check_knobs, code_options, target_name

original = triton_compiler.compile


class Unsupported(_kiln.Error):
    """With KILN_TRITON=strict: a kernel that Kiln does not compile."""


def compile(src: Any, target: Any = None, options: Any = None, _env_vars: Any = None,
            padded: frozenset = frozenset()) -> Any:
    """In place of triton.compile. What Kiln refuses is Triton's to compile, or to refuse with its own error."""
    began = time.perf_counter()
    kernel = getattr(src, "fn", None)
    row = _report.Kernel(getattr(src, "name", str(src)), *_place(kernel), 0.0)
    refusal = None  # under strict
    marks = [began]
    try:
        compiled, group, row.cached = _compile(src, target, options, marks, padded)
    except Refused as e:
        row.reason = str(e)
    except _kiln.Error as e:
        row.reason = e.message
        if e.line: row.reason += f" ({os.path.basename(e.file)}:{e.line})"
        if _is_strict(): refusal = _skipped(e, _said(row))
    row.seconds = time.perf_counter() - began
    if not row.reason: row.note = compiled.metadata.kiln["note"]
    _report.add(row)
    if not row.reason:
        _tell(src, compiled, group, row.cached, [*marks, time.perf_counter()])
        return compiled
    if _is_strict(): raise refusal or Unsupported(_said(row))
    keywords = {} if _env_vars is None else {"_env_vars": _env_vars}
    theirs = original(src, target=target, options=options, **keywords)
    _report.warn(row)  # of what neither compiles Triton's error tells
    return theirs


def _said(row: Any) -> str:
    return f"kernel {row.name} ({row.file}:{row.line}): {row.reason}"


def _skipped(error: _kiln.Error, said: str) -> Exception | None:
    """What Triton raises in its place, of errors for which its autotuner goes on to the next configuration."""
    if error.shortage:
        what, needed, available = error.shortage
        # Triton hears of registers from the assembler, and not how many they are.
        raised = PTXASError(said) if what == "registers" else OutOfResources(needed, available, what)
    elif error.kind == "mismatch":
        raised = CompileTimeAssertionFailure(said, None)
    else:
        return None
    raised.__cause__ = error
    return raised


def _tell(src: Any, kernel: Any, group: dict, is_cached: bool, marks: list) -> None:
    """What Triton tells of each compilation to those who listen. `marks`: when each of its parts began, and the end."""
    if not (listener := getattr(knobs.compilation, "listener", None)): return
    names, *others = (max(1, round(1e6 * (b - a))) for a, b in zip(marks, marks[1:]))
    stages, store = ([], 0) if is_cached else ([("kiln", others[0])], others[1])
    times = knobs.CompileTimes(ir_initialization=names, lowering_stages=stages, store_results=store)
    listener(src=src, metadata=kernel.metadata._asdict(), metadata_group=group, times=times, cache_hit=is_cached)


def _is_strict() -> bool:
    return os.environ.get("KILN_TRITON", "") == "strict"


def _place(kernel: Any) -> tuple[str, int]:
    code = getattr(getattr(kernel, "fn", None), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("", 0)


def _compile(src: Any, target: Any, options: Any, marks: list, padded: frozenset) -> tuple[Any, dict, bool]:
    """The kernel, its files, and whether the cache had it. Adds to `marks` when it began to compile and to store."""
    if type(src) is not triton_compiler.ASTSource: raise Refused("the source is no AST")
    if target is None: target = triton.runtime.driver.active.get_current_target()
    name = target_name(target)
    check_knobs()
    backend = triton_compiler.make_backend(target)
    parsed = backend.parse_options(dict(options or {}, **src.parse_options()))
    launch_options = code_options(target, parsed, backend.parse_options({}))

    functions = None
    # Triton's key of the source; asking for it also makes Triton notice globals that change later.
    names = src.hash()
    if not is_told_apart:
        functions = Functions()
        number = functions.add_kernel(src)
        names += repr(functions.told)
    # Of what the options are made into: knobs of Triton's count there, too.
    known = f"{sorted(vars(parsed).items(), key=str)} {launch_options} {sorted(padded)}"
    key = f"{_kiln.fingerprint(name)} {triton.__version__} {name} {names} {known}"
    hash_ = hashlib.sha256(key.encode()).hexdigest()
    cache = _without_folders(get_cache_manager(hash_))
    file = src.name[:150]
    group = {} if knobs.compilation.always_compile else cache.get_group(f"{file}.json") or {}
    if f"{file}.json" in group: return _kernel(src, group, hash_), group, True

    if not functions:
        functions = Functions()
        number = functions.add_kernel(src)
    compiled, steps = arguments(src, functions, padded)
    marks.append(time.perf_counter())
    image, note = _image_for(functions, number, compiled, name, launch_options, _device(name))
    # One code for all grids: Triton loads it, and what Kiln's own launches choose for few programs is left out.
    cubin = image.cubin or _assembled(image.ptx, name)
    marks.append(time.perf_counter())
    metadata = {
        "hash": hash_, "target": target, **vars(parsed), "num_ctas": 1 if note else parsed.num_ctas,
        "triton_version": triton.__version__, "name": image.symbol, "shared": image.shared, "num_warps": image.num_warps,
        "tmem_size": 0, "global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0,
        "profile_scratch_align": 1, "tensordesc_meta": [], "kiln": {
            "plan": base64.b64encode(image.plan()).decode(), "steps": steps, "registers": image.registers, "note": note
        }
    }
    group = {}
    for kind, data in (("ptx", image.ptx), ("cubin", cubin)):
        if kind != "cubin" and knobs.compilation.store_binary_only: continue
        group[f"{file}.{kind}"] = cache.put(data, f"{file}.{kind}")
    group[f"{file}.json"] = cache.put(json.dumps(metadata, default=vars), f"{file}.json", binary=False)
    cache.put_group(f"{file}.json", group)
    return _kernel(src, group, hash_), group, False


def _without_folders(cache: Any) -> Any:
    """Triton's cache of files makes and removes a folder for each file that it writes, which takes longer than all
    the rest of it. Other caches are left as they are."""
    if type(cache) is FileCacheManager: cache.put = functools.partial(_put, cache.cache_dir)
    return cache


def _put(folder: str, data: bytes | str, filename: str, binary: bool = True) -> str:
    """Readers see the whole file or none."""
    path = os.path.join(folder, filename)
    part = os.path.join(folder, f"tmp.pid_{os.getpid()}_{uuid.uuid4()}")
    with open(part, "wb") as f:
        f.write(data if isinstance(data, bytes) else str(data).encode())
    os.replace(part, path)
    return path


def _image_for(functions: Functions, number: int, arguments: list, target: str, options: dict, device: str) -> tuple:
    """The code, and what it does without: a program that cannot be shared by a cluster runs in one CTA, with the same
    results."""
    options = {**options, "as_triton": True, "falls_back": not _is_strict()}
    try:
        return functions.table.compile(number, arguments, target, options, device), ""
    except _kiln.Error as e:
        if options["num_ctas"] == 1: raise
        why = e
    try:
        image = functions.table.compile(number, arguments, target, {**options, "num_ctas": 1}, device)
    except _kiln.Error:
        raise why from None
    return image, f"one CTA in place of {options['num_ctas']}: {why.message}"


def _kernel(src: Any, group: dict, hash_: str) -> Any:
    _take_launches()
    kernel = triton_compiler.CompiledKernel(src, group, hash_)
    plan = kernel.metadata.kiln
    if not is_flat(plan["steps"]) or _image(plan["plan"]).tensor_maps:
        # Launchers that know the file of the code, such as Inductor's static one, would pass Triton's parameters.
        kernel.hash = f"kiln-{hash_}"
    return kernel


def _device(target: str) -> str:
    """The GPU whose driver may assemble; empty where none is in use."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized(): return ""
    index = torch.cuda.current_device()
    major, minor = torch.cuda.get_device_capability(index)
    return f"cuda:{index}" if target.rstrip("a") == f"sm_{10 * major + minor}" else ""


def _assembled(ptx: str, target: str) -> bytes:
    raise Refused("no assembler was found (a GPU's driver, nvJitLink or ptxas)")


# ---- launches ---------------------------------------------------------------------------------------------------------
@functools.lru_cache(maxsize=4096)
def _image(plan: str) -> Any:
    return _kiln.Image.from_plan(base64.b64decode(plan))


class _Launcher:
    """In place of Triton's class of launchers: a callable for each kernel, Kiln's for those of Kiln."""

    def __new__(cls, src: Any, metadata: Any) -> Any:
        plan = getattr(metadata, "kiln", None)
        if plan is None:
            _driver.theirs()
            return _theirs(src, metadata)
        with_nan = None if is_flat(plan["steps"]) else _Padded(src, metadata)
        return _kiln.Launcher(_image(plan["plan"]), plan["steps"], bool(metadata.launch_cooperative_grid),
                              with_nan).launch


class _Padded:
    """Launches with tensor descriptors that are padded with NaN, which Triton's signatures do not tell: by code of
    their own, which is compiled when a launch first has them."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self._src, self._metadata = src, metadata
        self._kernels: dict[frozenset, Any] = {}

    def __call__(self, x: int, y: int, z: int, stream: int, _: Any, __: Any, *rest: Any) -> None:
        padded = frozenset(padded_of(self._metadata.kiln["steps"], rest[3:]))
        if (kernel := self._kernels.get(padded)) is None:
            target = self._metadata.target
            usual = vars(triton_compiler.make_backend(target).parse_options({}))
            options = {name: _tupled(getattr(self._metadata, name)) for name in usual}
            kernel = compile(self._src, target, options, padded=padded)
            self._kernels[padded] = kernel
        run = kernel.run  # loads it
        # Where Triton compiled it, its launcher takes warps and shared memory from the packed metadata.
        run(x, y, z, stream, kernel.function, kernel.packed_metadata, *rest)


def _tupled(value: Any) -> Any:
    """As it was before it was written as JSON."""
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


_theirs = nvidia_driver.CudaLauncher


def _take_launches() -> None:
    """Makes Triton's driver ask here for launchers: the one that there is, and the one that it will make."""
    nvidia_driver.CudaLauncher = _Launcher
    for name in ("_active", "_default"):  # to ask for the driver would make it, which imports torch
        made = getattr(triton.runtime.driver, name, None)
        if getattr(made, "launcher_cls", None) is _theirs: made.launcher_cls = _Launcher
