"""Where each kernel was published: repository, commit, path, and the functions that its driver launches.

`vllm` is a copy of vLLM of June 2025 and `sglang` the files of its wheel 0.5.23: both repositories are too large to copy
for a few files. `triton` is the tutorials of Triton as of December 2025 (3.6), from a repository that carries them.
"""

REPOSITORIES = {
    "AutoGPTQ": ("AutoGPTQ/AutoGPTQ", "9f7d370"),
    "ColossalAI": ("hpcaitech/ColossalAI", "4f9953be3"),
    "DeepSeek-V3": ("deepseek-ai/DeepSeek-V3", "9b4e978"),
    "DeepSpeed": ("deepspeedai/DeepSpeed", "edaa7221"),
    "FlagGems": ("FlagOpen/FlagGems", "532ff438"),
    "Liger-Kernel": ("linkedin/Liger-Kernel", "ead96b61"),
    "MInference": ("microsoft/MInference", "fb56c91"),
    "SageAttention": ("thu-ml/SageAttention", "d1a57a5"),
    "TransformerEngine": ("NVIDIA/TransformerEngine", "d0067d0d"),
    "ao": ("pytorch/ao", "36027d82"),
    "applied-ai": ("pytorch-labs/applied-ai", "4f8c39e"),
    "attorch": ("BobMcDear/attorch", "67c2772"),
    "bitsandbytes": ("bitsandbytes-foundation/bitsandbytes", "95f9af30"),
    "fla": ("fla-org/flash-linear-attention", "bc3b101d"),
    "flash-attention": ("Dao-AILab/flash-attention", "0251105a"),
    "generative-recommenders": ("facebookresearch/generative-recommenders", "2e81fab6"),
    "lightllm": ("ModelTC/lightllm", "fc72ffab"),
    "lightning-attention": ("OpenNLPLab/lightning-attention", "d15c385"),
    "lion": ("lucidrains/lion-pytorch", "6a74fdc"),
    "lmdeploy": ("InternLM/lmdeploy", "1263d5cd"),
    "mamba": ("state-spaces/mamba", "e9594ce"),
    "megablocks": ("databricks/megablocks", "78eea65f"),
    "native-sparse-attention": ("XunhaoLai/native-sparse-attention-triton", "9bea856"),
    "pyg-lib": ("pyg-team/pyg-lib", "764e3a49"),
    "scattermoe": ("shawntan/scattermoe", "47b5e15"),
    "sglang": ("sgl-project/sglang", "wheel 0.5.23"),
    "stk": ("stanford-futuredata/stk", "7363137"),
    "triton": ("triton-lang/Triton-to-tile-IR", "50ec1da08"),
    "unsloth": ("unslothai/unsloth", "015bdef0d9"),
    "vllm": ("pshlego/vllm_logits", "3dcb498"),
    "xformers": ("facebookresearch/xformers", "ca6d2aa0"),
}

TUTORIALS = "python/tutorials/"
MAMBA = "mamba_ssm/ops/triton/"
VLLM = "vllm_logits/"
VLLM_LAYERS = VLLM + "model_executor/layers/"
VLLM_QUANTIZED = VLLM_LAYERS + "quantization/"
VLLM_LORA = VLLM + "lora/ops/triton_ops/kernel_utils.py:"
SGLANG = "sglang/kernels/ops/"
FLA = "fla/ops/"
GEMS = "src/flag_gems/ops/"
GEMS_FUSED = "src/flag_gems/fused/"
GEMS_MINIMUM = "src/flag_gems/utils/limits.py:get_dtype_min"
GEMS_LIMITS = ["_M%s_%s_VAL" % (side, kind) for kind in ("FLOAT32", "FLOAT16", "BFLOAT16") for side in ("IN", "AX")]
FLA_NAMES = "from fla_language import exp, exp2, log\n"
FLA_DESCRIPTOR = "make_tensor_descriptor = tl.make_tensor_descriptor\n"
LIGER = "src/liger_kernel/ops/"
LIBDEVICE_RSQRT = "rsqrt = libdevice.rsqrt\n"
LIBDEVICE_TANH = "tanh = libdevice.tanh\n"
LIGER_REDUCTIONS = ["_REDUCTION_MODE_NONE", "_REDUCTION_MODE_SUM", "_REDUCTION_MODE_MEAN", "_REDUCTION_MODE_BATCHMEAN"]
BNB = "bitsandbytes/backends/triton/"
LMDEPLOY = "lmdeploy/pytorch/kernels/cuda/"
LMDEPLOY_NAMES = "tanh = libdevice.tanh\ntl_log2 = tl.log2\ntl_exp2 = tl.exp2\n"
TE = "transformer_engine/common/triton/"
MAMBA_SOFTPLUS = "\n\n@triton.jit\ndef softplus(dt):\n    return tl.math.log(tl.math.exp(dt) + 1)\n"
# Published as inline assembly, tanh.approx.f32, which the CPU cannot run.
MAMBA_TANH = "\n\n@triton.jit\ndef tanh_approx(x):\n    return 2 / (1 + tl.exp(-2 * x)) - 1\n"
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


