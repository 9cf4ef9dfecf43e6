"""Kernels of published repositories, compiled by Triton and by Kiln without a GPU.

    python corpus.py --kiln build/release/bin/kiln --cache /tmp/corpus_cache FOLDER...

Needs Python with Triton (its sm_90 backend compiles without a GPU). Fetches nothing: FOLDER is a checkout. `kiln check`
finds the kernels of each file and says which types and constexprs it assumed; Triton then compiles each kernel for the
same ones. Modules that an import lacks are replaced by empty ones, and questions about a GPU have an H100's answers;
nothing runs there. Triton's results are kept in --cache by the text of the file, the kernel and what was assumed, so
that a second run costs Kiln's time alone.

Notebooks and strings that are files of kernels (as torch.compile writes them) are written to --cache for Triton: their
kernels count as those of the file.

A kernel counts when Triton compiles it for what was assumed. The table has a row for each folder: kernels found, those
that Kiln compiles, those that Triton was asked about (with --share: all that Kiln refuses, and that share of the
others), how many of these Triton compiles and of those Kiln, and Kiln's time. Then Kiln's reasons, by how often they
were met.
"""
import argparse
import ast
import collections
import hashlib
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys

KERNEL = re.compile(r"@\s*(?:\w+\.)*jit\b.*?\b(?:tl|language)\b", re.S)
REAL_MODULES = ("triton", "torch", "numpy")
ASSUMED = re.compile(r"(\w+)(?:: (.*)|=(.*))", re.S)


def sources(folder):
    for base, dirs, names in os.walk(folder):
        dirs.sort()
        for name in sorted(names):
            path = os.path.join(base, name)
            if name.endswith((".py", ".ipynb")) and KERNEL.search(open(path, errors="replace").read()):
                yield path


