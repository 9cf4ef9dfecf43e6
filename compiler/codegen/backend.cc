#include "compiler/codegen/backend.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "compiler/codegen/nvptx.h"
#include "compiler/lower/nvptx.h"
#include "support/diag.h"
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
  report(options, "lower", watch);
  CudaCode code;
  KILN_TRY(code.ptx, emit_ptx(*llvm_module, target));
  report(options, "llvm", watch);
  if (options.on_stage) {
    options.on_stage("llvm", print_llvm(*llvm_module));
    options.on_stage("ptx", code.ptx);
    watch.lap_ms();
  }
  if (options.want_cubin) {
    KILN_TRY(code.cubin, link_cubin(code.ptx, target));
    report(options, "cubin", watch);
  }
  return code;
}

Result<HostObjectCode> build_host(const ir::Module&, const BackendOptions&) {
  return error(ErrorKind::kUnsupported, "the host target cannot compile kernels yet");
}

}  // namespace kiln::codegen
