#include "repl/commands/compile_launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compiler/target/target.h"
#include "runtime/cuda/tensor_map_arguments.h"
#include "support/diag.h"
#include "support/ptx_name.h"

namespace kiln::repl {

namespace {

// --- parameters and expressions over them ----------------------------------------------------------------------------

std::string c_int_type(int width, bool is_signed_type) {
  // A bool is passed as a byte, as kernels take it.
  return fmt::format("{}int{}_t", is_signed_type ? "" : "u", std::max(width, 8));
}

// Floats without a type in C are passed as their bits.
std::string c_type(const ir::Type& type) {
  if (type.pointer) return "CUdeviceptr";
  if (type.dtype == DType::kF32) return "float";
  if (type.dtype == DType::kF64) return "double";
  return c_int_type(8 * size_of(type.dtype), is_int(type.dtype) && is_signed(type.dtype));
}

// A parameter may be called like a word of C or like something of ours, and an item of a tuple is "a.0". What ends in _
// already gets another one, so that no two are the same.
std::string c_name(std::string name) {
  static const std::set<std::string> kTaken = {
      "auto",   "break",    "case",      "char",     "const",    "continue", "default", "do",       "double",
      "else",   "enum",     "extern",    "float",    "for",      "goto",     "if",      "inline",   "int",
      "long",   "register", "restrict",  "return",   "short",    "signed",   "sizeof",  "static",   "struct",
      "switch", "typedef",  "union",     "unsigned", "void",     "volatile", "while",   "bool",     "class",
      "delete", "false",    "namespace", "new",      "operator", "private",  "public",  "template", "this",
      "true",   "typename", "virtual",   "kernel",   "stream",   "grid_x",   "grid_y",  "grid_z",   "NULL"};
  const bool is_item = name.find('.') != std::string::npos;
  std::ranges::replace(name, '.', '_');
  const bool is_taken = kTaken.contains(name) || is_item || name.starts_with("CU") || name.starts_with("cu") ||
                        name.starts_with("kiln_") || name.starts_with("INT") || name.starts_with("UINT");
  return is_taken || name.ends_with("_t") || name.ends_with('_') ? name + "_" : name;
}

std::string normalised(const std::string& value, DType type) {
  // As the interpreter of host expressions computes: wrapped to the type after each step.
  if (type == DType::kI1) return fmt::format("({} & 1)", value);
  if (bits(type) >= 64) return value;
  return fmt::format("(int64_t)({}){}", c_int_type(bits(type), is_signed(type)), value);
}

// What an expression may call; only what is called is written.
struct Helper {
  const char *name, *text;
};
constexpr Helper kHelpers[] = {
    {"kiln_div", R"(/* Division by 0 gives 0, and the smallest integer by -1 wraps. */
static int64_t kiln_div(int64_t a, int64_t b, int bits, int is_signed) {
  (void)bits;
  if (b == 0) return 0;
  if (!is_signed) return (int64_t)((uint64_t)a / (uint64_t)b);
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
)"},
    {"kiln_rem", R"(static int64_t kiln_rem(int64_t a, int64_t b, int bits, int is_signed) {
  (void)bits;
  if (b == 0) return 0;
  if (!is_signed) return (int64_t)((uint64_t)a % (uint64_t)b);
  return b == -1 ? 0 : a % b;
}
)"},
    {"kiln_min", R"(static int64_t kiln_min(int64_t a, int64_t b, int bits, int is_signed) {
  return (bits == 64 && !is_signed ? (uint64_t)b < (uint64_t)a : b < a) ? b : a;
}
)"},
    {"kiln_max", R"(static int64_t kiln_max(int64_t a, int64_t b, int bits, int is_signed) {
  return (bits == 64 && !is_signed ? (uint64_t)a < (uint64_t)b : a < b) ? b : a;
}
)"},
    {"kiln_shl", R"(static int64_t kiln_shl(int64_t a, int64_t count, int bits, int is_signed) {
  (void)is_signed;
  return count < 0 || count >= bits ? 0 : (int64_t)((uint64_t)a << count);
}
)"},
    {"kiln_shr", R"(static int64_t kiln_shr(int64_t a, int64_t count, int bits, int is_signed) {
  const int all = count < 0 || count >= bits;
  if (is_signed) return a >> (all ? 63 : count);
  return all ? 0 : (int64_t)((uint64_t)a >> count);
}
)"},
};

