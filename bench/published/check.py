"""Checks drivers without a GPU: each kernel at a small size on the CPU, and compiled for Hopper, by Kiln and by Triton.

    python3 check.py --kiln KILN --kernels DIR [names]

Four columns: Kiln's host target against the reference; Triton's interpreter against it; Triton's compiler for sm_90,
for the types and constants that the driver's first configuration launches; `kiln compile` for sm_90a with the same.
The interpreter of Triton 3.6 needs NumPy before 2.4: bounds of loops are arrays there, which 2.4 makes no numbers of.
"""
import argparse
import os
import subprocess
import sys

from first_launch import DRIVERS, driver_names, first_launch


# Kernels that Triton's interpreter cannot run, though its compiler can.
NUMBERS = "its numbers are Python's there, which have no .to"
FUNCTIONS = "functions of Triton by a name of the module's are not interpreted, nor is libdevice"
TYPES = "its types of elements are no constexpr there, which have a .value"
AND = "`and` of two masks is Python's there, which leaves one of them"
FLOAT8 = "its conversion to float8 does not round to nearest"
NOT_INTERPRETED = {
    "ao_deepgemm_quant": FLOAT8,
    "bnb_adam": "a bool for a parameter is no number of one bit there",
    "ds_fp8_weight": "its weights are made into bfloat16, whose bits are multiplied as integers there",
    "fla_delta_h": NUMBERS,
    "gems_argmax": TYPES,
    "gems_batch_norm": FUNCTIONS,
    "gems_cummax": TYPES,
    "gems_isin": AND,
    "gems_layer_norm_backward": AND,
    "gems_log_softmax": AND,
    "gems_max_pool": TYPES,
    "gems_var_mean": AND,
    "gems_weight_norm": AND,
    "liger_dyt_backward": FUNCTIONS,
    "liger_fused_add_rms_norm": NUMBERS,
    "liger_geglu": FUNCTIONS,
    "liger_group_norm": NUMBERS,
    "liger_layer_norm": NUMBERS,
    "liger_rms_norm": NUMBERS,
    "liger_rms_norm_backward": NUMBERS,
    "liger_swiglu_backward": NUMBERS,
    "lmdeploy_paged": FUNCTIONS,
    "lmdeploy_swiglu_quant": FUNCTIONS,
    "quantize_fp8": FLOAT8,
    "unsloth_cross_entropy": FUNCTIONS,
    "unsloth_geglu_backward": FUNCTIONS,
    "vllm_quantize_int8": FUNCTIONS,
    "xformers_rope_padded": FUNCTIONS,
}


def compile_child(name):
    """Prints the arguments of `kiln compile` for what the driver's first launch compiles under Triton."""
    compiled = first_launch(name)
    print("KILN", *compiled.arguments, sep="\t")
    print("TRITON shared %d" % compiled.kernel.metadata.shared)


def run(command, env, limit):
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=limit)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return "timeout", ""


def last(text):
    lines = [l for l in text.strip().splitlines() if "WRONG" in l or "fails" in l or "rror" in l] or text.strip().splitlines()
    return lines[-1][:200] if lines else ""


def main():
    if sys.argv[1] == "--compile":
        return compile_child(sys.argv[2])
    p = argparse.ArgumentParser()
    p.add_argument("--kiln", required=True)
    p.add_argument("--kernels", required=True)
    p.add_argument("--limit", type=float, default=120)
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    names = o.names or driver_names()
    env = dict(os.environ, PUBLISHED=os.path.abspath(o.kernels))
    bad = 0
    for name in names:
        driver = os.path.join(DRIVERS, name + ".py")
        rows = [("kiln host", *run([o.kiln, driver, "check", "1", "0"], env, o.limit))]
        if name not in NOT_INTERPRETED:
            interpreted = dict(env, TRITON_INTERPRET="1")
            rows.append(("interpreter", *run([sys.executable, driver, "check", "1", "0"], interpreted, o.limit)))
        status, text = run([sys.executable, __file__, "--compile", name], env, o.limit)
        line = [l for l in text.splitlines() if l.startswith("KILN\t")]
        rows.append(("triton sm_90", 0 if line else status or 1, text))
        if line:
            source = os.path.join(env["PUBLISHED"], "src_%s.py" % name)
            rows.append(("kiln sm_90a", *run([o.kiln, "compile", source, "--target", "sm_90a", "--emit", "info"] +
                                             line[0].split("\t")[1:], env, o.limit)))
        print("%-24s %s" % (name, "  ".join("%s %s" % (r[0], "ok" if r[1] == 0 else "FAILS") for r in rows)), flush=True)
        for what, status, text in rows:
            if status != 0:
                bad += 1
                print("    %s (%s): %s" % (what, status, last(text)))
    return 1 if bad else 0


sys.exit(main())
