#include "compiler/codegen/host.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "compiler/codegen/host_constants.h"
#include "compiler/codegen/host_minmax.h"
#include "compiler/codegen/host_schedule.h"
#include "compiler/codegen/llvm_21.h"
#include "compiler/codegen/llvm_errors.h"
#include "compiler/codegen/machines.h"
#include "compiler/codegen/optimize.h"
#include "compiler/lower/host/host.h"
#include "support/diag.h"

namespace kiln::codegen {

namespace {

std::string host_features() {
  std::vector<std::string> names;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    // Their conversions to bf16 flush denormals; LLVM would take them for every one (vcvtneps2bf16).
    const bool flushes = feature.first() == "avx512bf16" || feature.first() == "avxneconvert";
    if (feature.second && !flushes) names.push_back("+" + feature.first().str());
    if (flushes) names.push_back("-" + feature.first().str());
  }
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ",") + n;
  return all;
}

Result<llvm::TargetMachine*> make_machine() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  const llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target) return error(ErrorKind::kInternal, "this LLVM has no target for {}: {}", triple.str(), message);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // fma is an op of the tile IR
  return target->createTargetMachine(triple, llvm::sys::getHostCPUName(), host_features(), options, llvm::Reloc::PIC_,
                                     llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default);
}

Machines& machines() {
  static auto* all = new Machines;  // threads may end after our statics
  return *all;
}

/// The part of addISelPasses behind the passes over the IR, which LLVM lets only a derived class call.
struct InstructionSelection : llvm::TargetPassConfig {
  static bool add(llvm::TargetPassConfig& config) { return (config.*&InstructionSelection::addCoreISelPasses)(); }
};

/// LLVM's own sequence less what a third of its time goes into and these kernels do not gain from: most passes over the
/// IR (loop strength reduction, expansion of what CPUs lack…) and the schedulers, which undo ours.
bool add_passes(llvm::TargetMachine& machine, llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& out,
                llvm::CodeGenFileType type) {
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  config->disablePass(&llvm::MachineSchedulerID);
  config->disablePass(&llvm::PostRASchedulerID);
  passes.add(config);
  auto* info = new llvm::MachineModuleInfoWrapperPass(&machine);
  passes.add(info);
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(llvm::createPreISelIntrinsicLoweringPass());
  passes.add(llvm::createAtomicExpandLegacyPass());
  passes.add(llvm::createScalarizeMaskedMemIntrinLegacyPass());
  passes.add(llvm::createExpandReductionsPass());
  config->addCodeGenPrepare();
  config->addISelPrepare();
  if (InstructionSelection::add(*config)) return false;
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, out, nullptr, type, info->getMMI().getContext())) return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

Status emit(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type, bool own_order,
            std::string* into) {
  std::string errors;
  module.getContext().setDiagnosticHandler(std::make_unique<CollectErrors>(&errors));
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream out(bytes);
  auto passes = std::make_unique<llvm::legacy::PassManager>();
  const bool added = own_order ? add_passes(machine, *passes, out, type)
                               : !machine.addPassesToEmitFile(*passes, out, nullptr, type, /*DisableVerify=*/true);
  if (!added) return error(ErrorKind::kInternal, "LLVM cannot emit code for this CPU");
  KILN_CHECK_OK(run_codegen(std::move(passes), module));
  module.getContext().setDiagnosticHandler(nullptr);
  if (!errors.empty()) return error(ErrorKind::kInternal, "LLVM cannot compile this kernel for this CPU: {}", errors);
  *into = bytes.str().str();
  return {};
}

}  // namespace

Result<HostObject> emit_object(llvm::Module& module, bool want_assembly) {
  KILN_TRY(Machines::Lent machine, machines().take(make_machine));
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  optimize(module, *machine);
  replace_minmax(module);
  const llvm::Function* entry = module.getFunction(kHostEntryName);
  const bool own_order = !entry || !entry->hasFnAttribute(lower::kProductsAttribute);
  // Elsewhere vectors of that size do not exist, or registers abound.
  const llvm::StringRef features = machine->getTargetFeatureString();
  if (features.contains("+avx512dq")) fence_minmax(module);
  if (features.contains("+avx512vl")) {
    if (own_order) schedule_long_blocks(module, 512, 30);
  } else if (features.contains("+avx2")) {
    hide_loop_constants(module);
    if (own_order) schedule_long_blocks(module, 256, 14);
  }
  HostObject result;
  if (want_assembly) {
    // Emission changes the module, so the text comes from a copy.
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    KILN_CHECK_OK(emit(*machine, *copy, llvm::CodeGenFileType::AssemblyFile, own_order, &result.assembly));
  }
  KILN_CHECK_OK(emit(*machine, module, llvm::CodeGenFileType::ObjectFile, own_order, &result.object));
  return result;
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

std::string host_cpu_description() {
  UsesLlvm scope;
  static const std::string text =
      llvm::sys::getProcessTriple() + " " + llvm::sys::getHostCPUName().str() + " " + host_features();
  return text;
}

}  // namespace kiln::codegen