// --- parts of the file -----------------------------------------------------------------------------------------------

// 20 numbers a line: a compiler reads them faster than a string with escapes.
std::string bytes_of(const std::string& image) {
  std::string out;
  for (size_t i = 0; i < image.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{},", i % 20 ? "" : "\n    ", static_cast<unsigned char>(image[i]));
  return out;
}

std::string encode_call(const TensorMapRecipe& r, size_t index, std::span<const KernelParam> params) {
  const size_t rank = r.box.size();
  std::vector<std::string> sizes, strides, box;
  for (size_t dim = rank; dim-- > 0;) {  // the driver counts from the innermost dimension
    sizes.push_back(c_expression(r.sizes[dim], params));
    strides.push_back(c_expression(r.strides[dim], params));
    box.push_back(std::to_string(r.box[dim]));
  }
  return fmt::format(
      "      {{ /* {0} */\n"
      "        const int64_t kiln_sizes[] = {{{1}}};\n"
      "        const int64_t kiln_strides[] = {{{2}}};\n"
      "        const cuuint32_t kiln_box[] = {{{3}}};\n"
      "        const CUresult kiln_code =\n"
      "            kiln_encode(&kiln_maps[{4}], CU_TENSOR_MAP_DATA_TYPE_{5}, {6}, {7}, (uint64_t){8}, kiln_sizes,\n"
      "                        kiln_strides, kiln_box, CU_TENSOR_MAP_SWIZZLE_{9}, {10}, kernel->empty + {11});\n"
      "        if (kiln_code != CUDA_SUCCESS) return kiln_code;\n"
      "      }}\n",
      r.name, fmt::join(sizes, ", "), fmt::join(strides, ", "), fmt::join(box, ", "), index,
      runtime::tensor_map_type_name(r.dtype), size_of(r.dtype), rank, c_expression(r.base, params),
      r.swizzle ? fmt::format("{}B", r.swizzle) : "NONE", r.stored ? 1 : 0, r.stored ? 256 : 0);
}

// As the CUDA backend does it (runtime/cuda/tensor_map_arguments.cc).
constexpr const char* kEncode =
    R"(/* What TMA cannot reach is CUDA_ERROR_INVALID_VALUE: addresses and rows begin at multiples of 16 bytes. */
static CUresult kiln_encode(CUtensorMap* map, CUtensorMapDataType type, int element, int rank, uint64_t address,
                            const int64_t* given, const int64_t* steps, const cuuint32_t* box,
                            CUtensorMapSwizzle swizzle, int stored, CUdeviceptr empty) {
  cuuint64_t sizes[5], strides[5];
  cuuint32_t ones[5];
  int dim, lines, none = 0;
  for (dim = 0; dim < rank; ++dim) {
    if (given[dim] < 0 || given[dim] > (INT64_C(1) << 32)) return CUDA_ERROR_INVALID_VALUE;
    none |= given[dim] == 0;
    sizes[dim] = given[dim] ? (cuuint64_t)given[dim] : 1;
    ones[dim] = 1;
    if (dim == 0) {
      if ((stored && given[0] * element % 16) || steps[0] != 1) return CUDA_ERROR_INVALID_VALUE;
      continue;
    }
    strides[dim - 1] = 16;
    if (given[dim] <= 1) continue;
    if (steps[dim] < 0 || steps[dim] >= (INT64_C(1) << 40) / element || steps[dim] * element % 16)
      return CUDA_ERROR_INVALID_VALUE;
    strides[dim - 1] = (cuuint64_t)(steps[dim] * element);
  }
  if (none) {
    address = empty;
    for (dim = 0; dim < rank; ++dim) sizes[dim] = 1, strides[dim] = 16;
  }
  if (address % 16) return CUDA_ERROR_INVALID_VALUE;
  for (lines = address % 128 == 0, dim = 0; dim + 1 < rank; ++dim) lines &= strides[dim] % 128 == 0;
  return cuTensorMapEncodeTiled(map, type, (cuuint32_t)rank, (void*)(uintptr_t)address, sizes, strides, box, ones,
                                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                lines ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

)";

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// @ stands for the kernel's name, % for the parameters of a launch with a comma before each.
constexpr const char* kDeclarations = R"(#ifndef @_DECLARED
#define @_DECLARED
)"
                                      "#include <cuda.h>\n"
                                      R"(#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel's code in one context. */
typedef struct @_kernel {
  CUmodule module;
  CUfunction function;
  int variant;       /* which GPU's code it is */
  CUdeviceptr empty; /* 512 bytes, where a variant has tensor maps: stands in for tensors without elements */
} @_kernel;

/* Into the current context. CUDA_ERROR_NO_BINARY_FOR_GPU: there is no code for its GPU. */
CUresult @_load(@_kernel* kernel);
/* Queues grid_x * grid_y * grid_z programs; waits for nothing and allocates nothing. Pointers and integers that were
 * compiled as multiples of 16 must be. */
CUresult @_launch(const @_kernel* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, CUstream stream%);
/* In that context, when the work is done. */
CUresult @_unload(@_kernel* kernel);

#ifdef __cplusplus
}
#endif
#endif

