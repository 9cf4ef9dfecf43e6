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
FLA = "fla/ops/"
FLA_EXP = "exp = tl.exp\nexp2 = tl.math.exp2\nlog = tl.log\n"

# name of the driver: (repository, path, top-level names, lines in front of them)
KERNELS = {
    "attention_backward": ("triton", TUTORIALS + "06-fused-attention.py",
                           ["_attn_bwd_preprocess", "_attn_bwd_dkdv", "_attn_bwd_dq", "_attn_bwd"], ""),
    "awq": ("vllm", VLLM_LAYERS + "quantization/awq_triton.py", ["awq_gemm_kernel"], ""),
    "block_int8": ("vllm", VLLM_LAYERS + "quantization/utils/int8_utils.py", ["_w8a8_block_int8_matmul"], ""),
    "fla_delta_h": ("fla", FLA + "common/chunk_delta_h.py", ["chunk_gated_delta_rule_fwd_kernel_h_blockdim64"], FLA_EXP),
    "grouped_tma": ("triton", TUTORIALS + "08-grouped-gemm.py", ["grouped_matmul_tma_kernel"], ""),
    "lightning": ("lightning-attention", "lightning_attn/ops/triton/lightning_attn2.py", ["_fwd_kernel"], ""),
    "matmul_tma_persistent": ("triton", TUTORIALS + "09-persistent-matmul.py",
                              ["_compute_pid", "matmul_kernel_tma_persistent"], ""),
    "moe": ("vllm", VLLM_LAYERS + "fused_moe/fused_moe.py", ["write_zeros_to_output", "fused_moe_kernel"], ""),
    "moe_fp8": ("vllm", VLLM_LAYERS + "fused_moe/fused_moe.py", ["write_zeros_to_output", "fused_moe_kernel"], ""),
    "moe_int4": ("vllm", VLLM_LAYERS + "fused_moe/fused_moe.py",
                 ["write_zeros_to_output", "fused_moe_kernel_gptq_awq"], ""),
    "sage": ("SageAttention", "sageattention/triton/attn_qk_int8_per_block.py", ["_attn_fwd_inner", "_attn_fwd"], ""),
    "scaled_mm": ("vllm", VLLM_LAYERS + "quantization/compressed_tensors/triton_scaled_mm.py", ["scaled_mm_kernel"], ""),
    "ssd_chunk_scan": ("mamba", MAMBA + "ssd_chunk_scan.py", ["_chunk_scan_fwd_kernel"], ""),
}
