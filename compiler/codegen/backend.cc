#include "compiler/codegen/backend.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <mutex>
#include <vector>

#include "compiler/codegen/host.h"
#include "compiler/codegen/llvm_errors.h"
#include "compiler/codegen/nvptx.h"
#include "compiler/lower/host/host.h"
#include "compiler/lower/nvptx/nvptx.h"
#include "compiler/lower/shared/launch_plan.h"
#include "compiler/target/mma.h"
#include "support/timer.h"

namespace kiln::codegen {

namespace {

void report(const BackendOptions& o, std::string_view phase, StopWatch& watch) {
  double ms = watch.lap_ms();
  if (o.on_time) o.on_time(phase, ms);
}

/// Where code generation stopped halfway, destroying them could follow pointers into frames that are gone: they stay,
/// and are kept in reach of leak checkers.
void give_up(std::unique_ptr<llvm::LLVMContext> context, std::unique_ptr<llvm::Module> module) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::pair<llvm::LLVMContext*, llvm::Module*>>;
  std::lock_guard lock(mutex);
  kept->emplace_back(context.release(), module.release());
}

KernelFacts facts_of(const ir::Module& module, const lower::LaunchPlan& plan, const llvm::Module& lowered) {
  KernelFacts facts;
  facts.threads = 32 * (module.num_warps + plan.extra_warps);
  facts.shared_bytes = module.shared_bytes;
  facts.shares_registers = plan.registers.own > 0;
  for (const llvm::Function& f : lowered)
    facts.limits_registers |= f.hasFnAttribute("nvvm.minctasm") || f.hasFnAttribute("nvvm.maxnreg");
  auto on_tensor_cores = [](const ir::Op* op) {
    return op->kind == ir::OpKind::kWgmma ||
           (op->kind == ir::OpKind::kDot && target::mma_row(op->text_or(ir::AttrName::kMma, target::kFma)));
  };
  for (const ir::Op* op : *module.body()) facts.products = facts.products || ir::any_nested(op, on_tensor_cores);
  return facts;
}

struct CudaBuild {
  CudaCode code;
  std::string llvm;  // the IR behind the PTX, where stages are asked for
  int blocks = 1;    // that registers are shared out to
};

Result<CudaBuild> build_for_blocks(const ir::Module& module, const target::Target& target,
                                   const BackendOptions& options, int most_blocks) {
  StopWatch watch;
  UsesLlvm scope;
  auto context = std::make_unique<llvm::LLVMContext>();
  KILN_TRY(auto llvm_module,
           lower::lower_nvptx(module, target, *context,
                              {.line_info = options.line_info, .launch = options.launch, .most_blocks = most_blocks}));
  CudaBuild build;
  CudaCode& code = build.code;
  KILN_TRY(lower::LaunchPlan plan, lower::plan_launch(module, target, most_blocks));
  build.blocks = plan.registers.blocks;
  const KernelFacts facts = facts_of(module, plan, *llvm_module);
  code.extra_warps = plan.extra_warps;
  code.tensor_maps = std::move(plan.tensor_maps);
  report(options, "lower", watch);
  auto ptx = emit_ptx(*llvm_module, target);
  if (!ptx) {
    give_up(std::move(context), std::move(llvm_module));
    return std::move(ptx.error());
  }
  code.ptx = std::move(*ptx);
  report(options, "llvm", watch);
  if (options.on_stage) {
    build.llvm = print_llvm(*llvm_module);
    watch.lap_ms();
  }
  if (!options.want_cubin) return build;
  auto cubin = link_for_occupancy(code.ptx, target, facts, options.assembler);
  report(options, "cubin", watch);
  if (!cubin) {
    if (options.on_stage) {  // what the assembler refuses
      options.on_stage("llvm", build.llvm);
      options.on_stage("ptx", code.ptx);
    }
    return std::move(cubin.error());
  }
  code.cubin = std::move(*cubin);
  return build;
}

}  // namespace

Result<CudaCode> build_cuda(const ir::Module& module, const target::Target& target, const BackendOptions& options) {
  KILN_TRY(CudaBuild build,
           build_for_blocks(module, target, options, options.launch.maxnreg > 0 ? 0 : lower::kMostBlocks));
  // An epilogue that spills costs more than a second block of the SM gains.
  if (build.blocks > 1 && build.code.cubin.spill_bytes > 0) {
    KILN_TRY(CudaBuild alone, build_for_blocks(module, target, options, 1));
    if (alone.code.cubin.spill_bytes < build.code.cubin.spill_bytes) build = std::move(alone);
  }
  if (options.on_stage) {
    options.on_stage("llvm", build.llvm);
    options.on_stage("ptx", build.code.ptx);  // as linked
  }
  return std::move(build.code);
}

Result<HostObjectCode> build_host(const ir::Module& module, const BackendOptions& options) {
  StopWatch watch;
  UsesLlvm scope;
  auto context = std::make_unique<llvm::LLVMContext>();
  KILN_TRY(auto lowered, lower::lower_host(module, *context));
  report(options, "lower", watch);
  auto emitted = emit_object(*lowered.module, options.want_asm);
  if (!emitted) {
    give_up(std::move(context), std::move(lowered.module));
    return std::move(emitted.error());
  }
  HostObject& object = *emitted;
  report(options, "llvm", watch);
  if (options.on_stage) {
    options.on_stage("llvm", print_llvm(*lowered.module));
    if (options.want_asm) options.on_stage("asm", object.assembly);
  }
  return HostObjectCode{std::move(object.object), std::move(object.assembly), lowered.scratch_bytes};
}

}  // namespace kiln::codegen