#ifndef @_DECLARATIONS_ONLY
)";

constexpr const char* kLoad = R"(CUresult @_load(@_kernel* kernel) {
  CUdevice device;
  int major, minor, i, best = -1;
  CUresult code = cuCtxGetDevice(&device);
  if (code == CUDA_SUCCESS) code = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (code == CUDA_SUCCESS) code = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  if (code != CUDA_SUCCESS) return code;
  for (i = 0; i < (int)(sizeof @_variants / sizeof *@_variants); ++i) {
    const struct @_variant* v = &@_variants[i];
    const int sm = 10 * major + minor;
    /* A cubin runs on its generation, from its minor version on; features of one GPU ("sm_90a") run there alone. */
    if (v->exact ? sm != v->sm : sm < v->sm || (v->is_cubin && sm / 10 != v->sm / 10)) continue;
    if (best < 0 || v->sm > @_variants[best].sm || (v->sm == @_variants[best].sm && v->exact)) best = i;
  }
  if (best < 0) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  kernel->variant = best;
  kernel->empty = 0;
  code = cuModuleLoadDataEx(&kernel->module, @_variants[best].image, 0, NULL, NULL);
  if (code != CUDA_SUCCESS) return code;
  code = cuModuleGetFunction(&kernel->function, kernel->module, "%");
  if (code == CUDA_SUCCESS && @_variants[best].shared > 0)
    code = cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              @_variants[best].shared);
  if (code == CUDA_SUCCESS && @_variants[best].tensor_maps > 0) {
    code = cuMemAlloc(&kernel->empty, 512);
    if (code == CUDA_SUCCESS) code = cuMemsetD32Async(kernel->empty, 0, 128, NULL);
    if (code == CUDA_SUCCESS) code = cuStreamSynchronize(NULL);
  }
  if (code != CUDA_SUCCESS) @_unload(kernel);
  return code;
}

CUresult @_unload(@_kernel* kernel) {
  CUresult freed = kernel->empty ? cuMemFree(kernel->empty) : CUDA_SUCCESS;
  CUresult unloaded = cuModuleUnload(kernel->module);
  kernel->empty = 0;
  return freed != CUDA_SUCCESS ? freed : unloaded;
}

)";

constexpr const char* kLaunch =
    R"(CUresult @_launch(const @_kernel* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, CUstream stream)";

constexpr const char* kLaunchEarly = R"(  if (kiln_variant->pdl) {
    CUlaunchAttribute kiln_attribute = {0};
    CUlaunchConfig kiln_config = {0};
    kiln_attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    kiln_attribute.value.programmaticStreamSerializationAllowed = 1;
    kiln_config.gridDimX = grid_x * (unsigned)kiln_variant->ctas;
    kiln_config.gridDimY = grid_y, kiln_config.gridDimZ = grid_z;
    kiln_config.blockDimX = (unsigned)kiln_variant->threads, kiln_config.blockDimY = kiln_config.blockDimZ = 1;
    kiln_config.sharedMemBytes = (unsigned)kiln_variant->shared, kiln_config.hStream = stream;
    kiln_config.attrs = &kiln_attribute, kiln_config.numAttrs = 1;
    return cuLaunchKernelEx(&kiln_config, kernel->function, kiln_params, NULL);
  }
)";