@triton.jit
def maximum_with_index_tie_break_right(a, i, b, j):
    left, equal = a > b, a == b
    if a.dtype.is_floating():
        left = left | ((a != a) & (b == b))
        equal = equal | ((a != a) & (b != b))
    left = left | (equal & (i > j))
    return tl.where(left, a, b), tl.where(left, i, j)
''',
}

# name of the driver: (repository, path, top-level names, lines in front of them); a name of another file is PATH:NAME
PRODUCTS = {
    "ao_hqq": ("ao", "torchao/prototype/hqq/kernels.py", ["_mixed_mm_kernel"], ""),
    "ao_int8_mm": ("ao", "torchao/prototype/quantized_training/int8_mm.py", ["_scaled_int8_mm_kernel"], ""),
    "attention": ("triton", TUTORIALS + "06-fused-attention.py",
                  ["_attn_fwd_inner", "_maybe_make_tensor_desc", "_attn_fwd"], ""),
    "attention_backward": ("triton", TUTORIALS + "06-fused-attention.py",
                           ["_attn_bwd_preprocess", "_attn_bwd_dkdv", "_attn_bwd_dq", "_attn_bwd"], ""),
    "awq": ("vllm", VLLM_QUANTIZED + "awq_triton.py", ["awq_gemm_kernel"], ""),
    "block_fp8": ("vllm", VLLM_QUANTIZED + "utils/fp8_utils.py", ["_w8a8_block_fp8_matmul"], ""),
    "block_int8": ("vllm", VLLM_QUANTIZED + "utils/int8_utils.py", ["_w8a8_block_int8_matmul"], ""),
    "block_sparse_attention": ("MInference", "minference/ops/block_sparse_flash_attention.py",
                               ["_triton_block_sparse_attn_fwd_kernel"], ""),
    "bmm_invariant": ("sglang", "sglang/srt/batch_invariant_ops/batch_invariant_ops.py",
                      ["_compute_pid", "bmm_kernel_persistent"], ""),
    "colossal_prefill": ("ColossalAI", "colossalai/kernel/triton/context_attn_unpad.py",
                         ["_fwd_context_paged_attention_kernel"], ""),
    "decode": ("sglang", SGLANG + "attention/decode_attention.py", ["_fwd_grouped_kernel_stage1"], ""),
    "deepseek_fp8": ("DeepSeek-V3", "inference/kernel.py", ["fp8_gemm_kernel"], ""),
    "ds_fp8_weight": ("DeepSpeed", "deepspeed/ops/fp_quantizer/fp8_gemm_triton.py", ["matmul_kernel_fp8_bf16"], ""),
    "fla_chunk_h": ("fla", FLA + "common/chunk_h.py", ["chunk_fwd_kernel_h"], FLA_NAMES),
    "fla_chunk_o": ("fla", FLA + "common/chunk_o.py", ["chunk_fwd_kernel_o"], FLA_NAMES),
    "fla_delta_h": ("fla", FLA + "common/chunk_delta_h.py", ["chunk_gated_delta_rule_fwd_kernel_h_blockdim64"],
                    FLA_NAMES),
    "fla_dplr_h": ("fla", FLA + "generalized_delta_rule/dplr/chunk_h_fwd.py", ["chunk_dplr_fwd_kernel_h"], FLA_NAMES),
    "fla_dqkwg": ("fla", FLA + "common/chunk_o.py", ["chunk_bwd_kernel_dqkwg"], FLA_NAMES),
    "fla_gla_o": ("fla", FLA + "gla/chunk.py", ["chunk_gla_fwd_kernel_o"], FLA_NAMES),
    "fla_kkt": ("fla", FLA + "common/chunk_scaled_dot_kkt.py", ["chunk_scaled_dot_kkt_fwd_kernel"], FLA_NAMES),
    "fla_nsa": ("fla", FLA + "nsa/parallel.py", ["parallel_nsa_fwd_kernel"], FLA_NAMES),
    "fla_solve_tril": ("fla", FLA + "utils/solve_tril.py", ["merge_16x16_to_64x64_inverse_kernel"], FLA_DESCRIPTOR),
    "fla_ttt_h": ("fla", FLA + "ttt/chunk.py", ["chunk_ttt_linear_fwd_kernel_h"], ""),
    "fla_wy": ("fla", FLA + "gated_delta_rule/wy_fast.py", ["recompute_w_u_fwd_kernel"], FLA_NAMES),
    "gems_addmm": ("FlagGems", GEMS + "addmm.py", ["addmm_kernel"], GEMS_NAMES),
    "gems_bmm": ("FlagGems", GEMS + "bmm.py", ["bmm_kernel"], GEMS_NAMES),
    "gems_conv2d": ("FlagGems", GEMS + "conv2d.py", ["conv2d_forward_kernel"], ""),
    "gems_flash_mla": ("FlagGems", GEMS_FUSED + "flash_mla.py", ["flash_mla_attn_kernel"], GEMS_NAMES),
    "gptq": ("AutoGPTQ", "auto_gptq/nn_modules/triton_utils/kernels.py", ["quant_matmul_248_kernel"], ""),
    "gr_jagged_reduce": ("generative-recommenders", "generative_recommenders/ops/triton/triton_jagged.py",
                         ["_jagged_jagged_bmm_reduce_sum"], ""),
    "grouped": ("triton", TUTORIALS + "08-grouped-gemm.py", ["grouped_matmul_kernel"], ""),
    "grouped_tma": ("triton", TUTORIALS + "08-grouped-gemm.py", ["grouped_matmul_tma_kernel"], ""),
    "liger_int2": ("Liger-Kernel", LIGER + "experimental/mm_int8int2.py", ["matmul_kernel"], ""),
    "liger_mhc": ("Liger-Kernel", LIGER + "mhc.py", ["_mhc_mm_norm_fwd_kernel"], ""),
    "lightllm_mla_prefill": ("lightllm", "lightllm/models/deepseek2/triton_kernel/context_flashattention_nopad.py",
                             ["_fwd_kernel"], ""),
    "lightning": ("lightning-attention", "lightning_attn/ops/triton/lightning_attn2.py", ["_fwd_kernel"], ""),
    "lmdeploy_index": ("lmdeploy", LMDEPLOY + "ds_index.py", ["_fp8_index_kernel"], ""),
    "lmdeploy_paged": ("lmdeploy", LMDEPLOY + "pagedattention.py", ["_convert_pv", "_fwd_grouped_split_kernel"],
                       LMDEPLOY_NAMES),
    "lora_a": ("sglang", SGLANG + "lora/dense/sgemm_lora_a.py",
               [SGLANG + "lora/dense/kernel_utils.py:_resolve_token_positions", "_sgemm_lora_a_kernel"], ""),
    "lora_expand": ("vllm", VLLM + "lora/ops/triton_ops/lora_expand_op.py",
                    [VLLM_LORA + "mm_k", VLLM_LORA + "do_expand_kernel", "_lora_expand_kernel"], ""),
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
    "scattermoe": ("scattermoe", "scattermoe/kernels/ops.py", ["_compute_expert_block", "_scatter2scatter"], ""),
    "sglang_extend": ("sglang", SGLANG + "attention/extend_attention.py", ["tanh", "_fwd_kernel"], ""),
    "splitk_int4": ("applied-ai", "kernels/triton/inference/gptq/splitk_dequant_gemm.py",
                    ["swizzle_tile", "matmul_split_k_kernel"], ""),
    "ssd_bmm": ("mamba", MAMBA + "ssd_bmm.py", ["_bmm_chunk_fwd_kernel"], ""),
    "ssd_chunk_scan": ("mamba", MAMBA + "ssd_chunk_scan.py", ["_chunk_scan_fwd_kernel"], ""),
    "ssd_chunk_state": ("mamba", MAMBA + "ssd_chunk_state.py", ["_chunk_state_fwd_kernel"], ""),
    "ssd_dx": ("mamba", MAMBA + "ssd_combined.py", ["_chunk_scan_chunk_state_bwd_dx_kernel"], ""),
    "stk_dsd": ("stk", "stk/backend/triton_kernels.py", ["_dsd_kernel"], ""),
    "stk_sdd": ("stk", "stk/backend/triton_kernels.py", ["_sdd_kernel"], ""),
    "topk_sparse": ("native-sparse-attention", "native_sparse_attention/ops/triton/topk_sparse_attention.py",
                    ["forward_kernel"], ""),
    "unified": ("vllm", VLLM + "attention/ops/triton_unified_attention.py",
                ["cdiv_fn", "apply_softcap", "kernel_unified_attention_2d"], ""),
    "unsloth_grouped": ("unsloth", "unsloth/kernels/moe/grouped_gemm/kernels/forward.py",
                        ["_grouped_gemm_forward_kernel"], ""),
    "unsloth_grouped_dw": ("unsloth", "unsloth/kernels/moe/grouped_gemm/kernels/backward.py",
                           ["_grouped_gemm_dW_kernel"], ""),
    "vllm_lightning_diag": ("vllm", VLLM_LAYERS + "lightning_attn.py", ["_fwd_diag_kernel"], ""),
    "vllm_prefix_prefill": ("vllm", VLLM + "attention/ops/prefix_prefill.py", ["_fwd_kernel"], ""),
}

# Kernels that do not multiply matrices.
OTHERS = {
    "ao_deepgemm_quant": ("ao", "torchao/prototype/blockwise_fp8_training/deepgemm_quant.py",
                          ["triton_fp8_blockwise_act_quant_k_grouped_deepgemm_kernel"], ""),
    "ao_hadamard": ("ao", "torchao/prototype/attention/quantization/triton_hadamard_utils.py",
                    ["_hadamard_butterfly_stage", "_apply_hadamard", "_inverse_hadamard_kernel"], ""),
    "attorch_dropout": ("attorch", "attorch/dropout_kernels.py", ["apply_dropout", "dropout_forward_kernel"], ""),
    "bnb_adam": ("bitsandbytes", BNB + "kernels_optim.py", ["_optimizer_update_2state_32bit_triton_kernel"], ""),
    "bnb_adam_8bit": ("bitsandbytes", BNB + "kernels_optim.py",
                      [BNB + "kernels_8bit_quant.py:quantize_8bit_blockwise_kernel_util",
                       BNB + "kernels_8bit_quant.py:dequant_8bit_blockwise_kernel_util",
                       "_optimizer_update_2state_8bit_blockwise_triton_kernel"], ""),
    "bnb_dequantize_nf4": ("bitsandbytes", BNB + "kernels_4bit.py",
                           ["dequantize_nf4_tree", "dequant_nf4_body_util", "dequant_nf4_kernel"], ""),
    "bnb_quantize_nf4": ("bitsandbytes", BNB + "kernels_4bit.py", ["quantize_nf4_blockwise_kernel"], ""),
    "fla_block_csr": ("fla", FLA + "utils/csr.py", ["prepare_block_csr_kernel"], ""),
    "fla_causal_conv": ("fla", "fla/modules/conv/triton/kernels.py", ["causal_conv1d_fwd_kernel"], ""),
    "fla_conv_update": ("fla", "fla/modules/conv/triton/kernels.py", ["causal_conv1d_update_kernel"], ""),
    "fla_cumsum": ("fla", FLA + "utils/cumsum.py", ["chunk_local_cumsum_vector_kernel"], ""),
    "fla_gated_norm": ("fla", "fla/modules/fused_norm_gate.py", ["layer_norm_gated_fwd_kernel"], ""),
    "fla_grpo_backward": ("fla", "fla/modules/grpo.py", ["grpo_bwd_kernel"], FLA_NAMES),
    "fla_hgrn": ("fla", FLA + "hgrn/chunk.py", ["chunk_hgrn_fwd_kernel_h"], FLA_NAMES),
    "fla_kda_intra": ("fla", FLA + "kda/chunk_intra_token_parallel.py", ["chunk_kda_fwd_kernel_intra_token_parallel"],
                      FLA_NAMES),
    "fla_l2norm": ("fla", "fla/modules/l2norm.py", ["l2norm_fwd_kernel"], ""),
    "fla_logsumexp": ("fla", FLA + "utils/logsumexp.py", ["logsumexp_fwd_kernel"], FLA_NAMES),
    "fla_mean_pooling": ("fla", FLA + "utils/pooling.py", ["mean_pooling_fwd_kernel"], ""),
    "fla_recurrent_delta": ("fla", FLA + "gated_delta_rule/fused_recurrent.py",
                            ["fused_recurrent_gated_delta_rule_fwd_kernel"], FLA_NAMES + MAMBA_SOFTPLUS),
    "fla_token_shift": ("fla", "fla/modules/token_shift.py", ["token_shift_fwd_kernel_short"], ""),
    "flash_rotary": ("flash-attention", "flash_attn/ops/triton/rotary.py", ["rotary_kernel"], ""),
    "gems_argmax": ("FlagGems", GEMS + "argmax.py", [GEMS_MINIMUM, "argmax_kernel"], GEMS_NAMES),
    "gems_avg_pool_backward": ("FlagGems", GEMS + "avg_pool2d.py", ["avg_pool2d_backward_kernel"], ""),
    "gems_batch_norm": ("FlagGems", GEMS + "batch_norm.py", ["batch_norm_forward_kernel"], LIBDEVICE_RSQRT),
    "gems_bicubic": ("FlagGems", GEMS + "upsample_bicubic2d_aa.py", ["upsample_bicubic2d_aa_kernel"], GEMS_NAMES),
    "gems_bitonic_topk": ("FlagGems", GEMS + "topk.py",
                          GEMS_LIMITS + ["_MIN_INT32_VAL", "_MAX_INT32_VAL", "_get_finfo_val", "_compare_and_swap",
                                         "_bitonic_merge", "argsort", "topk_stage2_kernel"],
                          GEMS_NAMES + "import triton.language.core as core\n"
                          "from triton.language.standard import _log2, zeros_like\n"),
    "gems_cummax": ("FlagGems", GEMS + "cummax.py",
                    [GEMS_MINIMUM, "tl_cummax", "tl_max_tie_break_right", "add_base_max_kernel",
                     "scan_part_max_kernel"], GEMS_NAMES),
    "gems_cumsum": ("FlagGems", GEMS + "cumsum.py",
                    ["get_scan_accum_type", "reduce_then_scan_block_sum_kernel_row",
                     "reduce_then_scan_root_scan_kernel_row", "reduce_then_scan_block_scan_kernel_row"], ""),
    "gems_dropout": ("FlagGems", GEMS + "dropout.py", ["dropout_forward_kernel"],
                     "uint_to_uniform_float = tl.uint_to_uniform_float\n"),
    "gems_embedding": ("FlagGems", GEMS + "embedding.py", ["embedding_kernel"], GEMS_NAMES),
    "gems_index_select": ("FlagGems", GEMS + "index_select.py", ["index_select_kernel"], GEMS_NAMES),
    "gems_isin": ("FlagGems", GEMS + "isin.py", ["isin_by_search_impl", "isin_by_search_kernel"], GEMS_NAMES),
    "gems_layer_norm_backward": ("FlagGems", GEMS + "layernorm.py", ["layer_norm_backward_kernel"], GEMS_NAMES),
    "gems_log_softmax": ("FlagGems", GEMS + "log_softmax.py", ["log_softmax_kernel"], GEMS_NAMES),
    "gems_masked_select": ("FlagGems", GEMS + "masked_select.py", ["mask_part_sum_kernel", "write_back_kernel"], ""),
    "gems_max_pool": ("FlagGems", GEMS + "max_pool2d_with_indices.py", [GEMS_MINIMUM, "max_pool2d_forward_kernel"], ""),
    "gems_mla_cache": ("FlagGems", GEMS_FUSED + "concat_and_cache_mla.py",
                       ["FP8_KV_CACHE_DATA_TYPE_AUTO", "FP8_KV_CACHE_DATA_TYPE_FP8E4M3",
                        "FP8_KV_CACHE_DATA_TYPE_FP8E5M2", "concat_and_cache_mla_kernel"], ""),
    "gems_paged_cache": ("FlagGems", GEMS_FUSED + "reshape_and_cache_flash.py", ["reshape_and_cache_flash_kernel"], ""),
    "gems_quantile": ("FlagGems", GEMS + "quantile.py", ["quantile_kernel"], GEMS_NAMES),
    "gems_radix_sort": ("FlagGems", GEMS + "sort.py",
                        ["unwrap_if_constexpr", "get_int_t", "one_zeros", "zero_ones", "uint_to_uint", "int_to_uint",
                         "floating_to_uint", "convert_to_uint_preverse_order", "compute_global_hist_kernel",
                         "sweep"], ""),
    "gems_softmax": ("FlagGems", GEMS + "softmax.py", ["prev_multiple_of", "softmax_kernel_non_inner"], GEMS_NAMES),
    "gems_topk": ("FlagGems", GEMS + "topk.py", GEMS_LIMITS + ["_get_finfo_val", "topk_stage1_kernel"], GEMS_NAMES),
    "gems_topk_softmax": ("FlagGems", GEMS_FUSED + "topk_softmax.py", ["topk_gating_softmax_kernel"], ""),
    "gems_triu": ("FlagGems", GEMS + "triu.py", ["triu_batch_kernel"], GEMS_NAMES),
    "gems_upsample_nearest": ("FlagGems", GEMS + "upsample_nearest2d.py", ["upsample_nearest2d_kernel"], ""),
    "gems_var_mean": ("FlagGems", GEMS + "var_mean.py", ["welford_func", "var_mean_welford_kernel"], GEMS_NAMES),
    "gems_weight_norm": ("FlagGems", GEMS + "weightnorm.py", ["weight_norm_kernel_last"], GEMS_NAMES),
    "liger_attention_residual": ("Liger-Kernel", LIGER + "attn_res.py", ["_attn_res_fwd_kernel"], ""),
    "liger_cross_entropy": ("Liger-Kernel", LIGER + "cross_entropy.py", ["LOG2_E", "liger_cross_entropy_kernel"],
                            LIBDEVICE_TANH),
    "liger_dyt_backward": ("Liger-Kernel", LIGER + "dyt.py", ["_dyt_bwd_kernel"], LIBDEVICE_TANH),
    "liger_embedding_backward": ("Liger-Kernel", LIGER + "experimental/embedding.py", ["embedding_backward_kernel"], ""),
    "liger_fused_add_rms_norm": ("Liger-Kernel", LIGER + "fused_add_rms_norm.py",
                                 ["_CASTING_MODE_NONE", "_CASTING_MODE_LLAMA", "_CASTING_MODE_GEMMA",
                                  "_fused_add_rms_norm_forward_kernel"], LIBDEVICE_RSQRT),
    "liger_geglu": ("Liger-Kernel", LIGER + "geglu.py", ["_geglu_tanh_forward_kernel"], LIBDEVICE_TANH),
    "liger_group_norm": ("Liger-Kernel", LIGER + "group_norm.py", ["_group_norm_forward_kernel"], LIBDEVICE_RSQRT),
    "liger_jsd": ("Liger-Kernel", LIGER + "jsd.py", ["_jsd_kernel"], ""),
    "liger_kl_div": ("Liger-Kernel", LIGER + "kl_div.py", LIGER_REDUCTIONS + ["_kldiv_kernel_forward"], ""),
    "liger_layer_norm": ("Liger-Kernel", LIGER + "layer_norm.py", ["_layer_norm_forward_kernel"], LIBDEVICE_RSQRT),
    "liger_layer_norm_backward": ("Liger-Kernel", LIGER + "layer_norm.py", ["_layer_norm_backward_kernel"], ""),
    "liger_mrope": ("Liger-Kernel", LIGER + "qwen2vl_mrope.py", ["_triton_qwen2vl_mrope"], ""),
    "liger_moe_router": ("Liger-Kernel", LIGER + "fused_moe_kernels.py",
                         ["_keyed_add", "_moe_router_histogram_kernel", "_moe_router_prefix_sum_kernel",
                          "_moe_router_scatter_kernel"], ""),
    "liger_poly_norm_backward": ("Liger-Kernel", LIGER + "poly_norm.py", ["_poly_norm_backward_kernel"], ""),
    "liger_rms_norm": ("Liger-Kernel", LIGER + "rms_norm.py",
                       ["_CASTING_MODE_NONE", "_CASTING_MODE_LLAMA", "_CASTING_MODE_GEMMA", "_rms_norm_forward_kernel"],
                       LIBDEVICE_RSQRT),
    "liger_rms_norm_backward": ("Liger-Kernel", LIGER + "rms_norm.py",
                                ["_CASTING_MODE_NONE", "_CASTING_MODE_LLAMA", "_CASTING_MODE_GEMMA",
                                 "_rms_norm_backward_kernel"], ""),
    "liger_rope": ("Liger-Kernel", LIGER + "rope.py", ["_triton_rope"], ""),
    "liger_selective_log_softmax": ("Liger-Kernel", LIGER + "grpo_loss.py", ["_selective_log_softmax_kernel"], ""),
    "liger_softmax_backward": ("Liger-Kernel", LIGER + "softmax.py", ["_softmax_single_block_backward_kernel"], ""),
    "liger_sparsemax": ("Liger-Kernel", LIGER + "sparsemax.py", ["_sparsemax_forward_kernel"], ""),
    "liger_swiglu_backward": ("Liger-Kernel", LIGER + "swiglu.py", ["_swiglu_backward_kernel"], ""),
    "liger_tvd": ("Liger-Kernel", LIGER + "tvd.py", LIGER_REDUCTIONS + ["_tv_distance_kernel"], ""),
    "lightllm_ep_gather": ("lightllm", "lightllm/common/fused_moe/deepep_scatter_gather.py",
                           ["_fwd_kernel_ep_gather"], ""),
    "lightllm_grouped_topk": ("lightllm", "lightllm/common/fused_moe/grouped_topk.py",
                              ["_compare_and_swap", "_bitonic_merge", "argsort", "grouped_topk_kernel"],
                              "from triton.language.standard import _log2, sum, zeros_like\n"),
    "lightllm_penalty": ("lightllm", LIGHTLLM + "apply_penalty.py", ["_fwd_kernel_apply_penalty"], ""),
    "lightllm_quantize_kv": ("lightllm", LIGHTLLM + "destindex_copy_kv.py",
                             ["_fwd_kernel_destindex_copy_quantize_kv"], ""),
    "lightllm_rotary": ("lightllm", "lightllm/models/llama/triton_kernel/rotary_emb.py", ["_rotary_kernel"], ""),
    "lightllm_silu": ("lightllm", "lightllm/models/llama/triton_kernel/silu_and_mul.py", ["_silu_and_mul_kernel"], ""),
    "lightllm_topk": ("lightllm", "lightllm/common/fused_moe/softmax_topk.py", ["softmax_topk_kernel"], ""),
    "lion": ("lion", "lion_pytorch/triton.py", ["update_fn_kernel"], ""),
    "lmdeploy_bitonic_topk": ("lmdeploy", LMDEPLOY + "bitonic_topk.py",
                              ["_indicator", "_flip_along_middle", "_compare_and_swap", "_bitonic_merge_hypercube",
                               "_bitonic_merge", "argsort", "_partial_argsort", "_bitonic_topk_kernel0"],
                              "from triton.language import core\nfrom triton.language.standard import _log2\n"
                              "get_int_dtype = triton.constexpr_function(core.get_int_dtype)\n"),
    "lmdeploy_fill_int4": ("lmdeploy", LMDEPLOY + "fill_kv_cache.py",
                           ["Q_POLICY_INT4", "Q_POLICY_INT8", "Q_POLICY_TURBO", "_quant_int8", "_quant_int4",
                            "_fill_page_quant_int8", "_fill_page_quant_int4", "_fill_page_quant_turbo_qjl4",
                            "_fill_page_quant_turbo_int2", "_fill_page_quant",
                            "_fill_kv_cache_quant_kernel"], ""),
    "lmdeploy_flatten_kv": ("lmdeploy", LMDEPLOY + "flatten_kv_cache.py",
                            ["Q_POLICY_INT4", "Q_POLICY_TURBO", "_dequant_int4", "_dequant_int2",
                             "_flatten_kv_cache_quant"], ""),
    "lmdeploy_hc_expand": ("lmdeploy", LMDEPLOY + "dsv4/hc_prepost.py", ["_hc_post_expand_kernel"], ""),
    "lmdeploy_multinomial": ("lmdeploy", LMDEPLOY + "multinomial_sampling.py", ["_multinomial_sampling_kernel"], ""),
    "lmdeploy_noaux_topk": ("lmdeploy", LMDEPLOY + "fused_noaux_tc.py", ["_fused_noaux_tc_kernel"], ""),
    "lmdeploy_swiglu_quant": ("lmdeploy", LMDEPLOY + "v4_swiglu_quant.py",
                              [LMDEPLOY + "blocked_gemm_fp8.py:" + f for f in
                               ("fast_log2_ceil", "fast_pow2", "fast_round_scale")] + ["_v4_swiglu_quant_fp8_kernel"],
                              "fast_expf = tl.math.exp\n"),
    "mamba_angle": ("mamba", MAMBA + "mamba3/angle_dt.py", ["angle_dt_fwd_kernel"], MAMBA_TANH),
    "mamba_chunk_cumsum": ("mamba", MAMBA + "ssd_chunk_state.py", ["_chunk_cumsum_fwd_kernel"], MAMBA_SOFTPLUS),
    "mamba_cumsum_backward": ("mamba", MAMBA + "ssd_chunk_state.py", ["_chunk_cumsum_bwd_kernel"], MAMBA_SOFTPLUS),
    "mamba_gated_norm_backward": ("mamba", MAMBA + "layernorm_gated.py", ["_layer_norm_bwd_kernel"], ""),
    "mamba_state_passing": ("mamba", MAMBA + "ssd_state_passing.py", ["_state_passing_fwd_kernel"], ""),
    "mamba_state_update": ("mamba", MAMBA + "selective_state_update.py", ["_selective_scan_update_kernel"],
                           MAMBA_SOFTPLUS),
    "megablocks_padded_copy": ("megablocks", "megablocks/backend/kernels.py", ["_padded_copy"], ""),
    "merge_states": ("vllm", VLLM + "attention/ops/triton_merge_attn_states.py", ["merge_attn_states_kernel"], ""),
    "moe_sum": ("sglang", SGLANG + "moe/fused_moe_triton_kernels.py", ["_moe_sum_reduce_kernel"], ""),
    "pyg_scatter_reduce": ("pyg-lib", "pyg_lib/ops/scatter_reduce.py", ["_fused_scatter_reduce_forward_kernel"], ""),
    "quantize_fp8": ("vllm", VLLM_QUANTIZED + "utils/fp8_utils.py", ["_per_token_group_quant_fp8"], ""),
    "recommender_jagged_concat": ("generative-recommenders",
                                  "generative_recommenders/ops/triton/triton_jagged_tensors.py", ["_concat_2D_jagged"], ""),
    "recommender_position_backward": ("generative-recommenders",
                                      "generative_recommenders/ops/triton/triton_position.py",
                                      ["_add_embeddings_bwd_kernel"], ""),
    "recovered_tokens": ("vllm", VLLM + "v1/sample/rejection_sampler.py", ["sample_recovered_tokens_kernel"], ""),
    "sglang_kv_indices": ("sglang", SGLANG + "attention/kv_indices.py", ["create_flashinfer_kv_indices_triton"], ""),
    "sglang_murmur_hash": ("sglang", SGLANG + "sampling/murmur_hash.py",
                           ["rotl32", "fmix32", "murmur3_mix", "murmur_hash32_kernel"], ""),
    "sglang_temperature": ("sglang", SGLANG + "sampling/temperature_softmax.py",
                           ["_partial_max_sumexp_kernel", "_combine_kernel", "_normalize_kernel"], ""),
    "te_cross_entropy": ("TransformerEngine", TE + "cross_entropy.py",
                         ["online_softmax_kernel", "cross_entropy_kernel"], ""),
    "te_grouped_dbias": ("TransformerEngine", TE + "grouped_dbias_dscales.py", ["_grouped_dbias_kernel"], ""),
    "te_permute": ("TransformerEngine", TE + "permutation.py", ["_permute_kernel"], ""),
    "te_sinkhorn": ("TransformerEngine", TE + "mhc.py", ["_mhc_sinkhorn_fwd_fused"], ""),
    "te_unpermute": ("TransformerEngine", TE + "permutation.py", ["_unpermute_kernel"], ""),
    "unsloth_cross_entropy": ("unsloth", "unsloth/kernels/cross_entropy_loss.py", ["_cross_entropy_forward"],
                              UNSLOTH_NAMES),
    "unsloth_geglu_backward": ("unsloth", "unsloth/kernels/geglu.py", ["_approx_backward_kernel"], UNSLOTH_NAMES),
    "unsloth_layer_norm_backward": ("unsloth", "unsloth/kernels/layernorm.py", ["layernorm_backward"], ""),
    "unsloth_rms_norm": ("unsloth", "unsloth/kernels/rms_layernorm.py", ["_rms_layernorm_forward"], ""),
    "unsloth_swiglu_backward": ("unsloth", "unsloth/kernels/swiglu.py", ["_DWf_DW_dfg_kernel"], ""),
    "unsloth_weight_dequant": ("unsloth", "unsloth/kernels/fp8.py", ["weight_dequant_kernel"], ""),
    "vllm_awq_dequantize": ("vllm", VLLM_QUANTIZED + "awq_triton.py", ["awq_dequantize_kernel"], ""),
    "vllm_decode_reduce": ("vllm", VLLM + "attention/ops/triton_decode_attention.py", ["_fwd_kernel_stage2"], ""),
    "vllm_moe_align": ("vllm", VLLM_LAYERS + "fused_moe/moe_align_block_size.py",
                       ["moe_align_block_size_stage%d" % i for i in range(1, 5)], ""),
    "vllm_quantize_int8": ("vllm", VLLM_QUANTIZED + "utils/int8_utils.py", ["_per_token_quant_int8"],
                           "\n\n@triton.jit\ndef round_int8(x):\n    return libdevice.round(x).to(tl.int8)\n"),
    "vllm_rejection": ("vllm", VLLM + "v1/sample/rejection_sampler.py", ["rejection_random_sample_kernel"], ""),
    "xformers_index_add": ("xformers", "xformers/ops/_triton/k_scaled_index_add.py", ["scaled_index_add_fwd_kernel"], ""),
    "xformers_rope_padded": ("xformers", "xformers/ops/_triton/rope_padded_kernels.py", ["_rope_padded_kernel"],
                             "pow = libdevice.pow\n"),
}

KERNELS = {**PRODUCTS, **OTHERS}
