"""Debian packages of a build: libkiln, libkiln-dev, kiln and python3-kiln.

    python3 packaging/deb.py BUILD OUT [--compression xz]

BUILD has the targets kiln, kiln_shared and, for python3-kiln, kiln_python_package. The packages hold what
`cmake --install` gives by component, kiln(1), and completions of bash, zsh and fish. Their bytes follow from the build
alone: times are SOURCE_DATE_EPOCH, or else that of the last commit.
"""
from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import completions
import manpage

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = "usr/lib/python3/dist-packages"
MAINTAINER = "Kiln developers <kiln@localhost>"

# By name: components of the build, section, description, dependencies beside the libraries that programs in it need.
PACKAGES = {
    "libkiln": (["runtime"], "libs", "compiler, launcher and profiler for kernels in the Triton language", []),
    "libkiln-dev": (["devel"], "libdevel", "headers, CMake and pkg-config files of libkiln", ["libkiln (= {version})"]),
    "kiln": (["program"], "devel", "prompt and script runner for kernels in the Triton language", []),
    "python3-kiln": (["python"], "python", "libkiln for Python", ["libkiln (= {version})", "python3 (>= 3.10)"]),
}


def variable(build: str, name: str) -> str:
    with open(os.path.join(build, "CMakeCache.txt")) as f:
        return re.search(rf"^{name}:\w+=(.*)$", f.read(), re.MULTILINE)[1]


def run(*command: str, **keywords) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **keywords).stdout


def stage(name: str, build: str, folder: str) -> None:
    """The files of a package, below `folder`."""
    for component in PACKAGES[name][0]:
        prefix = os.path.join(folder, PYTHON if component == "python" else "usr")
        run("cmake", "--install", build, "--component", component, "--prefix", prefix, "--strip")
    if name == "python3-kiln":  # libkiln is a package of its own
        for file in os.listdir(os.path.join(folder, PYTHON, "kiln")):
            if file.startswith("libkiln.so"): os.remove(os.path.join(folder, PYTHON, "kiln", file))


def add_documentation(name: str, program: str, version: str, date: str, folder: str) -> None:
    texts = {f"doc/{name}/copyright": open(os.path.join(ROOT, "LICENSE")).read()}
    if name == "kiln":
        texts["man/man1/kiln.1.gz"] = manpage.page(program, version, date)
        texts.update(completions.files(program))
    for path, text in texts.items():
        path = os.path.join(folder, "usr/share", path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = text.encode()
        with open(path, "wb") as f: f.write(gzip.compress(data, mtime=0) if path.endswith(".gz") else data)


def library_dependencies(folder: str, own: str) -> list[str]:
    """The packages of the libraries that a package's binaries are linked with, as dpkg-shlibdeps finds them."""
    files = [os.path.join(at, f) for at, _, names in os.walk(folder) for f in names]
    binaries = [f for f in files if not os.path.islink(f) and open(f, "rb").read(4) == b"\x7fELF"]
    if not binaries: return []
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(os.path.join(d, "debian"))
        with open(os.path.join(d, "debian/control"), "w") as f:
            f.write("Source: kiln\n\nPackage: kiln\nArchitecture: any\n")
        said = run("dpkg-shlibdeps", "-O", "--ignore-missing-info", f"-l{own}", *(f"-e{b}" for b in binaries), cwd=d)
    found = said.strip().partition("=")[2]
    return [d for d in found.split(", ") if d]


def build_package(name: str, build: str, out: str, epoch: int, compression: str) -> str:
    version, architecture = variable(build, "CMAKE_PROJECT_VERSION"), run("dpkg", "--print-architecture").strip()
    _, section, description, dependencies = PACKAGES[name]
    with tempfile.TemporaryDirectory() as folder:
        stage(name, build, folder)
        date = time.strftime("%Y-%m-%d", time.gmtime(epoch))
        add_documentation(name, os.path.join(build, "bin/kiln"), version, date, folder)
        depends = [d.format(version=version) for d in dependencies]
        depends += library_dependencies(folder, os.path.join(build, "lib"))
        files = sorted(os.path.join(at, f) for at, _, names in os.walk(folder) for f in names)
        size = sum(os.lstat(f).st_size for f in files)
        control = {
            "Package": name, "Version": version, "Architecture": architecture, "Maintainer": MAINTAINER,
            "Installed-Size": str((size + 1023) // 1024), "Depends": ", ".join(depends), "Section": section,
            "Priority": "optional", "Description": description
        }
        os.mkdir(os.path.join(folder, "DEBIAN"))
        with open(os.path.join(folder, "DEBIAN/control"), "w") as f:
            f.writelines(f"{key}: {value}\n" for key, value in control.items() if value)
        with open(os.path.join(folder, "DEBIAN/md5sums"), "w") as f:
            for path in files:
                if os.path.islink(path): continue
                with open(path, "rb") as data: f.write(hashlib.md5(data.read()).hexdigest())
                f.write(f"  {os.path.relpath(path, folder)}\n")
        if name == "libkiln": add_trigger(folder)
        for at, folders, names in os.walk(folder, topdown=False):
            for f in [*names, *folders]: set_mode(os.path.join(at, f), epoch)
        set_mode(folder, epoch)
        path = os.path.join(out, f"{name}_{version}_{architecture}.deb")
        run("dpkg-deb", "--root-owner-group", f"-Z{compression}", "--build", folder, path,
            env=dict(os.environ, SOURCE_DATE_EPOCH=str(epoch)))
    return path


def add_trigger(folder: str) -> None:
    """Installing a library makes ldconfig run."""
    with open(os.path.join(folder, "DEBIAN/triggers"), "w") as f: f.write("activate-noawait ldconfig\n")


def set_mode(path: str, epoch: int) -> None:
    if not os.path.islink(path):
        executable = os.path.isdir(path) or f"{os.sep}bin{os.sep}" in path
        os.chmod(path, 0o755 if executable else 0o644)
    os.utime(path, (epoch, epoch), follow_symlinks=False)


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("out")
    p.add_argument("--compression", default="xz", help="as dpkg-deb has it: xz, zstd, gzip, none")
    o = p.parse_args()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    os.makedirs(o.out, exist_ok=True)
    build = os.path.abspath(o.build)
    for name in PACKAGES:
        if name == "python3-kiln" and not os.path.isdir(os.path.join(build, "python/kiln")): continue
        path = build_package(name, build, o.out, epoch, o.compression)
        print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
