#include "compiler/codegen/llvm_errors.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>

#include <csetjmp>
#include <mutex>
#include <new>
#include <string_view>

#include "support/diag.h"
#include "support/faults.h"

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

thread_local int uses = 0;
std::new_handler outer_new_handler = nullptr;

void on_bad_alloc(void*, const char*, bool) { faults::end_process("LLVM needs more memory than there is"); }

void on_no_memory() {
  if (uses > 0) on_bad_alloc(nullptr, nullptr, false);
  if (!outer_new_handler) throw std::bad_alloc();
  outer_new_handler();
}

}  // namespace

UsesLlvm::UsesLlvm() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::install_bad_alloc_error_handler(on_bad_alloc);
    outer_new_handler = std::set_new_handler(on_no_memory);
  });
  ++uses;
}

UsesLlvm::~UsesLlvm() { --uses; }

bool CollectErrors::handleDiagnostics(const llvm::DiagnosticInfo& info) {
  if (info.getSeverity() != llvm::DS_Error) return true;
  llvm::raw_string_ostream out(*text_);
  llvm::DiagnosticPrinterRawOStream printer(out);
  info.print(printer);
  return true;
}

Status run_codegen(std::unique_ptr<llvm::legacy::PassManager> passes, llvm::Module& module) {
  UsesLlvm scope;
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
