#include "compiler/codegen/nvptx.h"

#include <fmt/format.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <map>
#include <memory>
#include <mutex>

#include "compiler/codegen/llvm_21.h"
#include "compiler/codegen/llvm_errors.h"
#include "compiler/codegen/machines.h"
#include "compiler/codegen/nvptx_address.h"
#include "compiler/codegen/nvptx_calls.h"
#include "compiler/codegen/nvptx_divide.h"
#include "compiler/codegen/nvptx_flush.h"
#include "compiler/codegen/nvptx_narrow.h"
#include "compiler/codegen/nvptx_negate.h"
#include "compiler/codegen/nvptx_order.h"
#include "compiler/codegen/nvptx_pairs.h"
#include "compiler/codegen/nvptx_round.h"
#include "compiler/codegen/optimize.h"
#include "support/diag.h"

namespace kiln::codegen {

namespace {

void initialize_nvptx() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // InstCombine asks of what a condition compares with 0 whether it is known not to be, once for each user of the
    // condition, and goes through all of them each time (isKnownNonNullFromDominatingCondition): a sort selects by one
    // bit of the thread's index thousands of times.
    auto& options = llvm::cl::getRegisteredOptions();
    if (const auto found = options.find("dom-conditions-max-uses"); found != options.end())
      found->second->addOccurrence(0, found->first, "0");
  });
}

Result<llvm::TargetMachine*> make_machine(const target::Target& target) {
  initialize_nvptx();
  const llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!llvm_target) return error(ErrorKind::kInternal, "this LLVM has no NVPTX target: {}", message);
  llvm::TargetOptions options;
  // add.rn and mul.rn in the PTX: neither LLVM nor ptxas may contract; fma is an op of the tile IR.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return llvm_target->createTargetMachine(triple, std::string(target.name), fmt::format("+ptx{}", target.ptx), options,
                                          llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default);
}

Machines& machines(const target::Target& target) {
  static std::mutex mutex;
  static auto* all = new std::map<std::string_view, Machines>;  // threads may end after our statics
  std::lock_guard lock(mutex);
  return (*all)[target.name];
}

struct SplitAddressesPass : llvm::PassInfoMixin<SplitAddressesPass> {
  llvm::PreservedAnalyses run(llvm::Function& fn, llvm::FunctionAnalysisManager&) {
    if (!(share_steps(fn) | share_bases(fn) | split_addresses(fn))) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
  }
};

void optimize_for_gpu(llvm::Module& module, llvm::TargetMachine& machine) {
  for (llvm::Function& f : module)
    if (!f.isDeclaration()) inline_calls(f);
  drop_uncalled(module);
  optimize(module, machine, [](llvm::FunctionPassManager& passes) { passes.addPass(SplitAddressesPass()); });
  replace_minmax(module);
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    divide_without_calls(f);
    flush_where_unseen(f);
    narrow_masked(f);
    negate_by_32_bits(f);
    absolute_by_maximum(f);
    round_to_bf16_by_pairs(f);
    carry_halves_in_pairs(f);
    widen_in_loops(f);
    move_constants_out(f);
    share_products(f);
    compare_differences(f);
    order_by_need(f);
  }
}

/// The passes that LLVM adds for the target, without those that find too little for their time:
/// - StraightLineStrengthReduce, where blocks are long. It asks of each instruction that it may reuse whether it
///   triggers undefined behaviour, which reads the block behind it: quadratic in the length of a block, 95 % of the
///   time for a product of float32 tiles of 128x256 and 75 % for a convolution of 1100 instructions. To go when
///   ScalarEvolution::canReuseInstruction remembers its answers.
/// - EarlyCSE behind NaryReassociate: the target adds it once more at the end of these passes.
class EmissionPasses : public llvm::legacy::PassManager {
 public:
  explicit EmissionPasses(const llvm::Module& module) {
    uint64_t reads = 0;
    for (const llvm::Function& f : module)
      for (const llvm::BasicBlock& block : f) reads += uint64_t{block.size()} * block.size();
    is_long_ = reads > kMostReads;
  }

  void add(llvm::Pass* pass) override {
    const llvm::StringRef name = pass->getPassName();
    const bool is_left_out = leaves_out(name);
    last_ = name;
    if (is_left_out)
      delete pass;
    else
      llvm::legacy::PassManager::add(pass);
  }

 private:
  static constexpr uint64_t kMostReads = 600 * 600;

  bool leaves_out(llvm::StringRef name) const {
    if (name == "Straight line strength reduction") return is_long_;
    return name == "Early CSE" && last_ == "Nary reassociation";
  }

  bool is_long_ = false;
  llvm::StringRef last_;  // of the passes that were to be added
};

/// "call" targets that PTX leaves to somebody else.
Status reject_externals(std::string_view ptx) {
  static constexpr std::string_view kMark = ".extern .func", kProvided[] = {"vprintf", "__assertfail"};
  for (size_t at = ptx.find(kMark); at != std::string_view::npos; at = ptx.find(kMark, at + 1)) {
    std::string_view rest = ptx.substr(at + kMark.size());
    rest = rest.substr(0, rest.find(';'));
    // ".extern .func (.param .b32 r) name (params)": the name is the word before the last list.
    size_t open = rest.find('(');
    if (rest.find_first_not_of(" \t\n") == open) open = rest.find('(', rest.find(')'));
    std::string_view head = rest.substr(0, open);
    const size_t end = head.find_last_not_of(" \t\n");
    const size_t begin = head.find_last_of(" \t\n)", end);
    const std::string_view name = head.substr(begin + 1, end - begin);
    if (std::find(std::begin(kProvided), std::end(kProvided), name) == std::end(kProvided))
      return error(ErrorKind::kInternal, "the generated PTX calls '{}', which no GPU provides", name);
  }
  return {};
}

}  // namespace

Result<std::string> emit_ptx(llvm::Module& module, const target::Target& target) {
  KILN_TRY(Machines::Lent machine, machines(target).take([&] { return make_machine(target); }));
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  std::string errors;
  module.getContext().setDiagnosticHandler(std::make_unique<CollectErrors>(&errors));
  optimize_for_gpu(module, *machine);
  // Passes of ours move instructions; a mistake of theirs must not become a wrong result. Takes some 50 µs.
  llvm::raw_string_ostream complaint(errors);
  if (llvm::verifyModule(module, &complaint))
    return error(ErrorKind::kInternal, "Kiln's passes broke the LLVM IR of this kernel: {}", complaint.str());
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  auto passes = std::make_unique<EmissionPasses>(module);
  if (machine->addPassesToEmitFile(*passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile, /*DisableVerify=*/true))
    return error(ErrorKind::kInternal, "LLVM cannot print PTX");
  KILN_CHECK_OK(run_codegen(std::move(passes), module));
  module.getContext().setDiagnosticHandler(nullptr);
  if (!errors.empty())
    return error(ErrorKind::kInternal, "LLVM cannot compile this kernel for {}: {}", target.name, errors);
  KILN_CHECK_OK(reject_externals(text.str()));
  return std::string(text.str());
}

std::string print_llvm(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

}  // namespace kiln::codegen
