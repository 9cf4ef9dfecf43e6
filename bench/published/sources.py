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
    "lion": ("lucidrains/lion-pytorch", "6a74fdc"),
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
LIGER = "src/liger_kernel/ops/"
LIGER_NAMES = "rsqrt = libdevice.rsqrt\n"
LIGHTLLM = "lightllm/common/basemodel/triton_kernel/"
UNSLOTH_NAMES = "triton_tanh = libdevice.tanh\ntriton_cast = tl.cast\n"
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
PRODUCTS = {
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

# Kernels that do not multiply matrices.
OTHERS = {
    "fla_cumsum": ("fla", FLA + "utils/cumsum.py", ["chunk_local_cumsum_vector_kernel"], ""),
    "fla_l2norm": ("fla", "fla/modules/l2norm.py", ["l2norm_fwd_kernel"], ""),
    "fla_logsumexp": ("fla", FLA + "utils/logsumexp.py", ["logsumexp_fwd_kernel"], FLA_NAMES),
    "lightllm_quantize_kv": ("lightllm", LIGHTLLM + "destindex_copy_kv.py",
                             ["_fwd_kernel_destindex_copy_quantize_kv"], ""),
    "lightllm_rotary": ("lightllm", "lightllm/models/llama/triton_kernel/rotary_emb.py", ["_rotary_kernel"], ""),
    "lightllm_silu": ("lightllm", "lightllm/models/llama/triton_kernel/silu_and_mul.py", ["_silu_and_mul_kernel"], ""),
    "lightllm_topk": ("lightllm", "lightllm/common/fused_moe/softmax_topk.py", ["softmax_topk_kernel"], ""),
    "liger_cross_entropy": ("Liger-Kernel", LIGER + "cross_entropy.py", ["LOG2_E", "liger_cross_entropy_kernel"],
                            "tanh = libdevice.tanh\n"),
    "liger_group_norm": ("Liger-Kernel", LIGER + "group_norm.py", ["_group_norm_forward_kernel"], LIGER_NAMES),
    "liger_jsd": ("Liger-Kernel", LIGER + "jsd.py", ["_jsd_kernel"], ""),
    "liger_layer_norm": ("Liger-Kernel", LIGER + "layer_norm.py", ["_layer_norm_forward_kernel"], LIGER_NAMES),
    "liger_layer_norm_backward": ("Liger-Kernel", LIGER + "layer_norm.py", ["_layer_norm_backward_kernel"], ""),
    "liger_rms_norm": ("Liger-Kernel", LIGER + "rms_norm.py",
                       ["_CASTING_MODE_NONE", "_CASTING_MODE_LLAMA", "_CASTING_MODE_GEMMA", "_rms_norm_forward_kernel"],
                       LIGER_NAMES),
    "liger_rope": ("Liger-Kernel", LIGER + "rope.py", ["_triton_rope"], ""),
    "liger_swiglu_backward": ("Liger-Kernel", LIGER + "swiglu.py", ["_swiglu_backward_kernel"], ""),
    "lion": ("lion", "lion_pytorch/triton.py", ["update_fn_kernel"], ""),
    "mamba_state_update": ("mamba", MAMBA + "selective_state_update.py", ["_selective_scan_update_kernel"],
                           "\n\n@triton.jit\ndef softplus(dt):\n    return tl.math.log(tl.math.exp(dt) + 1)\n"),
    "merge_states": ("vllm", VLLM + "attention/ops/triton_merge_attn_states.py", ["merge_attn_states_kernel"], ""),
    "moe_sum": ("sglang", SGLANG + "moe/fused_moe_triton_kernels.py", ["_moe_sum_reduce_kernel"], ""),
    "quantize_fp8": ("vllm", VLLM_QUANTIZED + "utils/fp8_utils.py", ["_per_token_group_quant_fp8"], ""),
    "recovered_tokens": ("vllm", VLLM + "v1/sample/rejection_sampler.py", ["sample_recovered_tokens_kernel"], ""),
    "unsloth_cross_entropy": ("unsloth", "unsloth/kernels/cross_entropy_loss.py", ["_cross_entropy_forward"],
                              UNSLOTH_NAMES),
    "unsloth_geglu_backward": ("unsloth", "unsloth/kernels/geglu.py", ["_approx_backward_kernel"], UNSLOTH_NAMES),
}

KERNELS = {**PRODUCTS, **OTHERS}
