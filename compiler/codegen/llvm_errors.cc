#include "compiler/codegen/llvm_errors.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>

#include <csetjmp>
#include <mutex>
#include <string_view>

#include "support/diag.h"

namespace kiln::codegen {

namespace {

struct Attempt {
  std::jmp_buf out;
  std::string message;
};
thread_local Attempt* running = nullptr;

// LLVM ends the process when this returns. Its frames hold no locks here, and it is built without exceptions: leaving
// them by a jump is what its own CrashRecoveryContext does.
void on_fatal_error(void*, const char* reason, bool) {
  if (!running) return;
  running->message = reason;
  std::longjmp(running->out, 1);
}

}  // namespace

bool CollectErrors::handleDiagnostics(const llvm::DiagnosticInfo& info) {
  if (info.getSeverity() != llvm::DS_Error) return true;
  llvm::raw_string_ostream out(*text_);
  llvm::DiagnosticPrinterRawOStream printer(out);
  info.print(printer);
  return true;
}

Status run_codegen(std::unique_ptr<llvm::legacy::PassManager> passes, llvm::Module& module) {
  static std::once_flag installed;
  std::call_once(installed, [] { llvm::install_fatal_error_handler(on_fatal_error); });
  llvm::legacy::PassManager* const owned = passes.release();
  Attempt attempt;
  running = &attempt;
  if (setjmp(attempt.out) == 0) {
    owned->run(module);
    running = nullptr;
    delete owned;
    return {};
  }
  running = nullptr;
  const std::string_view reason = attempt.message;
  return error(ErrorKind::kInternal, "LLVM cannot compile this kernel: {}", reason.substr(0, reason.find('\n')));
}

}  // namespace kiln::codegen
