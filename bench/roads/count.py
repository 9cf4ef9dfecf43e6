"""Instructions of roads.py for sm_90a by Kiln and by Triton, from their PTX; no GPU is needed.

python3 count.py KILN

Needs Triton 3.4 or later for the second column, else prints Kiln's alone. Counts stand in the text of a kernel, not for
what runs: a loop's body counts once.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "roads.py")
NUMBERS = ["M", "N", "K"]
EXTRA = {"gathered": ("places", "*i32"), "dequantised": ("scales", "*fp32")}
KERNELS = ["blocks", "pointers", "gathered", "dequantised", "chained", "two_sums", "few_rows"]
KINDS = [("wgmma", r"wgmma\.mma_async"), ("mma.sync", r"\bmma\.sync"), ("TMA loads", r"cp\.async\.bulk\.tensor\S*shared\S*global"),
         ("TMA stores", r"cp\.async\.bulk\.tensor\S*global\S*shared"), ("cp.async", r"cp\.async\.c[ag]\."),
         ("ldmatrix", r"ldmatrix"), ("ld.shared", r"ld\.shared"), ("st.shared", r"st\.shared|stmatrix"),
         ("ld.global", r"ld\.global"), ("st.global", r"st\.global"), ("barriers", r"bar\.sync|barrier\.sync"),
         ("mbarrier waits", r"mbarrier\.try_wait")]


def signature(name):
    first = "*u8" if name == "dequantised" else "*bf16"
    types = [first, "*bf16", "*bf16"] + ([EXTRA[name][1]] if name in EXTRA else [])
    return [t + ":16" for t in types] + ["i32:16"] * len(NUMBERS)


def of_kiln(kiln, name):
    out = subprocess.run([kiln, "compile", SOURCE, "--kernel", name, "--signature", ",".join(signature(name)), "--target",
                          "sm_90a", "--num-warps", "8" if name != "few_rows" else "4", "--num-stages", "3", "--emit", "ptx"],
                         capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{name}: {out.stderr}")
    return out.stdout


def of_triton(name):
    try:
        import triton
        from triton.backends.compiler import GPUTarget
    except ImportError:
        return None
    sys.path.insert(0, HERE)
    import roads
    f = getattr(roads, name)
    types = {a: t.split(":")[0] for a, t in zip(f.arg_names, signature(name))}
    attrs = {(i,): [["tt.divisibility", 16]] for i in range(len(types))}
    source = triton.compiler.ASTSource(fn=f, signature=types, constexprs={}, attrs=attrs)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32),
                          options={"num_warps": 8 if name != "few_rows" else 4, "num_stages": 3})
    return made.asm["ptx"]


def main():
    print("| kernel | |", " | ".join(k for k, _ in KINDS), "|")
    print("|---|---|" + "--:|" * len(KINDS))
    for name in KERNELS:
        for who, text in (("Kiln", of_kiln(sys.argv[1], name)), ("Triton", of_triton(name))):
            if text is None:
                continue
            counts = [len(re.findall(pattern, text)) for _, pattern in KINDS]
            print(f"| {name if who == 'Kiln' else ''} | {who} |", " | ".join(str(c) if c else "" for c in counts), "|")


if __name__ == "__main__":
    main()
