// Turns LLVM's fatal errors into compile errors instead of the end of the process.
#pragma once
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/LegacyPassManager.h>

#include <memory>
#include <string>

#include "kiln/result.h"

namespace kiln::codegen {

/// Appends the errors that passes report to a text; without a handler LLVM would print them and exit.
class CollectErrors : public llvm::DiagnosticHandler {
 public:
  explicit CollectErrors(std::string* text) : text_(text) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override;

 private:
  std::string* text_;
};

/// Lives wherever functions of LLVM are called. LLVM has no cleanups for exceptions, so an allocation that fails
/// meanwhile ends the process with one line.
class UsesLlvm {
 public:
  UsesLlvm();
  ~UsesLlvm();
  UsesLlvm(const UsesLlvm&) = delete;
  UsesLlvm& operator=(const UsesLlvm&) = delete;
};

/// Runs the passes of code generation. A fatal error of LLVM ("Cannot select …") ends them where they stand and is
/// returned as kInternal; the passes are leaked then, since nothing can be said about their state. Of the module and
/// its context too only the memory is sound: the caller should leak them.
Status run_codegen(std::unique_ptr<llvm::legacy::PassManager> passes, llvm::Module& module);

}  // namespace kiln::codegen