constexpr const char* kLaunchPlain =
    R"(  return cuLaunchKernel(kernel->function, grid_x * (unsigned)kiln_variant->ctas, grid_y, grid_z,
                        (unsigned)kiln_variant->threads, 1, 1, (unsigned)kiln_variant->shared, stream, kiln_params, NULL);
}

#endif
)";

}  // namespace

std::string c_expression(const HostExpression& e, std::span<const KernelParam> params) {
  std::vector<std::string> stack;
  for (const HostExpression::Step& s : e.steps) {
    const auto taken = static_cast<size_t>(kHostOpValues[static_cast<size_t>(s.op)]);
    std::vector<std::string> v(stack.end() - static_cast<std::ptrdiff_t>(taken), stack.end());
    // An operation's values are the last ones of the stack, in their order.
    stack.resize(stack.size() - taken);
    const bool is_u64 = s.type == DType::kU64;
    auto wrapping = [&](char op) {
      return normalised(fmt::format("(int64_t)((uint64_t){} {} (uint64_t){})", v[0], op, v[1]), s.type);
    };
    auto compared = [&](std::string_view op) {
      // Values are kept as int64, so that uint64 alone compares differently.
      const char* as = is_u64 ? "(uint64_t)" : "";
      return fmt::format("({}{} {} {}{})", as, v[0], op, as, v[1]);
    };
    auto helped = [&](std::string_view function) {
      return normalised(
          fmt::format("kiln_{}({}, {}, {}, {})", function, v[0], v[1], bits(s.type), is_signed(s.type) ? 1 : 0),
          s.type);
    };
    std::string out;
    switch (s.op) {
      case HostOp::kConstant: {
        const int64_t n = s.number;
        // C has no literal of the smallest integer: it reads a minus and a number that is too large.
        out = n == INT64_MIN ? "(-INT64_C(9223372036854775807) - 1)"
              : n < 0        ? fmt::format("(-INT64_C({}))", -n)
                             : fmt::format("INT64_C({})", n);
        break;
      }
      case HostOp::kParam: {
        const KernelParam& p = params[static_cast<size_t>(s.number)];
        const std::string value = fmt::format("(int64_t){}", c_name(p.name));
        out = p.type.pointer || p.type.dtype == s.type ? value : normalised(value, s.type);
        break;
      }
      case HostOp::kCast:
        out = s.type == DType::kI1 ? fmt::format("({} != 0)", v[0]) : normalised(v[0], s.type);
        break;
      case HostOp::kAdd:
        out = wrapping('+');
        break;
      case HostOp::kSub:
        out = wrapping('-');
        break;
      case HostOp::kMul:
        out = wrapping('*');
        break;
      case HostOp::kDiv:
        out = helped("div");
        break;
      case HostOp::kRem:
        out = helped("rem");
        break;
      case HostOp::kMin:
        out = helped("min");
        break;
      case HostOp::kMax:
        out = helped("max");
        break;
      case HostOp::kAnd:
        out = wrapping('&');
        break;
      case HostOp::kOr:
        out = wrapping('|');
        break;
      case HostOp::kXor:
        out = wrapping('^');
        break;
      case HostOp::kShl:
        out = helped("shl");
        break;
      case HostOp::kShr:
        out = helped("shr");
        break;
      case HostOp::kEq:
        out = compared("==");
        break;
      case HostOp::kNe:
        out = compared("!=");
        break;
      case HostOp::kLt:
        out = compared("<");
        break;
      case HostOp::kLe:
        out = compared("<=");
        break;
      case HostOp::kGt:
        out = compared(">");
        break;
      case HostOp::kGe:
        out = compared(">=");
        break;
      case HostOp::kSelect:
        out = normalised(fmt::format("({} ? {} : {})", v[0], v[1], v[2]), s.type);
        break;
    }
    stack.push_back("(" + out + ")");
  }
  KILN_ASSERT(stack.size() == 1, "a host expression of {} steps", e.steps.size());
  return stack[0];
}

std::string c_helpers(std::string_view text) {
  std::string out;
  for (const Helper& h : kHelpers)
    if (text.find(std::string(h.name) + "(") != std::string::npos) out += h.text + std::string("\n");
  return out;
}

