"""Packs what `cmake --install --component python` has put into a folder as a wheel.

    python wheel.py FOLDER VERSION OUT

One wheel serves CPython 3.10 and later, since the extension uses the limited API. The bytes follow from the files alone.
"""
import base64
import hashlib
import os
import platform
import sys
import zipfile

SUMMARY = "Kiln: a compiler, launcher and profiler for kernels in the Triton language"


def main(folder: str, version: str, out: str) -> str:
    libc = platform.libc_ver()[1].replace(".", "_")
    tag = f"cp310-abi3-manylinux_{libc}_{platform.machine()}"
    info = f"kiln-{version}.dist-info"
    files = {}
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            with open(path, "rb") as f: files[os.path.relpath(path, folder)] = f.read()
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: kiln\nVersion: {version}\nSummary: {SUMMARY}\n"
                                 "License: Apache-2.0\nRequires-Python: >=3.10\n").encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: kiln\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")
    record.append(f"{info}/RECORD,,")
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    os.makedirs(out, exist_ok=True)
    wheel = os.path.join(out, f"kiln-{version}-{tag}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            z.writestr(entry, data)
    return wheel


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
