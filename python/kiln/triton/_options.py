"""Triton's options, as far as Kiln has them: what it has not, and is not as usual, makes Triton compile the kernel."""
from __future__ import annotations

import os
from typing import Any

from triton import knobs
from triton.runtime.errors import OutOfResources

from kiln.triton._functions import Refused

# Passed on, or honoured by the launcher.
_HONOURED = {
    "num_warps", "num_stages", "num_ctas", "maxnreg", "launch_pdl", "launch_cooperative_grid", "debug",
    "enable_fp_fusion", "sanitize_overflow"
}
# Of no meaning to the code.
_IGNORED = {"backend_name", "arch", "supported_fp8_dtypes"}

MOST_WARPS = 32  # of a block

_TARGETS = {80: "sm_80", 86: "sm_86", 89: "sm_89", 90: "sm_90a", 100: "sm_100a", 120: "sm_120"}


def target_name(target: Any) -> str:
    if getattr(target, "backend", "") != "cuda" or target.arch not in _TARGETS:
        raise Refused(f"the target {getattr(target, 'backend', target)}:{getattr(target, 'arch', '')}")
    if getattr(target, "warp_size", 32) != 32: raise Refused(f"warps of {target.warp_size} threads")
    return _TARGETS[target.arch]


def code_options(target: Any, options: Any, usual: Any) -> dict[str, Any]:
    """Kiln's launch options, and what else decides on the code. `usual` are the options of a kernel that asks for
    nothing."""
    # TRITON_OVERRIDE_ARCH or the option: Triton's passes are those of another GPU, and their code is for this one.
    if getattr(options, "arch", None) not in (None, f"sm{target.arch}"): raise Refused(f"the option arch={options.arch!r}")
    for name, value in vars(options).items():
        if name in _HONOURED or name in _IGNORED: continue
        # Another file of libdevice's: Kiln has those functions itself.
        if name == "extern_libs" and {library for library, _ in value} <= {"libdevice"}: continue
        # Options of ptxas are as usual where PTXAS_OPTIONS gives them.
        if value != getattr(usual, name, None) or (name == "ptx_options" and value):
            raise Refused(f"the option {name}={value!r}")
    if getattr(options, "maxnreg", None) == 0: raise Refused("the option maxnreg=0")
    if options.num_warps > MOST_WARPS:  # Triton compiles the kernel, and finds out when it loads it
        raise OutOfResources(32 * options.num_warps, 32 * MOST_WARPS, "threads")
    debug = bool(getattr(options, "debug", False))
    out = {
        "num_warps": options.num_warps, "num_stages": max(1, options.num_stages), "num_ctas": options.num_ctas, "debug":
        debug, "sanitize_overflow": debug and bool(getattr(options, "sanitize_overflow", False)), "launch_pdl":
        bool(getattr(options, "launch_pdl", False)), "enable_fp_fusion": bool(options.enable_fp_fusion),
        # TRITON_F32_DEFAULT, or what the program set in its place.
        "dot_precision": getattr(knobs.language, "fp32_default", None) or "",
        # TRITON_DISABLE_LINE_INFO
        "line_info": not getattr(knobs.compilation, "disable_line_info", False)
    }
    if getattr(options, "maxnreg", None): out["maxnreg"] = options.maxnreg
    return out


# What Triton's C++ reads of the environment to show what its passes do, or to change it.
_LOOKS = ("TRITON_REPRODUCER_PATH", "MLIR_ENABLE_DUMP", "LLVM_IR_ENABLE_DUMP", "MLIR_ENABLE_DIAGNOSTICS",
          "MLIR_ENABLE_TIMING", "LLVM_ENABLE_TIMING", "TRITON_ENABLE_LLVM_DEBUG", "TRITON_LLVM_DEBUG_ONLY",
          "TRITON_DUMP_MIR", "DISABLE_LLVM_OPT", "LLVM_PASS_PLUGIN_PATH")
# The same of its Python.
_KNOBS = {
    "compilation": ("override", "dump_ir", "use_ir_loc", "instrumentation_mode", "dump_ir_extract_di_local_variables"),
    "nvidia": ("dump_nvptx", "dump_ptxas_log", "disable_ptxas_opt", "mock_ptx_version")
}


def check_knobs() -> None:
    """What users set to look into Triton's compiler needs Triton's compiler."""
    for name in _LOOKS:
        if os.environ.get(name, "").lower() not in ("", "0", "off", "false"): raise Refused(f"the variable {name}")
    for group, names in _KNOBS.items():
        for name in names:
            if getattr(getattr(knobs, group), name, None): raise Refused(f"the knob {group}.{name}")
    if getattr(knobs.runtime, "add_stages_inspection_hook", None): raise Refused("a hook that inspects stages")
