#include "compiler/codegen/host.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "compiler/codegen/host_constants.h"
#include "compiler/codegen/optimize.h"
#include "support/diag.h"

namespace kiln::codegen {

namespace {

std::string host_features() {
  std::vector<std::string> names;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    if (feature.second) names.push_back("+" + feature.first().str());
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ",") + n;
  return all;
}

/// A target machine costs about as much as compiling a small kernel, and is for one thread at a time.
Result<llvm::TargetMachine*> target_machine() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  thread_local std::unique_ptr<llvm::TargetMachine> machine;
  if (machine) return machine.get();
  const llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target) return error(ErrorKind::kInternal, "this LLVM has no target for {}: {}", triple.str(), message);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // fma is an op of the tile IR
  machine.reset(target->createTargetMachine(triple, llvm::sys::getHostCPUName(), host_features(), options,
                                            llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  return machine.get();
}

Status emit(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type, std::string* into) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true))
    return error(ErrorKind::kInternal, "LLVM cannot emit code for this CPU");
  passes.run(module);
  *into = bytes.str().str();
  return {};
}

}  // namespace

Result<HostObject> emit_object(llvm::Module& module, bool want_assembly) {
  KILN_TRY(llvm::TargetMachine * machine, target_machine());
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  optimize(module, *machine);
  // Elsewhere vectors of that size do not exist, or registers abound.
  if (machine->getTargetFeatureString().contains("+avx2")) hide_loop_constants(module);
  HostObject result;
  if (want_assembly) {
    // Emission changes the module, so the text comes from a copy.
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    KILN_CHECK_OK(emit(*machine, *copy, llvm::CodeGenFileType::AssemblyFile, &result.assembly));
  }
  KILN_CHECK_OK(emit(*machine, module, llvm::CodeGenFileType::ObjectFile, &result.object));
  return result;
}

std::string host_cpu_description() {
  static const std::string text =
      llvm::sys::getProcessTriple() + " " + llvm::sys::getHostCPUName().str() + " " + host_features();
  return text;
}

}  // namespace kiln::codegen
