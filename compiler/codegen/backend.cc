#include "compiler/codegen/backend.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "compiler/codegen/host.h"
#include "compiler/codegen/llvm_errors.h"
#include "compiler/codegen/nvptx.h"
#include "compiler/ir/waits.h"
#include "compiler/lower/host/host.h"
#include "compiler/lower/nvptx/nvptx.h"
#include "compiler/lower/shared/launch_plan.h"
#include "compiler/target/mma.h"
#include "support/aside.h"
#include "support/diag.h"
#include "support/timer.h"

namespace kiln::codegen {

namespace {

void report(const BackendOptions& o, std::string_view phase, StopWatch& watch) {
  double ms = watch.lap_ms();
  if (o.on_time) o.on_time(phase, ms);
}

/// What LLVM works on.
class LlvmWork {
 public:
  llvm::LLVMContext& context() { return *context_; }
  /// Where code generation stopped halfway, destroying it could follow pointers into frames that are gone: it stays,
  /// and is kept in reach of leak checkers.
  void give_up() {
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::pair<llvm::LLVMContext*, llvm::Module*>>;
    std::lock_guard lock(mutex);
    kept->emplace_back(context_.release(), module.release());
  }

 private:
  std::unique_ptr<llvm::LLVMContext> context_ = std::make_unique<llvm::LLVMContext>();

 public:
  std::unique_ptr<llvm::Module> module;  // goes before its context
};

/// The passes of a large kernel take a second and more, and end no sooner: with Ctrl-C they are left to themselves.
template <class T, class Emit>
Result<T> emit_aside(const std::shared_ptr<LlvmWork>& work, Emit emit) {
  auto emitted = std::make_shared<std::optional<Result<T>>>();
  const bool waited = run_aside([work, emitted, emit] {
    UsesLlvm scope;
    emitted->emplace(emit(*work->module));
    if (!(*emitted)->ok()) work->give_up();
  });
  if (!waited) return error(ErrorKind::kInterrupted, "interrupted");
  return *std::move(*emitted);
}

/// As link_for_occupancy. An assembler takes up to half a minute.
Result<Cubin> link_aside(std::string& ptx, const target::Target& target, const KernelFacts& facts,
                         const Assembler* device) {
  struct Link {
    std::string ptx;
    std::optional<Result<Cubin>> cubin;
  };
  auto link = std::make_shared<Link>(Link{ptx, {}});
  if (!run_aside([=, &target] { link->cubin.emplace(link_for_occupancy(link->ptx, target, facts, device)); }))
    return error(ErrorKind::kInterrupted, "interrupted");
  ptx = std::move(link->ptx);
  return *std::move(link->cubin);
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
  auto is_elementwise = [](const ir::Op* op) {
    return op->kind != ir::OpKind::kFor && op->kind != ir::OpKind::kWhile && !ir::is_across(op->kind);
  };
  facts.elementwise = true;
  for (const ir::Op* op : *module.body()) {
    facts.waits = facts.waits || ir::waits_for_programs(op);
    facts.products = facts.products || ir::any_nested(op, on_tensor_cores);
    facts.elementwise = facts.elementwise && !ir::any_nested(op, [&](const ir::Op* o) { return !is_elementwise(o); });
  }
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
  auto work = std::make_shared<LlvmWork>();
  KILN_TRY(work->module,
           lower::lower_nvptx(module, target, work->context(),
                              {.line_info = options.line_info, .launch = options.launch, .most_blocks = most_blocks}));
  CudaBuild build;
  CudaCode& code = build.code;
  KILN_TRY(lower::LaunchPlan plan, lower::plan_launch(module, target, most_blocks));
  build.blocks = plan.registers.blocks;
  const KernelFacts facts = facts_of(module, plan, *work->module);
  code.extra_warps = plan.extra_warps;
  code.tensor_maps = std::move(plan.tensor_maps);
  report(options, "lower", watch);
  KILN_TRY(code.ptx, emit_aside<std::string>(work, [&target](llvm::Module& m) { return emit_ptx(m, target); }));
  report(options, "llvm", watch);
  if (options.on_stage) {
    build.llvm = print_llvm(*work->module);
    watch.lap_ms();
  }
  if (!options.want_cubin) return build;
  Result<Cubin> cubin = link_aside(code.ptx, target, facts, options.assembler);
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
  auto work = std::make_shared<LlvmWork>();
  KILN_TRY(auto lowered, lower::lower_host(module, work->context()));
  work->module = std::move(lowered.module);
  report(options, "lower", watch);
  KILN_TRY(HostObject object, emit_aside<HostObject>(work, [want_asm = options.want_asm](llvm::Module& m) {
             return emit_object(m, want_asm);
           }));
  report(options, "llvm", watch);
  if (options.on_stage) {
    options.on_stage("llvm", print_llvm(*work->module));
    if (options.want_asm) options.on_stage("asm", object.assembly);
  }
  return HostObjectCode{std::move(object.object), std::move(object.assembly), lowered.scratch_bytes};
}

}  // namespace kiln::codegen
