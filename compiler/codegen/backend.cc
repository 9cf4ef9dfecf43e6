#include "compiler/codegen/backend.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "compiler/codegen/host.h"
#include "compiler/codegen/nvptx.h"
#include "compiler/lower/host.h"
#include "compiler/lower/launch_plan.h"
#include "compiler/lower/nvptx.h"
#include "support/timer.h"

namespace kiln::codegen {

namespace {

void report(const BackendOptions& o, std::string_view phase, StopWatch& watch) {
  double ms = watch.lap_ms();
  if (o.on_time) o.on_time(phase, ms);
}

}  // namespace

Result<CudaCode> build_cuda(const ir::Module& module, const target::Target& target, const BackendOptions& options) {
  StopWatch watch;
  llvm::LLVMContext context;
  KILN_TRY(auto llvm_module, lower::lower_nvptx(module, target, context, {.line_info = options.line_info}));
  CudaCode code;
  KILN_TRY(lower::LaunchPlan plan, lower::plan_launch(module, target));
  code.extra_warps = plan.extra_warps;
  code.tensor_maps = std::move(plan.tensor_maps);
  report(options, "lower", watch);
  KILN_TRY(code.ptx, emit_ptx(*llvm_module, target));
  report(options, "llvm", watch);
  if (options.on_stage) {
    options.on_stage("llvm", print_llvm(*llvm_module));
    watch.lap_ms();
  }
  if (!options.want_cubin) {
    if (options.on_stage) options.on_stage("ptx", code.ptx);
    return code;
  }
  auto cubin = link_for_occupancy(code.ptx, target);
  report(options, "cubin", watch);
  if (options.on_stage) options.on_stage("ptx", code.ptx);  // as linked; also when the assembler refuses it
  if (!cubin) return std::move(cubin.error());
  code.cubin = std::move(*cubin);
  return code;
}

Result<HostObjectCode> build_host(const ir::Module& module, const BackendOptions& options) {
  StopWatch watch;
  llvm::LLVMContext context;
  KILN_TRY(auto lowered, lower::lower_host(module, context));
  report(options, "lower", watch);
  KILN_TRY(HostObject object, emit_object(*lowered.module, options.want_asm));
  report(options, "llvm", watch);
  if (options.on_stage) {
    options.on_stage("llvm", print_llvm(*lowered.module));
    if (options.want_asm) options.on_stage("asm", object.assembly);
  }
  return HostObjectCode{std::move(object.object), std::move(object.assembly), lowered.scratch_bytes};
}

}  // namespace kiln::codegen
