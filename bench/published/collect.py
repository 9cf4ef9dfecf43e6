"""Collects published kernels from checkouts into one file each, for the drivers beside it.

    python3 collect.py FOLDER... --out DIR [names]

Fetches nothing. A FOLDER holds a repository of sources.py under its short name (`triton`, `vllm`, …), or is one. Writes
DIR/src_NAME.py: imports of torch and Triton, and the named functions as published. Decorators other than `triton.jit` and
`tl.constexpr` (autotuners, heuristics, caches) are left out, since the drivers launch each configuration themselves.
"""
import argparse
import ast
import os
import sys

from sources import KERNELS, REPOSITORIES, STUBS

IMPORTS = "import math\n\nimport torch\nimport triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"


def is_jit(decorator):
    return ast.unparse(decorator).startswith(("triton.jit", "jit"))


def is_constant(decorator):
    """Of a function that the compiler calls, on constants."""
    return ast.unparse(decorator) in ("tl.constexpr", "triton.constexpr_function")


def segment(lines, node):
    """The text of a top-level statement, with no decorator but `triton.jit` and those of constants."""
    kept = []
    for d in getattr(node, "decorator_list", []):
        if is_constant(d):
            kept.append("@" + ast.unparse(d))
        if is_jit(d):
            # What else `jit` is told (launch_metadata) names functions of the host that are not collected.
            words = [ast.unparse(k) for k in getattr(d, "keywords", []) if k.arg.startswith("do_not_specialize")]
            kept.append("@triton.jit(%s)" % ", ".join(words) if words else "@triton.jit")
    return "\n".join(kept + lines[node.lineno - 1:node.end_lineno]) + "\n"


def names_of(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [t.id for t in targets if isinstance(t, ast.Name)]
    return []


def collected(path, wanted):
    text = open(path, encoding="utf-8").read()
    lines = text.split("\n")
    found, functions = {}, set()
    for node in ast.parse(text).body:
        for name in names_of(node):
            if name not in wanted:
                continue
            if name in functions:  # `f = triton.jit(f)` behind its def
                if not found[name].startswith("@triton.jit"):
                    found[name] = "@triton.jit\n" + found[name]
                continue
            if isinstance(node, ast.FunctionDef):
                functions.add(name)
            found[name] = segment(lines, node)
    missing = [n for n in wanted if n not in found]
    if missing:
        sys.exit("%s has no %s" % (path, ", ".join(missing)))
    return "\n\n".join(found[n] for n in wanted)


def place_of(folders, repository, path):
    for folder in folders:
        for root in (os.path.join(folder, repository), folder):
            if os.path.exists(os.path.join(root, path)):
                return os.path.join(root, path)
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folders", nargs="+")
    p.add_argument("--out", required=True)
    # Any number of both: what is no folder is the name of a kernel.
    o = p.parse_intermixed_args()
    folders = [f for f in o.folders if os.path.isdir(f)]
    names = [f for f in o.folders if not os.path.isdir(f)]
    unknown = [n for n in names if n not in KERNELS]
    if unknown:
        sys.exit("neither folder nor kernel: %s" % ", ".join(unknown))
    os.makedirs(o.out, exist_ok=True)
    absent = 0
    kernels = {n: KERNELS[n] for n in names} if names else KERNELS
    for name, (repository, path, wanted, prelude) in kernels.items():
        place = place_of(folders, repository, path)
        if place is None:
            print("not found: %s of %s" % (path, REPOSITORIES[repository][0]))
            absent += 1
            continue
        origin = "# Collected from %s, %s (%s).\n" % (REPOSITORIES[repository][0], path, REPOSITORIES[repository][1])
        parts = []
        for elsewhere in [w.split(":") for w in wanted if ":" in w]:
            parts.append(collected(place_of(folders, repository, elsewhere[0]), [elsewhere[1]]))
        parts.append(collected(place, [w for w in wanted if ":" not in w]))
        with open(os.path.join(o.out, "src_%s.py" % name), "w", encoding="utf-8") as f:
            f.write(origin + IMPORTS + prelude + "\n\n" + "\n\n".join(parts))
    for name, text in STUBS.items():
        with open(os.path.join(o.out, name), "w", encoding="utf-8") as f:
            f.write(text)
    print("%d kernels collected" % (len(kernels) - absent))
    return 1 if absent else 0


sys.exit(main())