def kiln_check(kiln, path, limit):
    """The kernels of a file as `kiln check --json` reports them, and how the process ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run([kiln, "check", "--target", "sm_90", "--json", path], capture_output=True, text=True,
                              timeout=limit, errors="replace")
        status, out = done.returncode, done.stdout
    except subprocess.TimeoutExpired as e:
        status, out = "timeout", (e.stdout or b"").decode(errors="replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    kernels = []
    for line in out.splitlines():
        try:
            kernels.append(json.loads(line))
        except ValueError:
            pass
    return kernels, status, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def pretended_tools(cache):
    """A folder with a `nvidia-smi` that succeeds: packages run it to find the vendor of the GPU, and fail without one."""
    folder = os.path.join(cache, "tools")
    os.makedirs(folder, exist_ok=True)
    tool = os.path.join(folder, "nvidia-smi")
    if not os.path.exists(tool):
        with open(tool, "w") as f:
            f.write("#!/bin/sh\nexit 0\n")
        os.chmod(tool, 0o755)
    return folder


class TritonServer:
    """A process that has imported Triton and forks one for each file: importing it takes seconds."""

    def __init__(self, cache):
        env = dict(os.environ, TRITON_CACHE_DIR=os.path.join(cache, "triton"), TRITON_ALWAYS_COMPILE="1",
                   CUDA_VISIBLE_DEVICES="", PATH=pretended_tools(cache) + os.pathsep + os.environ.get("PATH", ""))
        self.process = subprocess.Popen([sys.executable, __file__, "--triton"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
                                        errors="replace")

    def ask(self, job, limit):
        """What the process of a file said, and how it ended."""
        self.process.stdin.write(json.dumps(dict(job, limit=limit)) + "\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith("end: "):
                return "".join(lines), line[len("end: "):].strip()
            lines.append(line)
        raise RuntimeError("Triton's process is gone")


def notebook_code(text):
    """A notebook's code without what is IPython's, and how many lines are before each code cell; the first is 1."""
    out, before = [], [0]
    for cell in json.loads(text).get("cells", []):
        if cell.get("cell_type") == "code":
            before.append(len(out))
            lines = "".join(cell["source"]).split("\n")
            other = re.match(r"%%(?!time|capture|writefile|file)", lines[0])
            out += ["# " + line if other else re.sub(r"^(\s*)([!%])", r"\1pass  # \2", line) for line in lines] + [""]
    return "\n".join(out) + "\n", before


def written(text, cache):
    """A file of the cache with that text."""
    path = os.path.join(cache, "text_%s.py" % hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32])
    if not os.path.exists(path):
        with open(path, "w", errors="replace") as f:
            f.write(text)
    return path


def files_of(path, kernels, cache):
    """The kernels by the file that Triton is to import: the file itself, or what a string of it is written to."""
    text = open(path, errors="replace").read()
    if path.endswith(".ipynb"):
        text, before = notebook_code(text)
        path = written(text, cache)
        kernels = [dict(k, line=before[k.get("cell", 0)] + k.get("line", 0)) for k in kernels]
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {path: kernels}
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and "@" in n.value]
    out = collections.defaultdict(list)
    for k in kernels:
        held = [s for s in strings if s.lineno <= k.get("line", 0) <= s.end_lineno]
        out[written(held[0].value, cache) if held else path].append(dict(k, in_string=bool(held)))
    return out


def triton_results(path, root, kernels, cache, limit, server):
    """Whether Triton compiles each kernel: {name: {ok, error, ms}}, from the cache where it is known."""
    results = {}
    for file, found in files_of(path, kernels, cache).items():
        results.update(results_of_file(file, root if file == path else cache, found, cache, limit, server))
    return results


def results_of_file(path, root, kernels, cache, limit, server):
    text = open(path, "rb").read()
    results, missing = {}, []
    for k in kernels:
        key = hashlib.sha256(text + json.dumps([k["kernel"], k.get("assumed", [])]).encode()).hexdigest()[:32]
        file = os.path.join(cache, key + ".json")
        if os.path.exists(file):
            results[k["kernel"]] = json.load(open(file))
        else:
            missing.append((k, file))
    left = [k for k, _ in missing]
    while left:
        out, died = server.ask({"path": path, "root": root, "kernels": left}, limit * len(left))
        for line in out.splitlines():
            if line.startswith("{"):
                r = json.loads(line)
                results[r["kernel"]] = r
        left = [k for k in left if k["kernel"] not in results]
        if left:  # the process ended at the first; the others have not been asked about
            name = left.pop(0)["kernel"]
            results[name] = {"kernel": name, "ok": False, "error": died, "ms": 0}
    for k, file in missing:
        json.dump(results[k["kernel"]], open(file, "w"))
    return results


# --- the child that runs Triton --------------------------------------------------------------------------------------


def stub_missing_modules():
    """A class of modules whose attributes are all callables that return their argument, and the set of names of
    modules that it replaces: empty first, for a package that tries an optional module must not find it.
    """
    import importlib.abc
    import importlib.machinery
    import types

    class Base:

        def __init_subclass__(cls, **kwargs):
            pass

    class Anything:

        def __init__(self, *args, **kwargs):
            pass

        def __call__(self, *args, **kwargs):
            # A decorator without meaning here leaves what it decorates.
            return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return self

        def __iter__(self):
            return iter(())

        def __getitem__(self, key):
            return self

        def __mro_entries__(self, bases):
            return (Base, )

        def __bool__(self):
            return False

        def __ge__(self, other):  # versions are new
            return True

        def __lt__(self, other):
            return False

        def __or__(self, other):  # annotations
            return self

        __gt__, __le__, __ror__, __add__, __radd__ = __ge__, __lt__, __or__, __or__, __or__

    class Stub(types.ModuleType):
        __path__ = []

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            # A package that is not installed may hand Triton on: from vllm.triton_utils import tl, triton
            handed_on = {"triton": "triton", "tl": "triton.language"}.get(name)
            return importlib.import_module(handed_on) if handed_on else Anything()

    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):

        def find_spec(self, name, path=None, target=None):
            parts = name.split(".")
            if not any(".".join(parts[:i]) in stubbed for i in range(1, len(parts) + 1)):
                return None
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

        def create_module(self, spec):
            return Stub(spec.name)

        def exec_module(self, module):
            pass

    stubbed = set()
    sys.meta_path.append(Finder())
    return Stub, stubbed


def pretend_device(torch, target):
    """Answers what packages ask for when they are imported: how many GPUs there are, and which. Nothing can run there."""
    import types

    from triton.runtime.driver import driver

    properties = types.SimpleNamespace(name="NVIDIA H100", major=9, minor=0, multi_processor_count=132,
                                       total_memory=80 << 30, warp_size=32, max_threads_per_multi_processor=2048,
                                       regs_per_multiprocessor=65536, shared_memory_per_block_optin=232448,
                                       shared_memory_per_multiprocessor=233472, L2_cache_size=50 << 20)
    answers = dict(is_available=True, device_count=1, current_device=0, get_device_capability=(9, 0),
                   get_device_name=properties.name, get_device_properties=properties, is_bf16_supported=True,
                   is_initialized=True)
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *a, _answer=answer, **k: _answer)

    class Utils:

        def get_device_properties(self, device=0):
            return dict(max_shared_mem=232448, max_num_regs=65536, multiprocessor_count=132, warpSize=32,
                        sm_clock_rate=1980000, mem_clock_rate=2619000, mem_bus_width=5120)

    class Driver:
        utils = Utils()

        def get_current_target(self):
            return target

        def get_current_device(self):
            return 0

        def get_active_torch_device(self):
            return torch.device("cuda", 0)

        def get_device_interface(self):
            return torch.cuda

        def get_current_stream(self, device=0):
            return 0

        def get_device_capability(self, device=0):
            return (9, 0)

        def get_benchmarker(self):
            return lambda *a, **k: [0.0, 0.0, 0.0]

        def map_python_to_cpp_type(self, ty):
            return ty

    driver.set_active(Driver())


def package_of(path, root):
    """The folder that stands on the path of modules (the checkout, its src or its python), and the file's dotted name."""
    folder = os.path.abspath(root)
    for inner in ("src", "python"):
        if os.path.abspath(path).startswith(os.path.join(folder, inner) + os.sep):
            folder = os.path.join(folder, inner)
            break
    return folder, os.path.splitext(os.path.relpath(os.path.abspath(path), folder))[0].replace(os.sep, ".")