Result<std::string> c_launcher(std::span<const CompiledKernel> compiled, const std::string& function,
                               const std::string& file) {
  KILN_ASSERT(!compiled.empty());
  const CompiledKernel& first = compiled[0];
  // Of a class's kernel with the class, as others may have a kernel of that name: Relu.forward is Relu_forward in C.
  std::string name = function;
  std::ranges::replace(name, '.', '_');
  const std::span<const KernelParam> params = first.params;
  std::vector<std::string> targets;
  std::string launch_params, rows, images;
  size_t most_maps = 0;
  bool any_pdl = false;
  for (const KernelParam& p : params)
    launch_params += fmt::format("{} {} {}", launch_params.empty() ? ",\n                       " : ",", c_type(p.type),
                                 c_name(p.name));
  for (const CompiledKernel& k : compiled) {
    const target::Target* target = target::find(k.target);
    KILN_ASSERT(target && target->is_cuda(), "a C launcher for {}", k.target);
    // One function for all variants needs one list of parameters.
    if (!std::ranges::equal(k.params, params, [](auto& a, auto& b) { return a.name == b.name && a.type == b.type; }))
      return error(ErrorKind::kUnsupported, "kernel '{}' has other parameters for {} than for {}", function, k.target,
                   first.target);
    targets.push_back(k.target);
    most_maps = std::max(most_maps, k.tensor_maps.size());
    any_pdl = any_pdl || k.launch_pdl;
    const bool is_cubin = !k.cubin.empty();
    // PTX is a text to the driver, and ends with a 0.
    images += fmt::format("static const unsigned char {}_{}[] = {{{}{}\n}};\n\n", name, k.target,
                          bytes_of(is_cubin ? k.cubin : k.ptx), is_cubin ? "" : "\n    0");
    rows += fmt::format("    {{{}, {}, {}, {}, {}, {}, {}, {}, {}_{}}},\n", target->sm, k.target.ends_with('a') ? 1 : 0,
                        is_cubin ? 1 : 0, 32 * (k.num_warps + k.extra_warps), k.num_ctas, k.shared_bytes,
                        k.tensor_maps.size(), k.launch_pdl ? 1 : 0, name, k.target);
  }

  std::string encodes;
  // A variant's maps are filled in only where it is launched.
  for (size_t v = 0; v < compiled.size(); ++v) {
    if (compiled[v].tensor_maps.empty()) continue;
    encodes += fmt::format("    case {}:\n", v);
    for (size_t i = 0; i < compiled[v].tensor_maps.size(); ++i)
      encodes += encode_call(compiled[v].tensor_maps[i], i, params);
    encodes += "      break;\n";
  }

  std::string out =
      fmt::format("/* Generated by kiln {} from {}: kernel {} for {}. Link with the CUDA driver (-lcuda). */\n",
                  KILN_VERSION, file, function, fmt::join(targets, ", "));
  out += replaced(replaced(kDeclarations, "%", launch_params), "@", name);
  out += "#include <stddef.h>\n\n" + images;
  out += replaced(
      "static const struct @_variant {\n  int sm, exact, is_cubin, threads, ctas, shared, tensor_maps, pdl;\n"
      "  const unsigned char* image;\n} @_variants[] = {\n" +
          rows + "};\n\n",
      "@", name);
  out += c_helpers(encodes);
  if (most_maps > 0) out += kEncode;
  out += replaced(replaced(kLoad, "%", ptx_name(first.name)), "@", name);

  out += replaced(kLaunch, "@", name) + launch_params + ") {\n";
  out += "  if (grid_x == 0 || grid_y == 0 || grid_z == 0) return CUDA_SUCCESS;\n";
  out += replaced("  const struct @_variant* kiln_variant = &@_variants[kernel->variant];\n", "@", name);
  if (most_maps > 0) out += fmt::format("  CUtensorMap kiln_maps[{}];\n", most_maps);
  std::vector<std::string> addresses;
  for (const KernelParam& p : params) addresses.push_back("&" + c_name(p.name));
  for (size_t i = 0; i < most_maps; ++i) addresses.push_back(fmt::format("&kiln_maps[{}]", i));
  // C has no empty array.
  if (addresses.empty()) addresses.push_back("NULL");
  out += fmt::format("  void* kiln_params[] = {{{}}};\n", fmt::join(addresses, ", "));
  if (most_maps > 0) out += "  switch (kernel->variant) {\n" + encodes + "    default:\n      break;\n  }\n";
  if (any_pdl) out += kLaunchEarly;
  out += kLaunchPlain;
  return out;
}

}  // namespace kiln::repl
