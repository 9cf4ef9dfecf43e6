// Lowering and code generation behind one call per target kind; callers do not see LLVM.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/cubin.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "kiln/launch_options.h"
#include "support/tensor_map.h"

namespace kiln::codegen {

struct BackendOptions {
  bool want_cubin = true;
  const Assembler* assembler = nullptr;  // see link_cubin
  bool want_asm = false;
  bool line_info = true;
  CodeOptions launch = {};  // what of it the lowering and the assembler act on
  /// Gets ("llvm", text), ("ptx", text), ("asm", text). Null: no text is made.
  std::function<void(std::string_view stage, const std::string& text)> on_stage;
  std::function<void(std::string_view phase, double ms)> on_time;  // may be null
};

struct CudaCode {
  std::string ptx;
  Cubin cubin;
  int extra_warps = 0;                       // of a block, beside the module's
  std::vector<TensorMapRecipe> tensor_maps;  // hidden parameters, after the module's
};
/// `module` is in the distributed stage.
Result<CudaCode> build_cuda(const ir::Module& module, const target::Target& target, const BackendOptions& options);

struct HostObjectCode {
  std::string object, assembly;
  int64_t scratch_bytes = 0;
};
/// `module` is in the tile stage.
Result<HostObjectCode> build_host(const ir::Module& module, const BackendOptions& options);

}  // namespace kiln::codegen