def pretend_installed(package):
    """Gives a package a version: some ask for their own, which a checkout that is not installed lacks."""
    import importlib.metadata

    installed = importlib.metadata.version

    def version(name):
        try:
            return installed(name)
        except importlib.metadata.PackageNotFoundError:
            if name != package:
                raise
            return "0.0.0"

    importlib.metadata.version = version


def load(path, root, stub, stubbed):
    """The file as a module, with whatever it imports that can be imported."""
    import importlib.util

    folder, name = package_of(path, root)
    pretend_installed(name.split(".")[0])
    sys.path[:0] = [folder, os.path.dirname(os.path.abspath(path))]
    before = set(sys.modules)

    def forget():
        for module in set(sys.modules) - before:
            if module.split(".")[0] not in REAL_MODULES:
                del sys.modules[module]

    def bring():
        try:
            if name.split(".")[0] not in REAL_MODULES: return importlib.import_module(name)
        except ModuleNotFoundError as e:
            if not (name + ".").startswith(e.name + "."): raise
        # No import statement names such a file (starter.triton.py), or it would name another (triton/softmax.py, where
        # Triton itself is installed, and test/kernel.py beside Python's own tests).
        spec = importlib.util.spec_from_file_location("a_file", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def attempt():
        """Imports the file, replacing module after module that is missing; returns the module or raises what is left."""
        while True:
            try:
                return bring()
            except ModuleNotFoundError as e:
                missing = (e.name or "").split(".")[0]
                if missing in REAL_MODULES and missing != e.name:  # a part that this installation lacks
                    missing = e.name
                if missing in stubbed or missing in REAL_MODULES or os.path.exists(os.path.join(folder, missing)):
                    raise
                forget()
                stubbed.add(missing)
            except ImportError as e:
                lacks = re.match(r"cannot import name '(\w+)' from '(torch[\w.]*)'", str(e))
                if not lacks:
                    raise
                forget()
                setattr(sys.modules[lacks[2]], lacks[1], stub("missing").anything)  # torch had or will have it

    try:
        return attempt()
    except Exception:
        forget()
    # Once more, where any module of the folder that fails is left as far as it came, and empty beyond: a file may run
    # its kernels behind them, on a GPU.
    execute = importlib.machinery.SourceFileLoader.exec_module

    def tolerate(loader, module):
        try:
            execute(loader, module)
        except Exception:
            if not (module.__file__ or "").startswith(folder + os.sep):
                raise
            module.__class__ = stub

    importlib.machinery.SourceFileLoader.exec_module = tolerate
    try:
        return attempt()
    finally:
        importlib.machinery.SourceFileLoader.exec_module = execute


def serve_triton():
    """Reads jobs, a line each, and forks a process for each: none sees what another has imported."""
    import signal

    jobs, real = sys.stdin, sys.stdout
    sys.stdin, sys.stdout = open(os.devnull), sys.stderr
    import torch
    import triton.experimental.gluon.language  # the compiler needs it, and a package may put an empty one in its place
    from triton.backends.compiler import GPUTarget

    target = GPUTarget("cuda", 90, 32)
    pretend_device(torch, target)
    for line in jobs:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(int(job["limit"]) + 1)  # its default action ends the process
            try:
                compile_file(job, target, real)
            finally:
                real.flush()
                os._exit(0)
        _, status = os.waitpid(child, 0)
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        ended = "Triton took too long" if late else "Triton's process ended with %s" % status
        real.write("end: %s\n" % ended)
        real.flush()


def compile_file(job, target, real):
    import time

    import triton
    import triton.language as tl
    from triton.compiler import ASTSource
    from triton.runtime import JITFunction

    stub, stubbed = stub_missing_modules()

    def say(kernel, ok, error="", ms=0.0):
        real.write(json.dumps({"kernel": kernel, "ok": ok, "error": error[-600:], "ms": ms}) + "\n")
        real.flush()

    try:
        module, problem = load(job["path"], job["root"], stub, stubbed), ""
    except BaseException as e:
        module, problem = None, "import: %s: %s" % (type(e).__name__, e)
    values = {"inf": float("inf"), "nan": float("nan"), "tl": tl}

    def read_type(text, path, attrs):
        """A type as Triton's signature has it, "(i32:16, i32:16)" as a tuple; notes in attrs what is divisible by 16."""
        if text.startswith("("):
            items = [item.strip() for item in text[1:-1].split(",") if item.strip()]
            return tuple(read_type(item, path + (i, ), attrs) for i, item in enumerate(items))
        if text.endswith(":16"):
            attrs[path] = [["tt.divisibility", 16]]
        return text.split(":")[0]

    dtypes = {"float": tl.float32, "double": tl.float64, "half": tl.float16}
    for k in job["kernels"]:
        held = module
        # Of a class: Relu.forward. A string is a file of its own, whatever it is assigned to.
        for part in k["kernel"].split(".")[-1:] if k.get("in_string") else k["kernel"].split("."):
            held = vars(held).get(part) if hasattr(held, "__dict__") else None
        fn = getattr(held, "__func__", held)  # of a staticmethod
        while fn is not None and not isinstance(fn, JITFunction):
            fn = getattr(fn, "fn", None)
        if fn is None:
            say(k["kernel"], False, problem or "no JITFunction of that name")
            continue
        signature, constexprs, attrs = {}, {}, {}
        start = time.process_time()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            for entry in k.get("assumed", []):
                name, type_, value = ASSUMED.fullmatch(entry).groups()
                if type_ is None:
                    signature[name] = "constexpr"
                    constexprs[name] = eval(value, {"__builtins__": {}}, dict(vars(module), **values, **dtypes))
                    continue
                signature[name] = read_type(type_, (fn.arg_names.index(name), ), attrs)
            ordered = {n: signature[n] for n in fn.arg_names}
            triton.compile(ASTSource(fn, ordered, constexprs, attrs), target=target)
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            ptxas = used.ru_utime + used.ru_stime - children.ru_utime - children.ru_stime
            say(k["kernel"], True, ms=1000 * (time.process_time() - start + ptxas))
        except BaseException as e:
            cause = e
            while cause.__cause__ is not None:
                cause = cause.__cause__
            say(k["kernel"], False, "%s: %s" % (type(cause).__name__, cause))


# --- the table -------------------------------------------------------------------------------------------------------


def is_drawn(path, kernel, seed, share):
    """Whether Triton is asked about a kernel that Kiln compiles: the same ones in every run with that seed."""
    drawn = hashlib.sha256(("%s %s %d" % (path, kernel, seed)).encode(errors="replace")).digest()
    return int.from_bytes(drawn[:4], "big") < share * 2**32


def reason_of(error):
    return re.sub(r"\d+", "N", error.get("message", str(error)))[:110]


def main():
    if sys.argv[1:] == ["--triton"]:
        return serve_triton()
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("folders", nargs="+")
    arguments.add_argument("--kiln", required=True)
    arguments.add_argument("--cache", required=True, help="a folder outside of the tree, for Triton's results")
    arguments.add_argument("--sample", type=int, default=0, help="that many files of each folder; 0: all")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--share", type=float, default=1.0,
                           help="ask Triton about that share of what Kiln compiles, and about all that it refuses")
    arguments.add_argument("--limit", type=float, default=60, help="seconds that a kernel may take")
    arguments.add_argument("--list", action="store_true", help="name each kernel that Triton alone compiles")
    given = arguments.parse_args()
    os.makedirs(given.cache, exist_ok=True)
    server = TritonServer(given.cache)
    reasons, refused, triton_reasons = collections.Counter(), [], collections.Counter()
    total, crashes, slowest = collections.Counter(), [], (0.0, "")
    triton_ms, ratios = [], []
    kiln_seconds = 0.0
    row = "{:<24}{:>7}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8}{:>9}"
    print(row.format("folder", "files", "kernels", "Kiln", "asked", "Triton", "of these", "%", "Kiln s"), flush=True)
    for folder in given.folders:
        files = list(sources(folder))
        if given.sample and len(files) > given.sample:
            files = sorted(random.Random(given.seed).sample(files, given.sample))
        n = collections.Counter()
        seconds = 0.0
        for path in files:
            kernels, status, took = kiln_check(given.kiln, path, given.limit)
            seconds += took
            slowest = max(slowest, (took, path))
            if status not in (0, 1):
                crashes.append((path, status))
            if not kernels:
                continue
            n["files"] += 1
            n["kernels"] += len(kernels)
            n["compiled"] += sum(k["ok"] for k in kernels)
            asked = [k for k in kernels
                     if not k["ok"] or is_drawn(os.path.relpath(path, folder), k["kernel"], given.seed, given.share)]
            n["asked"] += len(asked)
            results = triton_results(path, folder, asked, given.cache, given.limit, server)
            if len(asked) == len(kernels) and all(r["ok"] for r in results.values()):
                ratios.append((took / (sum(r["ms"] for r in results.values()) / 1000), path))
            for k in asked:
                r = results[k["kernel"]]
                if not r["ok"]:
                    triton_reasons[re.sub(r"\d+", "N", r["error"].strip().split("\n")[0])[:90]] += 1
                    continue
                n["triton"] += 1
                triton_ms.append(r["ms"])
                if k["ok"]:
                    n["kiln"] += 1
                else:
                    reasons[reason_of(k["error"])] += 1
                    refused.append("%s %s: %s" % (path, k["kernel"], k["error"].get("message")))
        kiln_seconds += seconds
        total.update(n)
        share = "%.1f" % (100 * n["kiln"] / n["triton"]) if n["triton"] else "-"
        counts = [n[key] for key in ("files", "kernels", "compiled", "asked", "triton", "kiln")]
        print(row.format(os.path.basename(os.path.normpath(folder)), *counts, share, "%.1f" % seconds), flush=True)
    share = "%.1f" % (100 * total["kiln"] / max(1, total["triton"]))
    print(row.format("all", total["files"], total["kernels"], total["compiled"], total["asked"], total["triton"],
                     total["kiln"], share, "%.1f" % kiln_seconds))
    if triton_ms:
        print("Triton: median %.0f ms of CPU time a kernel, with ptxas" % statistics.median(triton_ms))
    print("slowest file for Kiln: %.1f s, %s" % slowest)
    print("longest beside Triton (Kiln ends at PTX), of files that Triton compiles as a whole:")
    for ratio, path in sorted(ratios, reverse=True)[:5]:
        print("  %.2f of Triton's time, %s" % (ratio, path))
    print("crashes and timeouts of Kiln: %d" % len(crashes))
    for path, status in crashes:
        print("  %s: %s" % (path, status))
    print("\nwhat Kiln refuses of what Triton compiles")
    for reason, count in reasons.most_common():
        print("%5d  %s" % (count, reason))
    if given.list:
        print("\n".join(sorted(refused)))
    print("\nwhat Triton refuses (mostly what was assumed, and imports that are missing)")
    for reason, count in triton_reasons.most_common(12):
        print("%5d  %s" % (count, reason))


if __name__ == "__main__":
    main()
