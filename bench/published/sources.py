"""Where each kernel was published: repository, commit, path, and the functions that its driver launches.

`vllm` is a copy of vLLM of June 2025 and `sglang` the files of its wheel 0.5.23: both repositories are too large to copy
for a few files. `triton` is the tutorials of Triton as of December 2025 (3.6), from a repository that carries them.
"""

REPOSITORIES = {
    "AutoGPTQ": ("AutoGPTQ/AutoGPTQ", "9f7d370"),
    "FlagGems": ("FlagOpen/FlagGems", "532ff438"),
    "Liger-Kernel": ("linkedin/Liger-Kernel", "ead96b61"),
    "SageAttention": ("thu-ml/SageAttention", "d1a57a5"),
    "fla": ("fla-org/flash-linear-attention", "bc3b101d"),
    "lightllm": ("ModelTC/lightllm", "fc72ffab"),
    "lightning-attention": ("OpenNLPLab/lightning-attention", "d15c385"),
    "mamba": ("state-spaces/mamba", "e9594ce"),
    "sglang": ("sgl-project/sglang", "wheel 0.5.23"),
    "triton": ("triton-lang/Triton-to-tile-IR", "50ec1da08"),
    "unsloth": ("unslothai/unsloth", "015bdef0d9"),
    "vllm": ("pshlego/vllm_logits", "3dcb498"),
}

TUTORIALS = "python/tutorials/"
MAMBA = "mamba_ssm/ops/triton/"
VLLM = "vllm_logits/"
VLLM_LAYERS = VLLM + "model_executor/layers/"
VLLM_QUANTIZED = VLLM_LAYERS + "quantization/"
SGLANG = "sglang/kernels/ops/"
FLA = "fla/ops/"
GEMS = "src/flag_gems/ops/"
FLA_NAMES = "from fla_language import exp, exp2, log\n"
GEMS_NAMES = "import gems_language as tle\n"

# Modules that kernels take names from, written beside them in words of our own.
STUBS = {
    "fla_language.py": '''import triton
import triton.language as tl


@triton.jit
def exp(x):
    return tl.exp(x.to(tl.float32))


@triton.jit
def exp2(x):
    return tl.math.exp2(x.to(tl.float32))


@triton.jit
def log(x):
    return tl.log(x.to(tl.float32))
''',
    "gems_language.py": '''import triton
import triton.language as tl


@triton.jit
def program_id(axis):
    return tl.program_id(axis).to(tl.int64)


@triton.jit
def num_programs(axis):
    return tl.num_programs(axis).to(tl.int64)
''',
}

# name of the driver: (repository, path, top-level names, lines in front of them); a name of another file is PATH:NAME
KERNELS = {
    "attention": ("triton", TUTORIALS + "06-fused-attention.py",
                  ["_attn_fwd_inner", "_maybe_make_tensor_desc", "_attn_fwd"], ""),
    "attention_backward": ("triton", TUTORIALS + "06-fused-attention.py",
                           ["_attn_bwd_preprocess", "_attn_bwd_dkdv", "_attn_bwd_dq", "_attn_bwd"], ""),
    "awq": ("vllm", VLLM_QUANTIZED + "awq_triton.py", ["awq_gemm_kernel"], ""),
    "block_fp8": ("vllm", VLLM_QUANTIZED + "utils/fp8_utils.py", ["_w8a8_block_fp8_matmul"], ""),
    "block_int8": ("vllm", VLLM_QUANTIZED + "utils/int8_utils.py", ["_w8a8_block_int8_matmul"], ""),
    "bmm_invariant": ("sglang", "sglang/srt/batch_invariant_ops/batch_invariant_ops.py",
                      ["_compute_pid", "bmm_kernel_persistent"], ""),
    "decode": ("sglang", SGLANG + "attention/decode_attention.py", ["_fwd_grouped_kernel_stage1"], ""),
    "fla_chunk_h": ("fla", FLA + "common/chunk_h.py", ["chunk_fwd_kernel_h"], FLA_NAMES),
    "fla_chunk_o": ("fla", FLA + "common/chunk_o.py", ["chunk_fwd_kernel_o"], FLA_NAMES),
    "fla_delta_h": ("fla", FLA + "common/chunk_delta_h.py", ["chunk_gated_delta_rule_fwd_kernel_h_blockdim64"],
                    FLA_NAMES),
    "fla_kkt": ("fla", FLA + "common/chunk_scaled_dot_kkt.py", ["chunk_scaled_dot_kkt_fwd_kernel"], FLA_NAMES),
    "fla_wy": ("fla", FLA + "gated_delta_rule/wy_fast.py", ["recompute_w_u_fwd_kernel"], FLA_NAMES),
    "gems_addmm": ("FlagGems", GEMS + "addmm.py", ["addmm_kernel"], GEMS_NAMES),
    "gems_bmm": ("FlagGems", GEMS + "bmm.py", ["bmm_kernel"], GEMS_NAMES),
    "gptq": ("AutoGPTQ", "auto_gptq/nn_modules/triton_utils/kernels.py", ["quant_matmul_248_kernel"], ""),
    "grouped": ("triton", TUTORIALS + "08-grouped-gemm.py", ["grouped_matmul_kernel"], ""),
    "grouped_tma": ("triton", TUTORIALS + "08-grouped-gemm.py", ["grouped_matmul_tma_kernel"], ""),
    "lightning": ("lightning-attention", "lightning_attn/ops/triton/lightning_attn2.py", ["_fwd_kernel"], ""),
    "lora_a": ("sglang", SGLANG + "lora/dense/sgemm_lora_a.py",
               [SGLANG + "lora/dense/kernel_utils.py:_resolve_token_positions", "_sgemm_lora_a_kernel"], ""),
    "matmul": ("triton", TUTORIALS + "03-matrix-multiplication.py", ["matmul_kernel", "leaky_relu"], ""),
    "matmul_descriptor_persistent": ("triton", TUTORIALS + "09-persistent-matmul.py",
                                     ["_compute_pid", "matmul_kernel_descriptor_persistent"], ""),
    "matmul_persistent": ("triton", TUTORIALS + "09-persistent-matmul.py",
                          ["_compute_pid", "matmul_kernel_persistent"], ""),
    "matmul_tma_persistent": ("triton", TUTORIALS + "09-persistent-matmul.py",
                              ["_compute_pid", "matmul_kernel_tma_persistent"], ""),
    "moe": ("vllm", VLLM_LAYERS + "fused_moe/fused_moe.py", ["write_zeros_to_output", "fused_moe_kernel"], ""),
    "moe_fp8": ("vllm", VLLM_LAYERS + "fused_moe/fused_moe.py", ["write_zeros_to_output", "fused_moe_kernel"], ""),
    "moe_int4": ("vllm", VLLM_LAYERS + "fused_moe/fused_moe.py",
                 ["write_zeros_to_output", "fused_moe_kernel_gptq_awq"], ""),
    "prefill": ("sglang", SGLANG + "attention/prefill_attention.py", ["_fwd_kernel"], ""),
    "sage": ("SageAttention", "sageattention/triton/attn_qk_int8_per_block.py", ["_attn_fwd_inner", "_attn_fwd"], ""),
    "scaled_mm": ("vllm", VLLM_QUANTIZED + "compressed_tensors/triton_scaled_mm.py", ["scaled_mm_kernel"], ""),
    "ssd_bmm": ("mamba", MAMBA + "ssd_bmm.py", ["_bmm_chunk_fwd_kernel"], ""),
    "ssd_chunk_scan": ("mamba", MAMBA + "ssd_chunk_scan.py", ["_chunk_scan_fwd_kernel"], ""),
    "ssd_chunk_state": ("mamba", MAMBA + "ssd_chunk_state.py", ["_chunk_state_fwd_kernel"], ""),
    "unified": ("vllm", VLLM + "attention/ops/triton_unified_attention.py",
                ["cdiv_fn", "apply_softcap", "kernel_unified_attention_2d"], ""),
}
